"""Where values stand in a JSON text, so that one string can be changed and nothing else.

Values are read by the standard library's own scanner; only the way down to a string is walked
here. Whatever is odd raises :class:`OddJSON`, and the text is then left alone.
"""

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class OddJSON(ValueError):
    """A text that is no JSON, or not in a form that can be changed safely."""


class Span(NamedTuple):
    """A value and where it stands."""

    value: Any
    start: int
    end: int


class Document(NamedTuple):
    """An object at the top of a text.

    :param members: its values by key.
    :param items: the elements of the lists that were asked for, by key.
    """

    members: dict[str, Span]
    items: dict[str, list[Span]]


def read_document(text: str, *lists: str) -> Document:
    """Read a text that is one object.

    :param lists: keys whose value is read element by element if it is a list.
    :raises OddJSON: it is none, or a key of it stands twice.
    """
    items: dict[str, list[Span]] = {}
    try:
        members = {}
        at = _skip(text, 0)
        for key, span in _members(text, at, lists, items):
            if key in members:
                raise OddJSON(f"two members {key!r}"[:80])
            members[key] = span
            at = span.end
        return Document(members, items)
    except (ValueError, IndexError, RecursionError) as error:
        raise OddJSON("not one JSON object") from error


def string_end(text: str, span: Span, *path: str | int) -> int:
    """Return the position behind the last character of a string, before its closing quote.

    :param path: keys and indexes that lead from the value of the span to the string.
    :raises OddJSON: there is no such string, or a key on the way stands twice.
    """
    try:
        for step in path:
            found = [inner for key, inner in _inner(text, span) if key == step]
            if len(found) != 1:
                raise OddJSON("no single value there")
            span = found[0]
        if not isinstance(span.value, str):
            raise OddJSON("no string there")
        return span.end - 1
    except (ValueError, IndexError, RecursionError) as error:
        raise OddJSON("no string there") from error


def _inner(text: str, span: Span) -> Iterator[tuple[str | int, Span]]:
    if text[span.start] == "{":
        yield from _members(text, span.start, (), {}, whole=False)
    elif text[span.start] == "[":
        yield from enumerate(_elements(text, span.start))


def _members(
    text: str,
    at: int,
    lists: tuple[str, ...],
    items: dict[str, list[Span]],
    *,
    whole: bool = True,
) -> Iterator[tuple[str, Span]]:
    """Yield the members of an object.

    :param whole: nothing but space may stand behind it.
    """
    if text[at] != "{":
        raise OddJSON("no object")
    at = _skip(text, at + 1)
    while text[at] != "}":
        if text[at] != '"':
            raise OddJSON("no key")
        key, at = scanstring(text, at + 1, True)
        at = _skip(text, at)
        if text[at] != ":":
            raise OddJSON("no value")
        at = _skip(text, at + 1)
        if key in lists and text[at] == "[":
            items[key] = list(_elements(text, at))
            at_end = items[key][-1].end if items[key] else at + 1
            end = _skip(text, at_end) + 1
            yield key, Span([item.value for item in items[key]], at, end)
        else:
            value, end = _DECODER.raw_decode(text, at)
            yield key, Span(value, at, end)
        at = _next(text, end, "}")
    if whole and _skip(text, at + 1) != len(text):
        raise OddJSON("something behind the object")


def _elements(text: str, at: int) -> Iterator[Span]:
    at = _skip(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield Span(value, at, end)
        at = _next(text, end, "]")


def _next(text: str, at: int, close: str) -> int:
    """Return where the next member or element begins, or the end of the object or list."""
    at = _skip(text, at)
    if text[at] == close:
        return at
    if text[at] != ",":
        raise OddJSON("no comma")
    at = _skip(text, at + 1)
    if text[at] == close:
        raise OddJSON("nothing behind a comma")
    return at


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match
    return match.end()


def insert(text: str, insertions: dict[int, str]) -> str:
    """Insert texts into strings of a JSON text.

    :param insertions: by their positions, as :func:`string_end` returns them.
    """
    pieces, before = [], 0
    for at, addition in sorted(insertions.items()):
        pieces += [text[before:at], json.dumps(addition, ensure_ascii=False)[1:-1]]
        before = at
    return "".join([*pieces, text[before:]])
