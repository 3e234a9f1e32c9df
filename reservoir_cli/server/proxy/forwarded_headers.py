"""Select the headers that the proxy forwards."""

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

#: Headers of a single connection, which are never forwarded.
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
#: Headers that the proxy sets itself: the length may change, and answers must not be compressed.
_OURS = frozenset((b"host", b"content-length", b"accept-encoding", b"expect"))
_PREFIX = b"x-reservoir-"


def to_upstream(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of a request that are sent to a model."""
    forwarded = [
        (name, value)
        for name, value in _end_to_end(headers)
        if name.lower() not in _OURS and not name.lower().startswith(_PREFIX)
    ]
    return [*forwarded, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of an answer that are sent to the client.

    An answer in chunks may be of another length than its header says.
    """
    headers = [(name.lower(), value) for name, value in headers]
    is_chunked = any(name == b"transfer-encoding" for name, _ in headers)
    unwanted = {b"content-length"} if is_chunked else set()
    return [pair for pair in _end_to_end(headers) if pair[0] not in unwanted]


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    headers = list(headers)
    named = {
        token.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
    return [pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP | named]
