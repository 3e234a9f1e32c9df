"""Summaries of conversations, which are deleted when their messages are forgotten."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.messages import Scope, StoredMessage
from reservoir_cli.storage.keys import conversation_ids
from reservoir_cli.storage.portable_sql import Connection, decoding, pack, replacing, where_scope
from reservoir_cli.storage.transactions import TableAccess, reading, writing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


COLUMNS = "partition, instance, conversation_id, digest, text, made_by, first_at, model_id, vector"
#: Insert a row, or replace that of the conversation.
_PUT = f"""
    INSERT INTO summaries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, instance, conversation_id) DO UPDATE SET
    {replacing("digest, text, made_by, first_at, model_id, vector")}
"""
#: Replace the vector of a summary, unless the summary was deleted or renewed meanwhile.
_SET_VECTOR = """
    UPDATE summaries SET model_id = ?, vector = ?
    WHERE partition = ? AND instance = ? AND conversation_id = ? AND digest = ? AND text = ?
"""


class Summary(NamedTuple):
    """The summary of a conversation.

    :param digest: a hash of the summarised messages, and one of the command if it wrote this.
    :param made_by: ``extract``, or the program that wrote it.
    :param first_at: the start of the conversation, milliseconds since 1970.
    :param model_id: the identity of the model that computed the vector.
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
    import numpy as np

    *values, data = row
    with decoding("vectors of summaries"):
        vector = None if data is None else np.frombuffer(data, "<f4").astype(np.float32)
    return Summary(*values)._replace(vector=vector)


class Summaries(TableAccess):
    """Read and write the summaries of a store."""

    @reading
    def read(self, scope: Scope) -> list[Summary]:
        """Return the summaries of a scope."""
        where, values = where_scope(scope, "s")
        rows = self._connection.execute(
            f"SELECT {COLUMNS} FROM summaries s WHERE {where} "
            "ORDER BY partition, instance, conversation_id",
            values,
        ).fetchall()
        return [_summary(row) for row in rows]

    @writing
    def put(self, summary: Summary) -> None:
        """Store a summary, replacing the conversation's previous one."""
        vector = None if summary.vector is None else pack(summary.vector)
        self._connection.execute(_PUT, [*summary[:-1], vector])

    @writing
    def set_vector(self, summary: Summary, model_id: str, vector: "NDArray[np.float32]") -> None:
        """Store a summary's vector by another model, if the summary is still the same."""
        key_digest_text = summary[:5]
        self._connection.execute(_SET_VECTOR, [model_id, pack(vector), *key_digest_text])


def forget(connection: Connection, messages: Iterable[StoredMessage]) -> None:
    """Delete the summaries of the messages' conversations."""
    for (partition, instance), ids in conversation_ids(messages).items():
        listed, bound = connection.in_list("conversation_id", ids)
        connection.delete("summaries", partition, f"instance = ? AND {listed}", [instance, *bound])
