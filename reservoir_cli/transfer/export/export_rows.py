"""Export messages as Reservoir's own rows, from which a store can be rebuilt."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reservoir_cli.messages import ConversationName, Key, Role, StoredMessage, plain_text, title_of
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store

_BATCH = 1_000

Row = dict[str, Any]


def read_rows(
    store: Store, keys: Sequence[Key], mask: Redactor, *, embeddings: bool
) -> Iterator[tuple[Row, bool]]:
    """Yield messages as rows, and if a secret was redacted; the first has the metadata."""
    described: set[ConversationName] = set()
    active = store.active_model() if embeddings else None
    for start in range(0, len(keys), _BATCH):
        messages = store.by_key(keys[start : start + _BATCH])
        vectors = store.passages([message.key for message in messages]) if active else {}
        for message, redacted in zip(messages, mask.messages(messages), strict=True):
            masked = redacted is not message
            row = redacted.to_row() | _describe_conversation(
                store, message, redacted, described, mask
            )
            if active and message.key in vectors and not masked:
                row |= _embedding_fields(message, active, vectors[message.key])
            yield row, masked


def write_jsonl(rows: Iterator[Row]) -> Iterator[str]:
    """Yield rows as JSON Lines."""
    for row in rows:
        yield _to_json(row) + "\n"


def write_array(rows: Iterator[Row], opening: str = "[", closing: str = "]") -> Iterator[str]:
    """Yield rows as a JSON array, one per line."""
    before = f"{opening}\n"
    for row in rows:
        yield before + _to_json(row)
        before = ",\n"
    yield f"\n{closing}\n" if before == ",\n" else f"{opening}{closing}\n"


def write_document(rows: Iterator[Row]) -> Iterator[str]:
    """Yield rows as the JSON document that every command prints with ``--json``."""
    return write_array(rows, '{"schema_version": 1, "messages": [', "]}")


def _describe_conversation(
    store: Store,
    message: StoredMessage,
    redacted: StoredMessage,
    described: set[ConversationName],
    mask: Redactor,
) -> Row:
    """Return a conversation's redacted metadata for its first row; empty for the others."""
    conversation_id = message.conversation_id
    name = (message.partition, message.instance, conversation_id)
    if conversation_id is None or name in described:
        return {}
    described.add(name)
    about = store.known_conversations([name]).get(name)
    if about is None:
        return {}
    metadata = asdict(mask.conversation(message.partition, about))
    del metadata["id"]
    if metadata["title"] is None and message.role is Role.USER:
        metadata["title"] = title_of(redacted.content)
    return {"conversation": metadata}


def _embedding_fields(
    message: StoredMessage, model: tuple[str, str], passages: Sequence[Passage]
) -> Mapping[str, Any]:
    vectors = [[_round_float(part) for part in passage.vector.tolist()] for passage in passages]
    spans = [(passage.start, passage.end) for passage in passages]
    about: Row = {"embedding": vectors[0], "embedding_model": {"id": model[0], "name": model[1]}}
    if spans != [(0, len(plain_text(message)))]:
        about["embedding"] = _mean_vector(passages)
        about["passages"] = [
            {"start": start, "end": end, "embedding": vector}
            for (start, end), vector in zip(spans, vectors, strict=True)
        ]
    return about


def _mean_vector(passages: Sequence[Passage]) -> list[float]:
    import numpy as np

    mean = np.mean([passage.vector for passage in passages], axis=0)
    length = max(float(np.linalg.norm(mean)), 1e-12)
    return [_round_float(part) for part in (mean / length).tolist()]


def _round_float(part: float) -> float:
    return float(f"{part:.9g}")


def _to_json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)
