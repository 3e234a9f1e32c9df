"""Which headers pass the proxy."""

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

#: They belong to one connection, not to the request.
_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
#: The request is written anew: its length may differ, and its answer must be readable.
_OURS = frozenset((b"host", b"content-length", b"accept-encoding", b"expect"))
_PREFIX = b"x-reservoir-"


def to_upstream(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of a request as they go to a model."""
    kept = [
        (name, value)
        for name, value in _end_to_end(headers)
        if name.lower() not in _OURS and not name.lower().startswith(_PREFIX)
    ]
    return [*kept, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of an answer as they go to the client."""
    return [(name.lower(), value) for name, value in _end_to_end(headers)]


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    headers = list(headers)
    named = {
        token.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
    return [pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP | named]
