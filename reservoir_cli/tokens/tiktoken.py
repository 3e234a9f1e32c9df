"""Count tokens of OpenAI's models with the optional library tiktoken."""

import hashlib
import importlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ModelUnavailableError, UsageError

#: The vocabulary files of each encoding: their name in tiktoken's cache, which is the SHA-1 of the
#: URL, and the SHA-256 that tiktoken requires.
_P50K = (
    "ec7223a39ce59f226a68acc30dc1af2788490e15",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
)
_O200K = (
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)
VOCABULARIES: dict[str, tuple[tuple[str, str], ...]] = {
    "cl100k_base": (
        (
            "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
            "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        ),
    ),
    "gpt2": (
        (
            "6d1cbeee0f20b3d9449abfede4726ed8212e3aee",
            "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        ),
        (
            "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6",
            "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
        ),
    ),
    "o200k_base": (_O200K,),
    "o200k_harmony": (_O200K,),
    "p50k_base": (_P50K,),
    "p50k_edit": (_P50K,),
    "r50k_base": (
        (
            "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4",
            "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
        ),
    ),
}


class TiktokenCounter:
    """A counter that uses OpenAI's tokenizer and never the network.

    tiktoken silently downloads a vocabulary that its cache lacks, so the files are checked first.
    """

    exact = True

    def __init__(self, encoding: str) -> None:
        """Load an encoding, such as ``o200k_base``, from tiktoken's cache.

        :raises UsageError: the encoding is unknown.
        :raises ModelUnavailableError: the library or its vocabulary is not on this machine.
        """
        if encoding not in VOCABULARIES:
            raise UsageError(
                f"unknown tiktoken encoding: {encoding!r}", hint=f"one of {', '.join(VOCABULARIES)}"
            )
        if find_spec("tiktoken") is None:
            raise ModelUnavailableError(
                "the token counter tiktoken needs the library tiktoken, which is not installed",
                hint='pip install tiktoken, or token_counter = "approximate"',
            )
        for file_name, digest in VOCABULARIES[encoding]:
            _require_vocabulary(encoding, file_name, digest)
        library = importlib.import_module("tiktoken")
        self.name = f"tiktoken:{encoding}"
        self.version: str = library.__version__
        try:
            self._encoding: Any = library.get_encoding(encoding)
        except ValueError as error:
            raise ModelUnavailableError(
                f"tiktoken {self.version} does not know the encoding {encoding}",
                hint="pip install --upgrade tiktoken",
            ) from error

    def count(self, text: str) -> int:
        """Count the tokens of a text; markers such as ``<|endoftext|>`` are plain text."""
        return len(self._encoding.encode_ordinary(text))


def _vocabulary_folder() -> Path | None:
    """Return tiktoken's cache folder, by its own rule; ``None`` if its cache is disabled."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            folder = os.environ[variable]
            return Path(folder) if folder else None
    import tempfile  # takes 5 ms that only this counter needs

    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _require_vocabulary(encoding: str, file_name: str, digest: str) -> None:
    """Check that tiktoken will find this file and accept it, or raise ModelUnavailableError."""
    folder = _vocabulary_folder()
    try:
        content = (folder / file_name).read_bytes() if folder else None
    except OSError:
        content = None
    if content is not None and hashlib.sha256(content).hexdigest() == digest:
        return
    raise ModelUnavailableError(
        f"the vocabulary of {encoding} is {'missing' if content is None else 'damaged'} "
        f"in tiktoken's cache ({folder or 'disabled'})",
        hint="connect to the network, set TIKTOKEN_CACHE_DIR to a permanent folder, and run once: "
        f"python -c \"import tiktoken; tiktoken.get_encoding('{encoding}')\"",
    )
