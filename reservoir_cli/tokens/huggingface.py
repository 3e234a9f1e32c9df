"""Count tokens with a model's ``tokenizer.json`` and the tokenizers library."""

import importlib
import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import make_private_dir
from reservoir_cli.util.read_files import read_bounded

#: A script that loads a tokenizer and uses it once.
_TRIAL = """
import sys, tokenizers
tokenizer = tokenizers.Tokenizer.from_buffer(sys.stdin.buffer.read())
tokenizer.no_truncation()
tokenizer.no_padding()
tokenizer.encode("A tri\u00e4l: 42 words,\\n\u5b57 \U0001f642", add_special_tokens=False)
"""
_TRIAL_TIMEOUT = 60  # seconds; the largest published tokenizers take five


class UnloadableError(Exception):
    """The library cannot load this tokenizer."""


def require_loadable(content: bytes) -> None:
    """Check once in a separate process that a tokenizer loads, since some files crash the process.

    :raises UnloadableError: it cannot be loaded.
    """
    from importlib.metadata import version  # takes 20 ms that only this counter needs

    digest = _sha256(content)
    marker = paths.cache_dir() / "tokenizers" / f"{digest[:32]}-{version('tokenizers')}"
    if marker.exists():
        return
    try:
        subprocess.run(
            [sys.executable, "-P", "-c", _TRIAL],
            input=content,
            capture_output=True,
            timeout=_TRIAL_TIMEOUT,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise UnloadableError from error
    with suppress(OSError):  # the next process checks again
        make_private_dir(marker.parent)
        marker.touch(mode=0o600)


class HuggingFaceCounter:
    """A counter that uses a model's own ``tokenizer.json``."""

    exact = True

    def __init__(self, path: str) -> None:
        """Load a tokenizer from a ``tokenizer.json``, or a folder with one.

        :raises ModelUnavailableError: the library or file is missing, or not a tokenizer.
        """
        if find_spec("tokenizers") is None:
            raise ModelUnavailableError(
                "the token counter huggingface needs the library tokenizers, "
                "which is not installed",
                hint='pip install tokenizers, or token_counter = "approximate"',
            )
        file = Path(os.path.expanduser(path))
        if os.path.isdir(file):  # also False for invalid paths
            file /= "tokenizer.json"
        try:
            content = read_bounded(file)
            require_loadable(content)
        except UnloadableError as error:
            raise _unreadable_error(file) from error
        except (OSError, ValueError) as error:
            raise ModelUnavailableError(
                f"no tokenizer at {file}",
                hint="give a tokenizer.json, or a folder with one, from the model's repository",
            ) from error
        try:
            self._tokenizer: Any = importlib.import_module("tokenizers").Tokenizer.from_buffer(
                content
            )
        except Exception as error:  # the library raises no narrower type
            raise _unreadable_error(file) from error
        # Tokenizers of embedding models truncate or pad to the model's length.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = f"huggingface:{path}"
        # The file may be replaced, so the version is a hash of its content.
        self.version = _sha256(content)[:16]

    def count(self, text: str) -> int:
        """Count the tokens of a text, without the special tokens a model adds."""
        if not text:
            return 0
        try:
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # the text has a lone surrogate
            encoded = self._tokenizer.encode(_without_surrogates(text), add_special_tokens=False)
        # Some tokenizers drop blanks; a message of blanks still counts as one token.
        return max(1, len(encoded.ids))


def _unreadable_error(file: Path) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"{file} is not a tokenizer that the tokenizers library can read",
        hint="download it again, or pip install --upgrade tokenizers",
    )


def _sha256(content: bytes) -> str:
    import hashlib  # loads OpenSSL

    return hashlib.sha256(content).hexdigest()


def _without_surrogates(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
