"""Read data compressed with zstd, which Python decompresses from 3.14 on, or with an extra."""

import io
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO

from reservoir_cli.util.installation import install_hint
from reservoir_cli.util.read_files import open_regular

COMPRESSED = ".jsonl.zst"  # the ending of a compressed file of JSON Lines
#: Log2 of the largest window. Programs use up to 8 MB; a hostile one would only cost memory.
WINDOW_LOG = 23


class NoLibrary(Exception):
    """No zstd library is installed; the message is a hint."""


def load_zstd() -> ModuleType:
    """Return Python's zstd module or its backport; raise NoLibrary if neither is installed."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise NoLibrary(install_hint("zed"))


class ZstdFile(io.RawIOBase):
    """The decompressed bytes of a file."""

    def __init__(self, path: Path) -> None:
        self._opened = ExitStack()  # first: Python also closes a file that could not be opened
        self._zstd = load_zstd()
        options = {self._zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
        source = self._opened.enter_context(open_regular(path))
        self._stream: IO[bytes] = self._opened.enter_context(
            self._zstd.ZstdFile(source, "rb", options=options)
        )

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raise EOFError if they are damaged or cut off."""
        try:
            data: bytes = self._stream.read(size)
        except self._zstd.ZstdError:
            raise EOFError from None
        return data

    def close(self) -> None:
        """Close the file."""
        self._opened.close()
        super().close()
