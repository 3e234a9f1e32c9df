"""Export messages as Reservoir's own rows, from which a store can be rebuilt."""

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
    """Yield messages as rows, each with whether a secret was redacted.

    The first row of a conversation carries its metadata.

    :param keys: the keys of the messages, in order of time.
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
    """Yield rows as JSON Lines."""
    for row in rows:
        yield _json(row) + "\n"


def array(rows: Iterator[Row], opening: str = "[", closing: str = "]") -> Iterator[str]:
    """Yield rows as a JSON array, one per line."""
    before = f"{opening}\n"
    for row in rows:
        yield before + _json(row)
        before = ",\n"
    yield f"\n{closing}\n" if before == ",\n" else f"{opening}{closing}\n"


def document(rows: Iterator[Row]) -> Iterator[str]:
    """Yield rows as the JSON document that every command prints with ``--json``."""
    return array(rows, '{"schema_version": 1, "messages": [', "]}")


def _conversation(
    store: Store,
    message: StoredMessage,
    shown: StoredMessage,
    told: set[ThreadName],
    mask: Redactor,
) -> Row:
    """Return a conversation's redacted metadata for its first row; empty for the others.

    :param message: the stored message.
    :param shown: the same message, redacted.
    :param told: conversations that have been written; updated.
    """
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
    """Return the vector of a message, and those of its passages if it was split."""
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
    """Return the normalised mean of the vectors of a message's passages."""
    import numpy as np

    mean = np.mean([each.vector for each in passages], axis=0)
    length = max(float(np.linalg.norm(mean)), 1e-12)
    return [_shortest(part) for part in (mean / length).tolist()]


def _shortest(part: float) -> float:
    """Round a float32 to the nine digits that identify it."""
    return float(f"{part:.9g}")


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)
