"""Escape the characters of a text that could control or mislead a terminal."""

import re

from reservoir_cli.util.unicode_text import CONTROLS

_CONTROL = f"[{CONTROLS}]"  # compiled when a text may need it: none of them is printable
_ASTRAL = 0x10000


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
