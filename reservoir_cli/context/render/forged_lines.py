"""Find lines of a stored text that could pass for lines of a printed context. Pure."""

import re
from functools import lru_cache
from unicodedata import normalize

from reservoir_cli.util.unicode_text import CONTROLS, INVISIBLE, ZERO_WIDTH_SPACE

_TITLES = (
    r"(?:retrieved\ knowledge|past\ conversation\ context|recalled\ messages|current\ message"
    r"|reservoir\ context)"
)
_SHORT_TITLES = rf"(?:system|conversation|summaries|procedure:[^\n]*|{_TITLES})"
#: A line of a text whose blanks are single, after a line break: of all lines, only their beginnings
#: are compared. This pattern and those below are compiled when a text needs them.
_LINE = rf"""(?aimx)
    \n\ {{0,3}}(?:
        (?:\#{{1,6}}\ ?)? [*_`]{{0,3}} (?:
            (?:\[\#\d+\]\ ?)? (?:quoted\ [\d-]+,\ ?)?
            (?:user|assistant|system|tool|context|developer)
                \ ?(?:\#\d+)?\ ?[*_`]{{0,3}}\ ?:                    # a role
            | \[?\ ?{_TITLES}\ ?\]?[*_`:\#]*\ ?$                    # a title
            | \[\ ?{_SHORT_TITLES}\ ?\]                             # a short one in brackets,
            | \d{{4}}-\d\d-\d\d[*_`]{{0,3}}\ ?$                     # a day
            | \[?conversation\ ?:.                                  # the title of a conversation
            | \[\ ?(?:call\ |answer\ left\ out|\.\.\.\ ?[\d,]+\ tokens)
            | quoted\ from\ earlier\ conversations
        )
        | (?:\#{{1,6}}\ ?[*_`]{{0,3}}|[*_]{{1,3}}){_SHORT_TITLES}[*_`:\#]*\ ?\#*\ ?$  # a heading,
        | {_SHORT_TITLES}\ ?\n\ ?(?:=+|-+)\ ?$                      # or underlined
    )
    """
_FRAME = r"(?ai)\[ ?(?:/ ?reservoir|reservoir context)"
#: Every match of these two contains one of these.
_HINTS = (":", "[", "-", "knowledge", "context", "message", "conversation", "system", "summaries")
_BLANKS = re.compile(r"(?<=[^\s])[^\S\n]+", re.ASCII)  # blanks within a line or at its end
#: Characters that no one sees, or that are drawn on the letter before.
_HIDDEN = f"[{CONTROLS}{INVISIBLE}{ZERO_WIDTH_SPACE}\u0300-\u036f\u0483-\u0489\u20d0-\u20f0]"
#: Signs that look like those of a line of a context, and have no compatible form.
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u3010\u3014\u3016\u3018\u301a\u27e6\u2045\u2772\u300c", "["),
        **dict.fromkeys("\u3011\u3015\u3017\u3019\u301b\u27e7\u2046\u2773\u300d", "]"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", "-"),
        **dict.fromkeys("\u02d0\u02f8\u0589\u05c3\u2236\ua789\u16ec", ":"),
        **dict.fromkeys("\u2044\u2215\u29f8\u2571", "/"),
        **dict.fromkeys("\u1680\u2800\u00a0", " "),
        # Cyrillic and Greek letters that are drawn as Latin ones
        **dict(zip("\u0430\u0441\u0501\u0435\u04bb\u0456\u0458", "acdehij", strict=True)),
        **dict(zip("\u04cf\u043e\u0440\u0455\u0443\u0445\u0443", "lopsyxy", strict=True)),
        **dict(zip("\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a", "ABCEHIJK", strict=True)),
        **dict(zip("\u041c\u041e\u0420\u0405\u0422\u0425\u0423", "MOPSTXY", strict=True)),
        **dict(zip("\u03bf\u03bd\u03c4\u03c5", "ovtu", strict=True)),
    }
)


@lru_cache(128)  # while a window is filled, the same turns are printed repeatedly
def has_forged_line(text: str) -> bool:
    """Return whether a line could be read as a role, title, day or frame of a context."""
    text = "\n".join(["", *text.splitlines()])
    if not text.isascii():
        text = normalize("NFKD", text).translate(_ALIKE)
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        text = re.sub(_HIDDEN, "", text)
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return False
    text = _BLANKS.sub(" ", text)
    return bool(re.search(_LINE, text) or re.search(_FRAME, text))
