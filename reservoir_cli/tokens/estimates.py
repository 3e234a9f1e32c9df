"""Estimate tokens: from words and classes of characters, or from the number of characters."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from string import punctuation

from reservoir_cli.tokens.script_costs import COMMON, RANGES

# What a byte is, where not words count.
_SYMBOLS = {
    b"0": b"0123456789",
    b"s": b" \t",
    b"n": b"\n\r",
    # One of these between letters becomes a part of the next word.
    b"j": b"'(-._",
    # Letters, and all characters beyond ASCII.
    b".": bytes((*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0x80, 0x100))),
}
_FENCES = ("```", "~~~")
_INDENTS = ("    ", "\t")
_CODE_ENDINGS = (";", "{", "}", "};", "})", "});", "],", "},", "):", "->", "=>", "\\")
# Only beginnings that are rare in prose ("let me know" and "class sizes" are not code).
_CODE_BEGINNINGS = ("#include ", "const ", "def ", "fn ", "func ", "function ", "</", "//", "/*")


def _table(symbols: dict[bytes, bytes], default: bytes) -> bytes:
    """Return a table for ``bytes.translate``: bytes to their symbol, all others to ``default``."""
    table = bytearray(default * 256)
    for symbol, members in symbols.items():
        for byte in members:
            table[byte] = symbol[0]
    return bytes(table)


# All other bytes are the remaining ASCII punctuation and control characters.
_CLASSES = _table(_SYMBOLS, default=b"p")
# Counting b".x" counts the starts of runs: another symbol followed by one of this kind.
_BREAKS = _table({b"x": b"n"}, default=b".")
_BLANKS = _table({b"x": b"s"}, default=b".")

# In hundredths of a token: integer sums are exact.
_DIGITS, _BLANK, _TAB = 100, 100, 75
_JOINED, _BARE = 68, 9
#: An apostrophe between letters, but in English ``'s``, ``'ll`` and the like.
_ELISION = 60
#: ``".\n"`` is one token, and so are many blanks, but not without end.
_LONG_RUN = 100
_BREAK, _BREAK_JOINED, _INDENT, _BLANK_RUN = 100, 74, 50, 95
#: Many blanks before a sign, as in drawings, are less often a part of another token.
_BEFORE_SIGN = 30
#: A return without a line feed is a token of its own.
_RETURN = 100
_ASCII = bytes(range(0x80))
_LETTER = rb"[A-Za-z\x80-\xff]"
_ELISIONS = re.compile(
    rb"'(?<=%b')(?=%b)(?!(?:[sdmt]|ll?|ve?|re?)(?!%b))" % (_LETTER, _LETTER, _LETTER)
)
#: A tab between columns or before a sign is mostly a token of its own, unlike a blank.
_COLUMN = re.compile(rb"(?<=\S)\t+(?=[^\s0-9])|\t(?=[!-/:-@\[-`{-~])")
#: A blank is a token of its own before these, but a part of other letters, signs and emoji.
_APART = re.compile(
    " [¢¤¦¨ª¬¯²-\xb4\xb8-º¼-¾⁰-₫₭-\u20cf⅐-ↈ①-⒛❶-➓─━═║░\u3000-\u9fff\uf900-\uffff"
    "\U00010000-\U0001efff\U00020000-\U0010ffff]"
)
_COMMON = {letter: cost for letters, cost in COMMON.items() for letter in letters}
#: What a digit of ``RANGES`` stands for, and the cost of Han beyond them.
_STEP, _BEYOND = 13, 416


class ApproximateCounter:
    """A counter that estimates tokens from the counts of kinds of characters.

    A Latin word costs what its letters, each after the two before it, cost in many languages; a
    number a token for each three digits, and one for the blank before it; a run of punctuation
    what its signs, each after the one before it, do. Any other character has a cost of its own.
    Costs were measured on o200k_base and cl100k_base; the larger counts, so a text of any language
    is rarely estimated low for either, and high for the better one.
    """

    name = "approximate"
    version = "7"
    exact = False

    def count(self, text: str) -> int:
        """Estimate the tokens of a text; lone surrogates of damaged imports count as symbols."""
        if not text:
            return 0
        data = text.encode("utf-8", "surrogatepass")
        # The dot belongs to no class, so that a run at the start of the text is counted.
        symbols = b"." + data.translate(_CLASSES)
        hundredths = (
            cost_of_words(data)
            + _cost_of_signs(data)
            + _cost_beside_signs(symbols)
            + _cost_of_numbers(symbols)
            + _cost_of_blanks(symbols)
            + (_cost_of_tabs(data) if b"\t" in data else 0)
            + (_ELISION * len(_ELISIONS.findall(data)) if b"'" in data else 0)
            + (_RETURN * _count_lone_returns(data) if b"\r" in data else 0)
        )
        if not text.isascii():
            others = Counter(data.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
            hundredths += sum(_cost(letter) * times for letter, times in others.items())
            hundredths += _BLANK * len(_APART.findall(text))
        return max(1, (hundredths + 50) // 100)


def _cost_beside_signs(symbols: bytes) -> int:
    """Return what signs change in the cost of the words behind them.

    One sign between letters, as in ``a.b`` or ``it's``, becomes a part of the next word. Behind
    other signs, digits and line breaks, a word has no blank, and so is less often one token.
    """
    count = symbols.count
    apart = count(b"sj.") + count(b"pj.") + count(b"jj.")
    joined = count(b"j.") - apart
    bare = apart + count(b"p.") + count(b"n.") + count(b"0.")
    return _BARE * bare - _JOINED * joined


def _cost_of_tabs(data: bytes) -> int:
    return _TAB * len(_COLUMN.findall(data)) + _LONG_RUN * data.count(b"\t" * 16)


def _count_lone_returns(data: bytes) -> int:
    """Count the returns that are followed by anything but a line feed."""
    return data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r")


def _cost_of_numbers(symbols: bytes) -> int:
    """Return what numbers cost: a token for each three digits, and one for the blank before it."""
    threes = symbols.replace(b"000", b"3")
    digits = threes.count(b"3") + threes.count(b"0") - threes.count(b"00")
    return _DIGITS * digits + _BLANK * symbols.count(b"s0")


def _cost_of_blanks(symbols: bytes) -> int:
    """Return what runs of blanks and line breaks cost: few after a sign, as at a sentence's end.

    A single blank belongs to the following word. A run of blanks, as in indents and tables, is a
    separate token.
    """
    blanks = symbols.translate(_BLANKS).count(b".xx") if b"ss" in symbols else 0
    return (
        _BREAK * _count_runs(symbols, b"n", _BREAKS)
        - _BREAK_JOINED * (symbols.count(b"pn") + symbols.count(b"jn"))
        + _BLANK_RUN * blanks
        - (_BLANK_RUN - _INDENT) * (symbols.count(b"nss") if blanks else 0)
        + _BEFORE_SIGN * (symbols.count(b"ssp") + symbols.count(b"ssj") if blanks else 0)
        + _LONG_RUN * (symbols.count(b"n" * 16) + symbols.count(b"s" * 64))
    )


def _count_runs(symbols: bytes, symbol: bytes, table: bytes) -> int:
    if symbol * 2 in symbols:
        return symbols.translate(table).count(b".x")
    return symbols.count(symbol)


@lru_cache(16_384)
def _cost(letter: str) -> int:
    if letter in _COMMON:
        return _COMMON[letter]
    at = ord(letter) // 64
    return _STEP * int(RANGES[at], 36) if at < len(RANGES) else _BEYOND


class RatioCounter:
    """A counter that assumes 4 characters per token in prose and 3 in code, as other tools do.

    Pure prose is ``max(1, len // 4)``, pure code ``max(1, len // 3)``.
    """

    name = "ratio"
    version = "1"
    exact = False

    def count(self, text: str) -> int:
        """Estimate the tokens of a text from the lengths of its lines, including line ends."""
        if not text:
            return 0
        code = sum(_code_lengths(text))
        return max(1, (3 * (len(text) - code) + 4 * code) // 12)


def _code_lengths(text: str) -> list[int]:
    """Return the lengths of the lines that are code.

    An empty line counts like the line before it; an unclosed fence extends to the end of the text.
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
    return (
        line.startswith(_INDENTS)
        or bare.endswith(_CODE_ENDINGS)
        or (bare.startswith(_CODE_BEGINNINGS) and not bare.endswith((".", "!", "?")))
    )


_LETTERS = b"abcdefghijklmnopqrstuvwxyz{|}~"
_OTHER = 0x7F  # the letters of other scripts, which cost what ``script_costs`` says
_FIRST_SMALL, _AFTER_LETTERS = _LETTERS[0], _LETTERS[-1] + 1
_BEGINNING = -1
_UNIT = 5

# In hundredths of a token.
_WORD, _FIRST_SIGN = 94, 96
_CAPITAL, _INNER_CAPITAL, _SECOND_CAPITAL = 30, 50, 8
_MOST_WORDS, _LONGEST_WORD = 50_000, 40
#: A long word is summed in pieces, so that one letter, or few, repeated without end cost no time.
_PIECE, _MOST_PIECES = 60, 4096


def _letters() -> bytes:
    """Return a table for ``bytes.translate``: letters by the first byte of their UTF-8 form."""
    table = bytearray(b" " * 256)
    for byte in (*b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *b"abcdefghijklmnopqrstuvwxyz"):
        table[byte] = byte
    # Accented Latin; then Greek, Cyrillic, Hebrew, Arabic, the scripts of India, Thai; then
    # Vietnamese, whose first byte Georgian and Khmer share.
    table[0xC3:0xCE] = b"{|" + b"}" * 9
    table[0xCE:0xE1] = bytes([_OTHER]) * 19
    table[0xE1] = ord("~")
    return bytes(table)


_TABLE = _letters()
_PUNCTUATION = punctuation.encode()
_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\n\r"})
_SIGNS = _table(
    {b"0": _CONTROLS, **{bytes([sign]): bytes([sign]) for sign in _PUNCTUATION}}, default=b" "
)
_CASES = bytes(ord("U" if chr(byte).isupper() else "l") for byte in range(256))
_DIGIT_VALUES = bytes.maketrans(b"0123456789abcdefghijklmnopqrstuvwxyz", bytes(range(36)))
_CONTINUATION = bytes(range(0x80, 0xC0))


def cost_of_words(data: bytes) -> int:
    """Return what the words of a text in UTF-8 cost, in hundredths of a token."""
    delete = b"" if data.isascii() else _CONTINUATION
    return sum(map(_word_costs.__getitem__, data.translate(_TABLE, delete).split()))


def _cost_of_signs(data: bytes) -> int:
    """Return what the runs of signs cost: a token for the first, then each by the one before."""
    return sum(map(_run_costs.__getitem__, data.translate(_SIGNS).split()))


class _WordCosts(dict[bytes, int]):
    """The costs of the words, or of the runs of signs, that were counted last."""

    def __init__(self, cost_of: Callable[[bytes], int]) -> None:
        self._cost_of = cost_of

    def __missing__(self, word: bytes) -> int:
        cost = self._cost_of(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = cost
        return cost


def _cost_of_any_word(word: bytes) -> int:
    if _OTHER not in word:
        return _cost_of_word(word)
    parts = word.split(bytes([_OTHER]))
    return _WORD + sum(_cost_of_word(part) for part in parts if part)


def _cost_of_run(signs: bytes) -> int:
    pieces = (signs[at : at + _PIECE + 1] for at in range(0, len(signs) - 1, _PIECE))
    return _FIRST_SIGN + _UNIT * sum(map(_cost_of_seconds, pieces))


_word_costs, _run_costs = _WordCosts(_cost_of_any_word), _WordCosts(_cost_of_run)


def _cost_of_word(word: bytes) -> int:
    """Return what a word of Latin letters costs: it never exceeds what a longer word costs."""
    cost = _WORD
    if len(word) > 1:
        lowered = word.lower()
        units = _read_table()[lowered[0]][lowered[1]][_BEGINNING]
        if len(word) <= _LONGEST_WORD:
            units += _cost_of_thirds(lowered)
        else:
            pieces = (lowered[at : at + _PIECE + 2] for at in range(0, len(word) - 2, _PIECE))
            units += sum(max(_cost_of_piece(piece), 10 * len(piece)) for piece in pieces)
        cost += _UNIT * units
    return cost if word.islower() else cost + _cost_of_capitals(word.translate(_CASES))


def _cost_of_capitals(cases: bytes) -> int:
    """Return what the capitals of a word cost: ``Monday`` more than ``monday``, not ``MONDAY``."""
    inner = cases.count(b"lU")
    following = cases.count(b"U") - inner - cases.startswith(b"U")
    capitalized = _CAPITAL if b"Ul" in cases else 0
    return capitalized + _INNER_CAPITAL * inner + _SECOND_CAPITAL * following


def _cost_of_thirds(letters: bytes) -> int:
    """Return what the letters of a word from the third on cost, in units."""
    rows = _read_table()
    thirds = zip(letters, letters[1:], letters[2:], strict=False)
    return sum([rows[a][b][c] for a, b, c in thirds])  # a list is summed faster than a generator


_cost_of_piece = lru_cache(_MOST_PIECES)(_cost_of_thirds)


@lru_cache(_MOST_PIECES)
def _cost_of_seconds(signs: bytes) -> int:
    """Return what the signs of a run from the second on cost, in units."""
    rows = _read_signs()
    return sum([rows[a][b] for a, b in pairwise(signs)])


@cache
def _read_table() -> list[list[bytes]]:
    """Return by two letters what each third one costs, then what they do, in units."""
    table = [[b""] * _AFTER_LETTERS for _ in range(_AFTER_LETTERS)]
    for row in _rows("word_costs.txt"):
        (first, second), begins, thirds = row.split()
        costs = thirds if len(thirds) > 1 else thirds * len(_LETTERS)
        # Letters are indexes as they are: what comes before "a" is not used.
        table[first][second] = (b"0" * _FIRST_SMALL + costs + begins).translate(_DIGIT_VALUES)
    return table


@cache
def _read_signs() -> dict[int, dict[int, int]]:
    """Return by a sign what each one behind it costs, in units."""
    return {
        first: dict(zip(_PUNCTUATION + b"0", bytes(costs).translate(_DIGIT_VALUES), strict=True))
        for first, *costs in _rows("sign_costs.txt")
    }


def _rows(name: str) -> list[bytes]:
    lines = Path(__file__).with_name(name).read_bytes().splitlines()
    return [line for line in lines if line != b"#" and not line.startswith(b"# ")]
