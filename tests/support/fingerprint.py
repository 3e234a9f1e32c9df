"""A hash of the contents of a store, without the ids of messages."""

import hashlib
import json
from contextlib import closing

from behind import behind

from reservoir_cli.messages import Scope
from reservoir_cli.storage.open_store import open_store

MESSAGES = (
    "trace_id, conversation_id, partition, instance, role, content, name, tool_calls, "
    "tool_call_id, created_at, source, source_id, tokens, counter, word_count, has_question_mark"
)


def fingerprint(location: str, *, vectors: bool = True) -> str:
    """Return the SHA-256 of messages, conversations and, optionally, vectors.

    Fingerprints are comparable between stores of the same kind.
    """
    digest = hashlib.sha256()
    for query in (
        f"SELECT {MESSAGES} FROM messages ORDER BY created_at, id",
        "SELECT * FROM conversations ORDER BY 1, 2, 3",
    ):
        for row in behind(location, query):
            plain = [part.hex() if isinstance(part, bytes) else part for part in row]
            digest.update(json.dumps(plain).encode())
    if vectors:
        with closing(open_store(location)) as store:
            messages = store.last(Scope(None), 0)
            passages = store.passages([message.key for message in messages])
            for message in messages:
                for _, *numbers, vector in passages.get(message.key, []):
                    row = [message.source, message.source_id, *numbers, vector.tolist()]
                    digest.update(json.dumps(row).encode())
    return digest.hexdigest()
