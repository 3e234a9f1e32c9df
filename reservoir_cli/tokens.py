"""How many tokens a text costs.

    approximate        the default: byte classes, calibrated on o200k, standard library only
    ratio              4 characters a token for prose, 3 for code
    tiktoken:ENCODING  exact for OpenAI's models; the optional library and its vocabulary
    huggingface:PATH   exact for any model with a ``tokenizer.json``
    anthropic:MODEL    the provider's own count of the finished request, over the network

Callers see ``TokenCounter`` and ``load_counter``. A counter that is asked for and cannot
work is an error, never silently replaced: a budget kept by another counter is not kept.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from reservoir_cli.errors import ModelUnavailableError, UsageError
from reservoir_cli.reading import read_bounded

__all__ = [
    "AnthropicCounter",
    "ApproximateCounter",
    "HuggingFaceCounter",
    "RatioCounter",
    "TiktokenCounter",
    "TokenCounter",
    "counter_id",
    "load_counter",
    "storing_counter",
]


class TokenCounter(Protocol):
    """Counts the tokens of a text.

    A stored count is valid as long as ``name`` and ``version`` are those it was made with.
    """

    @property
    def name(self) -> str:
        """What the setting ``token_counter`` says, such as ``tiktoken:o200k_base``."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same text could get another count."""
        ...

    @property
    def exact(self) -> bool:
        """False for an estimate, which is printed as one and gets a safety factor."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text, without what a chat format adds around it.

        :returns: 0 for the empty text, at least 1 for any other.
        """
        ...


def counter_id(counter: TokenCounter) -> str:
    """Name and version of a counter, as they are stored with a count."""
    if isinstance(counter, AnthropicCounter):  # single texts are approximated
        counter = ApproximateCounter()
    return f"{counter.name} {counter.version}"


def storing_counter(name: str) -> TokenCounter:
    """The counter for messages that are stored: nothing is asked of the network for it."""
    return load_counter("approximate" if name.startswith("anthropic:") else name)


# --- approximate ----------------------------------------------------------------------

# One symbol for each character, given by the first byte of its UTF-8 form; the bytes that
# follow it (0x80 to 0xBF) are deleted on the way, so symbols and characters are as many.
_FOLLOWING = bytes(range(0x80, 0xC0))
_SYMBOLS = {
    b"a": bytes(range(0x61, 0x7B)),  # lower-case letters
    b"A": bytes(range(0x41, 0x5B)),  # upper-case letters
    b"0": b"0123456789",
    b"s": b" \t",
    b"n": b"\n\r",
    # Accented Latin and the combining marks.
    b"e": bytes(range(0xC3, 0xCE)),
    # Greek, Cyrillic, Hebrew, Arabic, the scripts of India, Thai. 0xE1 holds the accented
    # letters of Vietnamese beside Georgian and Khmer; all are nearer to these than to CJK.
    b"g": bytes(range(0xCE, 0xE2)),
    # Signs of Latin-1, typographic punctuation, symbols, kana, Han, Hangul. What UTF-8 never
    # begins with cannot come and is put here, so that every byte has a class.
    b"c": bytes((0xC2, *range(0xE2, 0xF0), 0xC0, 0xC1, *range(0xF5, 0x100))),
    # Four bytes: emoji and the rare scripts.
    b"m": bytes(range(0xF0, 0xF5)),
}


def _table(symbols: dict[bytes, bytes], default: bytes) -> bytes:
    """Make a table for ``bytes.translate``: bytes to their symbol, all others to ``default``."""
    table = bytearray(default * 256)
    for symbol, members in symbols.items():
        for byte in members:
            table[byte] = symbol[0]
    return bytes(table)


# ASCII punctuation and control characters are what no other class claims.
_CLASSES = _table(_SYMBOLS, default=b"p")
# A run of one kind begins where another symbol is followed by it: b".x" counts such starts.
_LETTERS = _table({b"x": b"aAeg"}, default=b".")
_DIGITS = _table({b"x": b"0"}, default=b".")
_BREAKS = _table({b"x": b"n"}, default=b".")
_BLANKS = _table({b"x": b"s"}, default=b".")

# Hundredths of a token, so that the sum is exact whatever its order.
_WORD = 56
_LETTER = 13
_NUMBER = 170
_DIGIT = 15
_PUNCTUATION = 37
_BREAK = 80
_ALPHABETIC = 31
_CJK = 72
_ACCENTED = 150


class ApproximateCounter:
    """Estimates o200k tokens from how often nine kinds of characters occur.

    The vocabulary is one of pieces: a word costs something to begin and a little for each
    letter, a run of digits likewise, punctuation by the sign. Within 15% of o200k_base for 89%
    of held-out messages of chat, documentation and code (characters / 4: 56%). 15 to 25% high
    on Russian, Vietnamese and tables of numbers, 15% low on Thai and Polish.
    """

    name = "approximate"
    version = "1"
    exact = False

    def count(self, text: str) -> int:
        """Estimate the tokens of a text in a fixed number of passes over its bytes.

        :param text: any text; lone surrogates, which broken imports contain, count as symbols.
        """
        if not text:
            return 0
        # The dot is of no class: it lets a run at the very start begin like any other.
        symbols = b"." + text.encode("utf-8", "surrogatepass").translate(_CLASSES, _FOLLOWING)
        words = symbols.translate(_LETTERS).count(b".x") + symbols.count(b"aA")
        # A single blank belongs to the word after it; of two or more, the rest is a token of
        # its own, be it an indent or the gap in a table.
        blanks = symbols.translate(_BLANKS).count(b".xx")
        breaks = symbols.translate(_BREAKS).count(b".x") + blanks
        hundredths = (
            _WORD * words
            + _LETTER * (symbols.count(b"a") + symbols.count(b"A"))
            + _NUMBER * symbols.translate(_DIGITS).count(b".x")
            + _DIGIT * symbols.count(b"0")
            + _PUNCTUATION * symbols.count(b"p")
            + _BREAK * breaks
        )
        if not text.isascii():
            hundredths += (
                _ALPHABETIC * symbols.count(b"g")
                + _CJK * symbols.count(b"c")
                + _ACCENTED * (symbols.count(b"e") + symbols.count(b"m"))
            )
        return max(1, (hundredths + 50) // 100)


# --- ratio ----------------------------------------------------------------------------

_FENCES = ("```", "~~~")
_INDENTS = ("    ", "\t")
_CODE_ENDINGS = (";", "{", "}", "};", "})", "});", "],", "},", "):", "->", "=>", "\\")
# Few, and none that prose begins a line with ("let me know", "class sizes").
_CODE_BEGINNINGS = ("#include ", "const ", "def ", "fn ", "func ", "function ", "</", "//", "/*")


class RatioCounter:
    """Estimates tokens from characters: 4 a token in lines of prose, 3 in lines of code.

    Known from other tools and easy to check by hand; far off outside the Latin script.
    Pure prose is ``max(1, len // 4)``, pure code ``max(1, len // 3)``.
    """

    name = "ratio"
    version = "1"
    exact = False

    def count(self, text: str) -> int:
        """Estimate the tokens of a text from the lengths of its lines, line ends included."""
        if not text:
            return 0
        code = sum(_code_lengths(text))
        return max(1, (3 * (len(text) - code) + 4 * code) // 12)


def _code_lengths(text: str) -> list[int]:
    """List the lengths of the lines that are code.

    An empty line is what the line before it is. A fence that is never closed holds to the end,
    as in a reply that was cut off.
    """
    lengths = []
    fence = ""
    code = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if fence:
            code = True
            if bare.startswith(fence):
                fence = ""
        elif bare.startswith(_FENCES):
            code = True
            fence = bare[:3]
        elif bare:
            code = _is_code(line.rstrip(), bare)
        if code:
            lengths.append(len(line))
    return lengths


def _is_code(line: str, bare: str) -> bool:
    """Tell a line of code from one of prose by how it begins and ends."""
    return (
        line.startswith(_INDENTS)
        or bare.endswith(_CODE_ENDINGS)
        or (bare.startswith(_CODE_BEGINNINGS) and not bare.endswith((".", "!", "?")))
    )


# --- exact, optional ------------------------------------------------------------------

# For each encoding the files tiktoken reads: the name in its cache, which is the SHA-1 of the
# address it would download from, and the SHA-256 it insists on.
_P50K = (
    "ec7223a39ce59f226a68acc30dc1af2788490e15",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
)
_O200K = (
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)
_VOCABULARIES: dict[str, tuple[tuple[str, str], ...]] = {
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
    """Counts as OpenAI's tokenizer does, without ever touching the network.

    tiktoken downloads a vocabulary that is not in its cache, or that is damaged there, without
    a word. So the files are looked for, and checked as tiktoken would check them, before it is
    called.
    """

    exact = True

    def __init__(self, encoding: str) -> None:
        """Load an encoding from tiktoken's cache.

        :param encoding: its name, such as ``o200k_base``.
        :raises UsageError: there is no such encoding.
        :raises ModelUnavailableError: the library or its vocabulary is not on this machine.
        """
        if encoding not in _VOCABULARIES:
            raise UsageError(
                f"unknown tiktoken encoding: {encoding!r}",
                hint=f"one of {', '.join(_VOCABULARIES)}",
            )
        if find_spec("tiktoken") is None:
            raise ModelUnavailableError(
                "the counter tiktoken needs a library that is not installed",
                hint="pip install 'reservoir-cli[tiktoken]', or token_counter = \"approximate\"",
            )
        for file_name, digest in _VOCABULARIES[encoding]:
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
        """Count the tokens of a text; markers such as ``<|endoftext|>`` are text like any other."""
        return len(self._encoding.encode_ordinary(text))


def _vocabulary_folder() -> Path | None:
    """Find the folder tiktoken caches in, by its own rule; None if it is told not to cache."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            folder = os.environ[variable]
            return Path(folder) if folder else None
    import tempfile  # 5 ms that the other counters need not pay

    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _require_vocabulary(encoding: str, file_name: str, digest: str) -> None:
    """Refuse unless tiktoken will find this file and accept it.

    :raises ModelUnavailableError: it is absent or damaged, or tiktoken is told not to cache.
    """
    folder = _vocabulary_folder()
    try:
        content = (folder / file_name).read_bytes() if folder else None
    except OSError:
        content = None
    if content is not None and hashlib.sha256(content).hexdigest() == digest:
        return
    raise ModelUnavailableError(
        f"the vocabulary of {encoding} is {'absent' if content is None else 'damaged'} "
        f"in tiktoken's cache ({folder or 'switched off'})",
        hint="with a network, set TIKTOKEN_CACHE_DIR to a folder you keep and run once: "
        f"python -c \"import tiktoken; tiktoken.get_encoding('{encoding}')\"",
    )


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


class AnthropicCounter:
    """Counts a finished request by the provider's endpoint; single texts are approximated.

    The request, with every message in it, leaves the machine: that is what this counter is
    chosen for. It needs ``ANTHROPIC_API_KEY``; ``ANTHROPIC_BASE_URL`` moves the endpoint.

    :raises ModelUnavailableError: offline, or without a key.
    """

    exact = False

    def __init__(self, model: str, *, offline: bool) -> None:
        self._approximate = ApproximateCounter()
        self._model = model
        self._key = os.environ.get("ANTHROPIC_API_KEY", "")
        self.name = f"anthropic:{model}"
        # What is stored with a message is the approximate count.
        self.version = self._approximate.version
        if offline:
            raise ModelUnavailableError(
                f"the token counter {self.name} asks the network, and --offline is given",
                hint="use --offline with approximate, tiktoken:ENCODING or huggingface:PATH",
            )
        if not self._key:
            raise ModelUnavailableError(
                f"the token counter {self.name} needs a key", hint="set ANTHROPIC_API_KEY"
            )

    def count(self, text: str) -> int:
        """Approximate the tokens of a text."""
        return self._approximate.count(text)

    def count_request(self, body: Mapping[str, Any]) -> int:
        """Ask for the tokens of a whole request.

        :param body: a request to Anthropic's messages; ``model`` is set to the counter's.
        :raises ModelUnavailableError: the provider does not answer, or refuses.
        """
        import json
        import urllib.error
        import urllib.request

        base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com").rstrip("/")
        asked = {key: value for key, value in body.items() if key != "max_tokens"}
        request = urllib.request.Request(
            f"{base}/v1/messages/count_tokens",
            data=json.dumps({**asked, "model": self._model}).encode(),
            headers={
                "content-type": "application/json",
                "x-api-key": self._key,
                "anthropic-version": "2023-06-01",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(json.load(answer)["input_tokens"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            reason = getattr(error, "code", None) or type(error).__name__
            raise ModelUnavailableError(
                f"the token counter {self.name} got no count ({reason})",
                hint="check the key, the model and the network, or set another token_counter",
            ) from None


def load_counter(name: str, *, offline: bool = False) -> TokenCounter:
    """Load the counter a setting names.

    :param name: ``approximate``, ``ratio``, ``tiktoken:ENCODING``, ``huggingface:PATH`` or
        ``anthropic:MODEL``.
    :param offline: refuse what would need the network.
    :raises UsageError: there is no such counter.
    :raises ModelUnavailableError: it is not on this machine.
    """
    match name.partition(":"):
        case ("approximate", "", ""):
            return ApproximateCounter()
        case ("ratio", "", ""):
            return RatioCounter()
        case ("tiktoken", ":", encoding) if encoding:
            return TiktokenCounter(encoding)
        case ("huggingface", ":", path) if path:
            return HuggingFaceCounter(path)
        case ("anthropic", ":", model) if model:
            return AnthropicCounter(model, offline=offline)
        case _:
            raise UsageError(
                f"unknown token counter: {name!r}",
                hint="one of approximate, ratio, tiktoken:ENCODING, huggingface:PATH, "
                "anthropic:MODEL",
            )
