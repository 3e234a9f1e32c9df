"""Reservoir's own rows, one a line or in an array: all that is needed to have the store again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reservoir_cli.messages import Key, Role, StoredMessage, plain_text, title_of
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Passage, ThreadName

_AT_ONCE = 1_000

Row = dict[str, Any]


def rows(
    store: Store, keys: Sequence[Key], mask: Redactor, *, embeddings: bool
) -> Iterator[tuple[Row, bool]]:
    """Messages as rows, and whether a secret of theirs is hidden.

    The first of a conversation tells what is known of it.

    :param keys: in order of time.
    """
    told: set[ThreadName] = set()
    active = store.active_model() if embeddings else None
    for start in range(0, len(keys), _AT_ONCE):
        found = store.by_key(keys[start : start + _AT_ONCE])
        vectors = store.passages([each.key for each in found]) if active else {}
        for each, shown in zip(found, mask.messages(found), strict=True):
            masked = shown is not each
            row = shown.to_row() | _conversation(store, each, shown, told, mask)
            if active and each.key in vectors and not masked:
                row |= _embedding(each, active, vectors[each.key])
            yield row, masked


def jsonl(rows: Iterator[Row]) -> Iterator[str]:
    """One row a line."""
    for row in rows:
        yield _json(row) + "\n"


def array(rows: Iterator[Row], opening: str = "[", closing: str = "]") -> Iterator[str]:
    """One JSON array, a row a line."""
    before = f"{opening}\n"
    for row in rows:
        yield before + _json(row)
        before = ",\n"
    yield f"\n{closing}\n" if before == ",\n" else f"{opening}{closing}\n"


def document(rows: Iterator[Row]) -> Iterator[str]:
    """One JSON document, as every command prints with ``--json``."""
    return array(rows, '{"schema_version": 1, "messages": [', "]}")


def _conversation(
    store: Store,
    message: StoredMessage,
    shown: StoredMessage,
    told: set[ThreadName],
    mask: Redactor,
) -> Row:
    """Return what is known of a conversation, once: found as it is stored, told as it is shown."""
    number = message.conversation_id
    thread = (message.partition, message.instance, number)
    if number is None or thread in told:
        return {}
    told.add(thread)
    about = store.known_conversations([thread]).get(thread)
    if about is None:
        return {}
    known = asdict(mask.conversation(message.partition, about))
    del known["id"]
    if known["title"] is None and message.role is Role.USER:
        known["title"] = title_of(shown.content)
    return {"conversation": known}


def _embedding(
    message: StoredMessage, model: tuple[str, str], passages: Sequence[Passage]
) -> Mapping[str, Any]:
    """One vector for the message, and where it was cut, those of its passages."""
    vectors = [[_shortest(part) for part in each.vector.tolist()] for each in passages]
    spans = [(each.start, each.end) for each in passages]
    about: Row = {"embedding": vectors[0], "embedding_model": {"id": model[0], "name": model[1]}}
    if spans != [(0, len(plain_text(message)))]:
        about["embedding"] = _middle(passages)
        about["passages"] = [
            {"start": start, "end": end, "embedding": vector}
            for (start, end), vector in zip(spans, vectors, strict=True)
        ]
    return about


def _middle(passages: Sequence[Passage]) -> list[float]:
    """Where a message of several passages stands: their mean, brought to length 1."""
    import numpy as np

    mean = np.mean([each.vector for each in passages], axis=0)
    length = max(float(np.linalg.norm(mean)), 1e-12)
    return [_shortest(part) for part in (mean / length).tolist()]


def _shortest(part: float) -> float:
    """Write a float32 in the nine digits that identify it."""
    return float(f"{part:.9g}")


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)
