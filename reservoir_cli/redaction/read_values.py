"""Read the value that follows a name such as ``password:``, to its end."""

import re
from typing import NamedTuple

from reservoir_cli.redaction.false_alarms import is_scrambled

#: Where unquoted values end. A password may contain most punctuation.
_UNQUOTED = re.compile(
    r"(?:[^\s\"'`\\,;<>(){}\[\]|，。；、！？）】」』”&]|&(?![\w.-]{1,40}=))+"  # &: of a form
)
#: What may stand between the sign after the name and the value: blanks, the type of a string.
_BEFORE = re.compile(
    r"[ \t]{0,40}(?:\{\s{0,20}[\"']value[\"']\s?:\s?)?"
    # Some("value"), SecretStr("value"): a type, which begins with a capital
    r"(?:(?:(?:String::from|[a-z]\w{0,20}\.String(?:Ptr)?|[A-Z]\w{0,30})?\(|\[)(?=\s?[\"']))?"
    r"(?:!!str[ \t]{1,3}|[bfrunBFRUN@]{1,2}(?=[\"'])|\$(?=[\"'])|\*{1,2})?",
)
_QUOTE = re.compile(r"\"\"\"|'''|\\{1,8}[\"'`]|&quot;|%22|%27|[\"'`“„«‘「『]")
_CLOSING = {"“": "”", "„": "“", "«": "»", "‘": "’", "「": "」", "『": "』"}
#: A literal block of YAML, or a value on the next line.
_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]*\n(?=([ \t]+)\S)")
#: Between two parts of one value: a sign that joins texts, or the end of a line; nothing, or what a
#: shell needs, where a quote is doubled.
_JOINT = re.compile(
    r"(?<=\")(?=\")|(?<=')(?:\\')?(?=')"
    r"|[ \t]{0,9}(?:(?:->|\+|\.{1,2}|&|\\)[ \t]{0,9}\n?|\n)[ \t]{0,40}(?=[\"'`])"
)
#: Before the value that is used if the first one, a variable, is not set.
_DEFAULT = re.compile(r"[ \t]?(?:\|\||\?\?|or)[ \t]?([\"'`])")
_CONTINUED = re.compile(r"\\\n[ \t]{0,9}")
#: A further line of a long value in base64.
_WRAPPED = re.compile(r"\r?\n[ \t]{0,40}([A-Za-z0-9+/]{16,}={0,2})(?=\s|$)")
_LINE_LENGTHS = (60, 64, 72, 76)
_MOST_PARTS = 200
#: The line of a file of settings, in which the value ends with the line.
_SETTING = re.compile(r"(?:^|\n)[ \t+-]{0,9}(?:export[ \t]{1,3}|set[ \t]{1,3})?[A-Z][A-Z0-9_]*=$")
#: The line of a file of settings whose value may contain blanks.
_INI = re.compile(r"(?:^|\n)[a-z][a-z0-9_.-]{0,60}[ \t]?=[ \t]?$")
_PHRASE = re.compile(r"\w+(?: \w+){2,11}(?=[ \t]*(?:\n|$))")
_REST = re.compile(r"[^\s\"'`=:()]*")
#: A value with brackets: up to a blank, a quote or the next name, as in "a;name=b".
_RUN = re.compile(r"(?:[^\s\"'`\\;&]|[;&](?![\w .-]{1,40}=)){1,300}")
_REACH = 120  #: The longest part of a line before a value that is looked at.


class Value(NamedTuple):
    """A value: the spans of its parts, whether it is quoted, and what follows it."""

    spans: list[tuple[int, int]]
    quoted: bool
    end: int


def read_value(text: str, start: int) -> Value | None:
    """Return the value at a position of a text, up to its end; None if there is none."""
    before = _BEFORE.match(text, start)
    position = before.end() if before else start
    if block := _BLOCK.match(text, position):
        return _read_block(text, block.end(), block[1])
    if quote := _QUOTE.match(text, position):
        if value := _read_quoted(text, quote.end(), quote[0]):
            return value
        position = quote.end()
    return _read_unquoted(text, position)


def _read_quoted(text: str, start: int, quote: str) -> Value | None:
    spans: list[tuple[int, int]] = []
    closing = _CLOSING.get(quote, quote)
    while len(spans) < _MOST_PARTS:
        end = _find_closing(text, start, closing)
        if end <= start:
            break
        spans.append((start, end))
        joint = _JOINT.match(text, end + len(closing))
        if not joint or not text.startswith(quote, joint.end()):
            break
        start = joint.end() + len(quote)
        after = _find_closing(text, start, closing) + len(closing)
        if after < start or text[after : after + 3].lstrip().startswith((":", "=")):
            break  # the next name
    return Value(spans, True, spans[-1][1] + len(closing)) if spans else None


def _find_closing(text: str, start: int, closing: str) -> int:
    """Return the position of the closing quote in the same line, or -1."""
    line_end = text.find("\n", start)
    end = text.find(closing, start, line_end if line_end >= 0 else len(text))
    while end > start and text[end - 1] == "\\":
        backslashes = end - start - len(text[start:end].rstrip("\\"))
        if len(closing) == 1 and backslashes % 2 == 0:
            break  # an escaped backslash; of \\\", all of it escapes, as the closing one is \"
        end = text.find(closing, end + 1, line_end if line_end >= 0 else len(text))
    return end


def _read_unquoted(text: str, start: int) -> Value | None:
    match = _UNQUOTED.match(text, start)
    if not match:
        end = _end_of_scrambled(text, start)
        return Value([(start, end)], False, end) if end > start else None
    if (default := _DEFAULT.match(text, match.end())) and (
        value := _read_quoted(text, default.end(), default[1])
    ):
        return value
    if phrase := _read_phrase(text, start):
        return phrase
    spans = [(start, _rest_of_setting(text, start, match.end()))]
    end = spans[0][1]
    joint = _CONTINUED.match(text, end)
    while joint and len(spans) < _MOST_PARTS and (match := _UNQUOTED.match(text, joint.end())):
        spans.append(match.span())
        joint = _CONTINUED.match(text, match.end())
    length = spans[-1][1] - spans[-1][0]
    while length in _LINE_LENGTHS and len(spans) < _MOST_PARTS:
        wrapped = _WRAPPED.match(text, spans[-1][1])
        if not wrapped:
            break
        spans.append(wrapped.span(1))
        length = wrapped.end(1) - wrapped.start(1)
    return Value(spans, False, spans[-1][1])


def _read_phrase(text: str, start: int) -> Value | None:
    phrase = _PHRASE.match(text, start)
    if not phrase or not _INI.search(text[max(0, start - _REACH) : start]):
        return None
    return Value([phrase.span()], True, phrase.end())


def _rest_of_setting(text: str, start: int, end: int) -> int:
    """Return where an unquoted value ends: in a file of settings only with its line."""
    if end >= len(text) or text[end].isspace() or text[end] in "\"'`":
        return end
    if (whole := _end_of_scrambled(text, start)) > end:
        return whole
    if text[end] in "([{":
        return end
    if not _SETTING.search(text[max(0, start - _REACH) : start]):
        return end
    rest = _REST.match(text, end)
    further = rest.end() if rest else end
    if further < len(text) and not text[further].isspace():
        return end
    return max(end, start + len(text[start:further].rstrip(",;)}]>|\\")))


def _end_of_scrambled(text: str, start: int) -> int:
    """Return where a value with brackets ends, or its start if it looks like code."""
    run = _RUN.match(text, start)
    value = run[0].rstrip(".,;)}]>|") if run else ""
    return start + (len(value) if is_scrambled(value) else 0)


def _read_block(text: str, start: int, indent: str) -> Value:
    spans: list[tuple[int, int]] = []
    while len(spans) < _MOST_PARTS and text.startswith(indent, start):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        line = text[start:end]
        if line.strip():
            spans.append((start + len(line) - len(line.lstrip()), start + len(line.rstrip())))
        start = end + 1
    return Value(spans, True, spans[-1][1])
