"""Counts of any model that has a ``tokenizer.json``, by the library tokenizers."""

import hashlib
import importlib
import os
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings import paths
from reservoir_cli.util.files import read_bounded
from reservoir_cli.util.private import make_private_dir

#: Loads a tokenizer and uses it once.
_TRIAL = """
import sys, tokenizers
tokenizer = tokenizers.Tokenizer.from_buffer(sys.stdin.buffer.read())
tokenizer.no_truncation()
tokenizer.no_padding()
tokenizer.encode("A tri\u00e4l: 42 words,\\n\u5b57 \U0001f642", add_special_tokens=False)
"""
#: Seconds that a trial may take; the largest published ones take five.
_PATIENCE = 60


class UnloadableError(Exception):
    """The library cannot load a tokenizer."""


def require_loadable(content: bytes) -> None:
    """Load a tokenizer in another process, once: some files end the whole process that does.

    :param content: of a ``tokenizer.json``.
    :raises UnloadableError: it cannot be loaded.
    """
    digest = hashlib.sha256(content).hexdigest()
    mark = paths.cache_dir() / "tokenizers" / f"{digest[:32]}-{version('tokenizers')}"
    if mark.exists():
        return
    try:
        subprocess.run(
            [sys.executable, "-P", "-c", _TRIAL],
            input=content,
            capture_output=True,
            timeout=_PATIENCE,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise UnloadableError from error
    with suppress(OSError):  # it is tried again next time
        make_private_dir(mark.parent)
        mark.touch(mode=0o600)


class HuggingFaceCounter:
    """Counts with a model's own ``tokenizer.json``."""

    exact = True

    def __init__(self, path: str) -> None:
        """Load a tokenizer from disk.

        :param path: a ``tokenizer.json``, or a folder with one; ``~`` is the home folder.
        :raises ModelUnavailableError: the library or the file is absent, or it is no tokenizer.
        """
        if find_spec("tokenizers") is None:
            raise ModelUnavailableError(
                "the counter huggingface needs a library that is not installed",
                hint='pip install tokenizers, or token_counter = "approximate"',
            )
        file = Path(os.path.expanduser(path))
        if os.path.isdir(file):  # False, too, for what no file could be called
            file /= "tokenizer.json"
        try:
            content = read_bounded(file)
            require_loadable(content)
        except UnloadableError as error:
            raise ModelUnavailableError(
                f"{file} is not a tokenizer that the tokenizers library can read",
                hint="download it again, or pip install --upgrade tokenizers",
            ) from error
        except (OSError, ValueError) as error:
            raise ModelUnavailableError(
                f"no tokenizer at {file}",
                hint="give a tokenizer.json, or a folder with one, from the model's repository",
            ) from error
        try:
            self._tokenizer: Any = importlib.import_module("tokenizers").Tokenizer.from_buffer(
                content
            )
        except Exception as error:  # the library raises nothing narrower
            raise ModelUnavailableError(
                f"{file} is not a tokenizer that the tokenizers library can read",
                hint="download it again, or pip install --upgrade tokenizers",
            ) from error
        # Files published for embedding models cut at the model's length or pad up to it.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = f"huggingface:{path}"
        # The file may be replaced under the same path, so its content is the version.
        self.version = hashlib.sha256(content).hexdigest()[:16]

    def count(self, text: str) -> int:
        """Count the tokens of a text, without the special ones a model puts around it."""
        if not text:
            return 0
        try:
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # how a lone surrogate is refused
            encoded = self._tokenizer.encode(_without_surrogates(text), add_special_tokens=False)
        # Some tokenizers drop blanks; a message of them still takes a place.
        return max(1, len(encoded.ids))


def _without_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which have no UTF-8 form."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
