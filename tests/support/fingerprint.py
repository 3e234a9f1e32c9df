"""A hash of the contents of a store, without the ids of messages."""

import hashlib
import json

from behind import behind

MESSAGES = (
    "trace_id, conversation_id, partition, instance, role, content, name, tool_calls, "
    "tool_call_id, created_at, source, source_id, tokens, counter, terms, asks"
)


def fingerprint(location: str, *, vectors: bool = True) -> str:
    """Return the SHA-256 of messages, conversations and, optionally, vectors and links.

    Fingerprints are comparable between stores of the same kind.
    """
    digest = hashlib.sha256()
    for query in queries(vectors):
        for row in behind(location, query):
            plain = [part.hex() if isinstance(part, bytes) else part for part in row]
            digest.update(json.dumps(plain).encode())
    return digest.hexdigest()


def queries(vectors: bool) -> list[str]:
    statements = [
        f"SELECT {MESSAGES} FROM messages ORDER BY created_at, id",
        "SELECT * FROM conversations ORDER BY 1, 2, 3",
    ]
    if vectors:
        statements += [
            """
            SELECT m.source, m.source_id, e.model_id, e.passage, e.start, e."end", e.vector
            FROM embeddings e JOIN messages m ON m.id = e.message_id ORDER BY 1, 2, 3, 4
            """,
            """
            SELECT a.source, a.source_id, b.source, b.source_id, s.score, s.kind
            FROM synapses s JOIN messages a ON a.id = s.source_id
            JOIN messages b ON b.id = s.target_id ORDER BY 1, 2, 3, 4
            """,
        ]
    return statements
