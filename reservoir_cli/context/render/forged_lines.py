"""Find lines of a stored text that could pass for lines of a printed context. Pure.

The first line of a turn follows its role, so only a frame counts in it.
"""

import re
from functools import lru_cache
from unicodedata import decimal, name, normalize

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
        (?:\#{{1,6}}\ ?)? [*_`~]{{0,3}} (?:
            (?:\[\#\d+\]\ ?)? (?:quoted\ [\d-]+,\ ?)?
            (?:user|assistant|system|tool|developer|human|ai)
                \ ?(?:\#\d+)?\ ?[*_`~]{{0,3}}\ ?:                    # a role
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
#: Blanks within a line or at its end, other than a single space.
_BLANKS = re.compile(r"(?<=\S)(?:[^\S\n ][^\S\n]*| [^\S\n]+)", re.ASCII)
#: What colours a line on a terminal.
_ESCAPES = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
#: The controls of ASCII, which are no part of what is seen.
_ASCII_CONTROLS = dict.fromkeys((*range(9), *range(0x0B, 0x20), 0x7F))
#: Characters that no one sees, or that are drawn on the letter before.
_HIDDEN = f"[{CONTROLS}{INVISIBLE}{ZERO_WIDTH_SPACE}\u0300-\u036f\u0483-\u0489\u20d0-\u20f0]"
#: Signs and letters that are drawn as those of a line of a context, if neither a compatible form
#: nor their name says so.
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u300c", "["),
        **dict.fromkeys("\u300d", "]"),
        **dict.fromkeys("\u02f8\u0589\u05c3\u2236\u16ec", ":"),
        **dict.fromkeys("\u2010\u2015\u2043", "-"),
        **dict.fromkeys("\u2044\u2215\u29f8\u2571", "/"),
        **dict.fromkeys("\u1680\u2800\u00a0", " "),
        # Cyrillic, Greek, Armenian and Coptic letters that are drawn as Latin ones
        **dict(zip("\u0430\u0441\u0501\u0435\u04bb\u0456\u0458", "acdehij", strict=True)),
        **dict(zip("\u04cf\u043e\u0440\u0455\u0445\u0443\u0475", "lopsxyv", strict=True)),
        **dict(zip("\u043c\u043f\u0433\u0442", "mnrt", strict=True)),
        **dict(zip("\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a", "ABCEHIJK", strict=True)),
        **dict(zip("\u041c\u041e\u0420\u0405\u0422\u0425\u0423", "MOPSTXY", strict=True)),
        **dict(zip("\u03b1\u03b5\u03b9\u03bf\u03c1\u03bd\u03c4\u03c5", "aeiopvtu", strict=True)),
        **dict(zip("\u0391\u0392\u0395\u0396\u0397\u0399\u039a", "ABEZHIK", strict=True)),
        **dict(zip("\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7", "MNOPTYX", strict=True)),
        **dict(zip("\u0585\u057d\u0578\u0570", "ounh", strict=True)),
        **dict(zip("\u2c9f\u2ca5\u2ca3\u2c93", "ocpi", strict=True)),
    }
)
#: Names of other letters that are drawn as a Latin one, such as a small capital U or an O WITH
#: STROKE, and of signs.
_LETTER = (
    r"(?:LATIN|REGIONAL INDICATOR|NEGATIVE (?:SQUARED|CIRCLED)) .*?LETTER (?:[A-Z]+ )*"
    r"([A-Z])(?:LPHA|OTA|PSILON)?(?: WITH .*)?"
)
_SIGNS = (
    (r"(?:.* )?COLON", ":"),
    (r"(?:.* )?LEFT .*BRACKET(?: .*)?", "["),
    (r"(?:.* )?RIGHT .*BRACKET(?: .*)?", "]"),
    (r"(?:.* )?(?:DASH|HYPHEN|MINUS SIGN)", "-"),
)
#: What Markdown and HTML show as something else, or not at all.
_MARKUP = ("<", "&", "\\", "](", "*", "~~", "`")
_COMMENT = r"(?s)<!--.*?-->"
_TAGS_OF_ONE_PLACE = r"((?:</?[A-Za-z][^<>]*>|<[!?][^<>]*>)+)([^\S\n]*)"
_TAG = r"<(/?[a-z]+[1-6]?)"
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?"
_LINK = r"!?\[([^\[\]\n]*)\]\([^()\n]*\)"
_MARKS_IN_WORD = r"(?<=\w)(?:[*`]+|~~)(?=\w)"
_BACKSLASH = r"\\(?=[!-/:-@\[-`{-~])"
_EMPHASIS = frozenset("b strong i em u code tt kbd".split())
_HEADING = frozenset("h1 h2 h3 h4 h5 h6".split())
#: Elements that begin a line.
_BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset "
    "figcaption figure footer form header hr html legend li main menu nav ol option p pre section "
    "summary table tbody td tfoot th thead title tr ul".split()
)


@lru_cache(128)  # while a window is filled, the same turns are printed repeatedly
def has_forged_line(text: str) -> bool:
    """Return whether a line of a turn could be read as a role, title, day or frame of a context.

    A line is compared as it is drawn, and as Markdown and HTML show it.
    """
    if _is_forged(text):
        return True
    rendered = _render(text) if any(sign in text for sign in _MARKUP) else text
    return rendered != text and _is_forged(rendered)


def _is_forged(text: str) -> bool:
    text = "\n".join(text.splitlines())
    if not text.isascii():
        text = re.sub(_HIDDEN, "", normalize("NFKD", text))
        text = text.translate({ord(sign): _drawn_as(sign) for sign in set(text) if sign > "\x7f"})
    text = _ESCAPES.sub("", text).translate(_ASCII_CONTROLS)
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return False
    text = _BLANKS.sub(" ", text)
    return bool(re.search(_LINE, text) or re.search(_FRAME, text))


@lru_cache(4096)
def _drawn_as(sign: str) -> str:
    """Return the ASCII character that a character is drawn as; else the character itself."""
    if (alike := _ALIKE.get(ord(sign))) is not None:
        return alike
    if (digit := decimal(sign, None)) is not None:
        return str(digit)
    called = name(sign, "")
    if letter := re.fullmatch(_LETTER, called):
        return letter[1].lower()
    return next((alike for form, alike in _SIGNS if re.fullmatch(form, called)), sign)


def _render(text: str) -> str:
    """Return a text without comments and tags, with its entities, links and escapes resolved."""
    from html import unescape

    # Behind the last end of a comment, each beginning would be searched for one.
    before, end, after = text.rpartition("-->")
    text = re.sub(_COMMENT, "", before + end) + after
    text = re.sub(_TAGS_OF_ONE_PLACE, _replace_tags, text)
    text = re.sub(_ENTITY, lambda entity: unescape(entity[0]), text)
    text = re.sub(_MARKS_IN_WORD, "", re.sub(_LINK, r"\1", text))
    return re.sub(_BACKSLASH, "", text)


def _replace_tags(tags: re.Match[str]) -> str:
    names = set(re.findall(_TAG, tags[1].lower()))
    if not _HEADING.isdisjoint(names):
        return "\n# "
    plain = {name.lstrip("/") for name in names}
    if not (_BLOCKS | _HEADING).isdisjoint(plain):
        return "\n*" if not _EMPHASIS.isdisjoint(plain) else "\n"
    around = tags.string[tags.start() - 1 : tags.start()] + tags.string[tags.end() : tags.end() + 1]
    marks = not _EMPHASIS.isdisjoint(plain) and not (len(around) == 2 and around.isalnum())
    return ("*" if marks else "") + tags[2]
