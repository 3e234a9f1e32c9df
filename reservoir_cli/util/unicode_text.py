"""Compare texts that are typed differently; escape characters that could mislead a reader."""

import re
from collections.abc import Sequence
from unicodedata import normalize

#: Characters that are drawn with no width, as the inside of a character class of a pattern: soft
#: hyphens, joiners, directional controls, byte order marks, variation selectors, fillers and tags.
#: Without the zero-width space.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
ZERO_WIDTH_SPACE = "\u200b"
#: Characters that control what shows a text, or reorder, break or hide a part of it, as the inside
#: of a character class: control characters except tab and line feed, bidirectional and deprecated
#: format controls, separators of lines and paragraphs, invisible operators, byte order marks,
#: interlinear annotations, formats of music and shorthand, and tags. Without the joiners and
#: variation selectors that emoji and some scripts are written with.
CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff"
)
_CONTROL = f"[{CONTROLS}]"  # compiled when a text may need it: none of them is printable
_ASTRAL = 0x10000
#: How similar a suggested name must be, and the shortest typed text that may be a part of one.
_SIMILAR, _MIN_PART = 0.7, 4


def fold(text: str) -> str:
    """Return a text in NFC and casefolded, so that ``Müller`` typed on any system compares equal.

    Some systems write an accent as a separate character after its letter.
    """
    return normalize("NFC", text.casefold())


def plain_digits(text: str) -> str:
    """Return a typed number or time with full-width digits and signs in their usual form (NFKC)."""
    return normalize("NFKC", text)


def similar_names(typed: str, names: Sequence[str]) -> list[str]:
    """Return at most three names: those that contain the typed text, else similar ones."""
    import difflib

    parts = [name for name in names if len(typed) >= _MIN_PART and typed in name]
    return parts[:3] or difflib.get_close_matches(typed, names, 3, _SIMILAR)


def plain_number(text: str) -> str:
    """Return a typed whole number without separators of thousands, as in 150,000 or 1,50,000."""
    number = plain_digits(text).strip()
    if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{2,3})*,\d{3}", number):
        number = number.replace(",", "")
    return number.replace("_", "")


def escaped(text: str) -> str:
    """Escape characters that could control a terminal, or hide text; JSON stays valid."""
    return text if text.isprintable() else re.sub(_CONTROL, _escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return f"\\x{code:02x}"
    if code < _ASTRAL:
        return f"\\u{code:04x}"
    high, low = divmod(code - _ASTRAL, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def has_question_mark(text: str) -> bool:
    """Return whether a text contains a question mark, of any width."""
    return "?" in text or "\uff1f" in text
