"""Decompress requests and answers chunk by chunk, within a limit."""

import zlib
from collections.abc import Callable
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import WINDOW_LOG, NoLibrary, load_zstd

#: How zlib is told to read the headers of gzip and of zlib alike, and data without a header.
_ANY_HEADER, _NO_HEADER = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS


class Undecodable(Exception):
    """Data that are damaged, too large, or in an encoding that is not read."""


class Decoder:
    """Decode a body of at most ``most`` bytes; raise Undecodable for an unknown encoding."""

    def __init__(self, encoding: str, most: int) -> None:
        self._encoding, self._room, self._is_new = encoding.strip().lower(), most, True
        self._new_member, self._damaged = _members(self._encoding)
        self._member = self._new_member() if self._new_member else None

    def decode(self, chunk: bytes) -> bytes:
        """Decode the next chunk; raise Undecodable if it is damaged or the body too large."""
        decoded = self._inflate(chunk)
        self._room -= len(decoded)
        if self._room < 0:
            raise Undecodable("too large")
        return decoded

    @property
    def is_whole(self) -> bool:
        """Whether the body ends with what was decoded."""
        return self._member is None or bool(self._member.eof)

    def _inflate(self, chunk: bytes) -> bytes:
        """Return the text of a chunk, which may end one member and begin another."""
        if self._new_member is None or self._member is None:
            return bytes(chunk)
        text = bytearray()
        try:
            while chunk and len(text) <= self._room:
                if self._member.eof:
                    self._member = self._new_member()
                text += self._decompress(chunk, self._room - len(text) + 1)
                chunk = self._member.unused_data if self._member.eof else b""
        except self._damaged:
            raise Undecodable("damaged") from None
        return bytes(text)

    def _decompress(self, chunk: bytes, most: int) -> bytes:
        is_new, self._is_new = self._is_new, False
        try:
            decoded: bytes = self._member.decompress(chunk, most)  # type: ignore[union-attr]
        except self._damaged:
            if self._encoding != "deflate" or not is_new:
                raise
            self._member = zlib.decompressobj(_NO_HEADER)  # as some programs understand deflate
            decoded = self._member.decompress(chunk, most)
        return decoded


def _members(encoding: str) -> tuple[Callable[[], Any] | None, type[Exception]]:
    if encoding in ("", "identity"):
        return None, zlib.error
    if encoding in ("gzip", "x-gzip", "deflate"):
        return lambda: zlib.decompressobj(_ANY_HEADER), zlib.error
    if encoding != "zstd":
        raise Undecodable("unknown encoding")
    try:
        zstd = load_zstd()
    except NoLibrary:
        raise Undecodable("no zstd library") from None
    options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
    return lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError
