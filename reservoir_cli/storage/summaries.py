"""Summaries of conversations: derived from messages, and forgotten with them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage.base import Store, is_on_a_server

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS = "partition, instance, conversation_id, digest, text, made_by, first_at, model_id, vector"
#: All rows, in an order that both kinds of store share.
ALL = f"SELECT {COLUMNS} FROM summaries ORDER BY partition, instance, conversation_id"
#: On a server: the summaries of the conversations of some messages.
FORGETTING = """
    DELETE FROM summaries s WHERE s.partition = %s
    AND (s.instance, s.conversation_id) IN (
        SELECT m.instance, m.conversation_id FROM messages m
        WHERE m.partition = %s AND m.id = ANY(%s) AND m.conversation_id IS NOT NULL
    )
"""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a conversation was about.

    :param digest: a hash of the messages that were summarised.
    :param made_by: ``extract``, or the program that wrote it.
    :param first_at: when the conversation began, milliseconds since 1970.
    :param model_id: identity of the model that made the vector.
    """

    partition: str
    instance: str
    conversation_id: str
    digest: str
    text: str
    made_by: str
    first_at: int
    model_id: str | None = None
    vector: "NDArray[np.float32] | None" = None


def _summary(row: Sequence[Any]) -> "Summary":
    """Make a summary of a row of :data:`COLUMNS`."""
    *values, vector = row
    summary = Summary(*values)
    return replace(summary, vector=_vector(vector))


class Summaries:
    """The summaries of a store, on its connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mark = "%s" if is_on_a_server(store.location) and not _stands_in(store) else "?"

    def read(self, scope: Scope) -> list[Summary]:
        """Return the summaries of a scope."""
        names = {"partition": scope.partition, "instance": scope.instance}
        conditions = {name: value for name, value in names.items() if value is not None}
        where = " AND ".join(f"{name} = {self._mark}" for name in conditions) or "TRUE"
        with self._store.snapshot():
            rows = self._execute(
                f"SELECT {COLUMNS} FROM summaries WHERE {where} "
                "ORDER BY partition, instance, conversation_id",
                list(conditions.values()),
            ).fetchall()
        return [_summary(row) for row in rows]

    def put(self, summary: Summary) -> None:
        """Store a summary in place of the one before it."""
        vector = None if summary.vector is None else summary.vector.astype("<f4").tobytes()
        key = [summary.partition, summary.instance, summary.conversation_id]
        values = [summary.digest, summary.text, summary.made_by, summary.first_at, summary.model_id]
        with self._store.writing():
            self._execute(
                f"DELETE FROM summaries WHERE partition = {self._mark} AND instance = {self._mark} "
                f"AND conversation_id = {self._mark}",
                key,
            )
            self._execute(inserting(self._mark), [*key, *values, vector])

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        connection = self._store._connection  # type: ignore[attr-defined]
        return connection.execute(statement if self._mark == "?" else statement.encode(), values)


def _stands_in(store: Store) -> bool:
    """Return whether an empty store in memory stands in for a server's that is not set up."""
    return not hasattr(store, "server")


def _vector(data: bytes | None) -> "NDArray[np.float32] | None":
    import numpy as np

    return None if data is None else np.frombuffer(data, "<f4").astype(np.float32)


def inserting(mark: str) -> str:
    """Return the statement that writes a row of :data:`COLUMNS`."""
    return f"INSERT INTO summaries ({COLUMNS}) VALUES ({', '.join([mark] * 9)})"


def moving(mark: str) -> str:
    """Return the statement that copies summaries to a place that has none of the conversation.

    Its values are the new place, the old one, and the new one once more.
    """
    return f"""
        INSERT INTO summaries ({COLUMNS})
        SELECT {mark}, {mark}, conversation_id, digest, text, made_by, first_at, model_id, vector
        FROM summaries s WHERE s.partition = {mark} AND s.instance = {mark}
        AND NOT EXISTS (
            SELECT 1 FROM summaries t WHERE t.partition = {mark} AND t.instance = {mark}
            AND t.conversation_id = s.conversation_id
        )
    """


def forget(
    execute_many: Callable[[str, Iterable[Sequence[Any]]], Any],
    messages: Iterable[StoredMessage],
    mark: str,
) -> None:
    """Delete the summaries of the conversations that messages are of."""
    execute_many(
        f"DELETE FROM summaries WHERE partition = {mark} AND instance = {mark} "
        f"AND conversation_id = {mark}",
        {
            (message.partition, message.instance, message.conversation_id)
            for message in messages
            if message.conversation_id
        },
    )
