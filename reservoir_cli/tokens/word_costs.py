"""Estimate the tokens of words from their letters, by the table ``word_costs.txt``."""

from functools import cache, lru_cache
from pathlib import Path

_LETTERS = b"abcdefghijklmnopqrstuvwxyz{|}~"
_OTHER = 0x7F  # the letters of other scripts, which cost what ``script_costs`` says
_FIRST_SMALL, _AFTER_LETTERS = _LETTERS[0], _LETTERS[-1] + 1
_BEGINNING = -1
_UNIT = 5

# In hundredths of a token.
_WORD, _OTHER_WORD = 94, 56
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
_CASES = bytes(ord("U" if chr(byte).isupper() else "l") for byte in range(256))
_CONTINUATION = bytes(range(0x80, 0xC0))


def cost_of_words(data: bytes) -> int:
    """Return what the words of a text in UTF-8 cost, in hundredths of a token."""
    delete = b"" if data.isascii() else _CONTINUATION
    return sum(map(_costs.__getitem__, data.translate(_TABLE, delete).split()))


class _Costs(dict[bytes, int]):
    """The costs of the words that were counted last."""

    def __missing__(self, word: bytes) -> int:
        if _OTHER in word:
            parts = word.split(bytes([_OTHER]))
            cost = _OTHER_WORD + sum(_cost(part) for part in parts if part)
        else:
            cost = _cost(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = cost
        return cost


_costs = _Costs()


def _cost(word: bytes) -> int:
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


@cache
def _read_table() -> list[list[bytes]]:
    """Return by two letters what each third one costs, then what they do, in units."""
    table = [[b""] * _AFTER_LETTERS for _ in range(_AFTER_LETTERS)]
    digits = bytes.maketrans(b"0123456789abcdefghijklmnopqrstuvwxyz", bytes(range(36)))
    for line in Path(__file__).with_name("word_costs.txt").read_bytes().splitlines():
        if line.startswith(b"#"):
            continue
        (first, second), begins, thirds = line.split()
        costs = thirds if len(thirds) > 1 else thirds * len(_LETTERS)
        # Letters are indexes as they are: what comes before "a" is not used.
        table[first][second] = (b"0" * _FIRST_SMALL + costs + begins).translate(digits)
    return table
