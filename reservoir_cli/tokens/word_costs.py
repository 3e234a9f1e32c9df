"""Estimate the tokens of words from their letters, by the table ``word_costs.txt``."""

from functools import cache
from itertools import pairwise
from pathlib import Path

_LETTERS = b"abcdefghijklmnopqrstuvwxyz{|}~"
_OTHER = 0x7F  # the letters of other scripts, which cost what ``script_costs`` says
_FIRST_SMALL = ord("a")
_UNIT = 5

# In hundredths of a token.
_WORD, _SECOND_CAPITAL, _OTHER_WORD = 91, 8, 56
_MOST_WORDS, _LONGEST_WORD = 50_000, 40


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
_CONTINUATION = bytes(range(0x80, 0xC0))


def cost_of_words(data: bytes) -> int:
    """Return what the words of a text in UTF-8 cost, in hundredths of a token."""
    delete = b"" if data.isascii() else _CONTINUATION
    return sum(map(_costs.__getitem__, data.translate(_TABLE, delete).split()))


class _Costs(dict[bytes, int]):
    """The costs of the words that were counted last."""

    def __missing__(self, word: bytes) -> int:
        cost = _OTHER_WORD if _OTHER in word else 0
        cost += sum(_cost(part) for part in word.split(bytes([_OTHER])) if part)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = cost
        return cost


_costs = _Costs()


def _cost(word: bytes) -> int:
    """Return what a word of Latin letters costs: it never exceeds what a longer word costs."""
    if len(word) < 2:
        return _WORD
    rows = _read_table()
    lowered = word.lower()
    units = rows[lowered[:2]][-1]
    for position, letter in enumerate(lowered[2:]):
        units += rows[lowered[position : position + 2]][letter - _FIRST_SMALL]
    cost = _WORD + _UNIT * units
    if lowered[1:] != word[1:]:  # a capital inside a word begins a word
        capitals = [before < _FIRST_SMALL for before, x in pairwise(word) if x < _FIRST_SMALL]
        cost += sum(_SECOND_CAPITAL if after_capital else _WORD for after_capital in capitals)
    return cost


@cache
def _read_table() -> dict[bytes, bytes]:
    """Return by two first letters what each third one costs, then what they do, in units."""
    rows = {}
    digits = bytes.maketrans(b"0123456789abcdefghijklmnopqrstuvwxyz", bytes(range(36)))
    for line in Path(__file__).with_name("word_costs.txt").read_bytes().splitlines():
        if line.startswith(b"#"):
            continue
        letters, begins, thirds = line.split()
        costs = thirds if len(thirds) > 1 else thirds * len(_LETTERS)
        rows[letters] = (costs + begins).translate(digits)
    return rows
