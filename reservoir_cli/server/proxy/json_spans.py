"""Find the positions of values in a JSON text, to change one string and no other byte.

Anything unusual raises :class:`OddJSON`, and the text is then left unchanged.
"""

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class OddJSON(ValueError):
    """A text that is not JSON, or cannot be changed safely."""


class Span(NamedTuple):
    """A value and its position in the text."""

    value: Any
    start: int
    end: int


class Document(NamedTuple):
    """The top-level object of a text: its members, and the elements of the requested lists."""

    members: dict[str, Span]
    items: dict[str, list[Span]]


def read_document(text: str, *lists: str) -> Document:
    """Read an object, and some of its ``lists`` by element; of duplicate keys the last one counts.

    :raises OddJSON: the text is not an object, or one of these keys is duplicate.
    """
    items: dict[str, list[Span]] = {}
    try:
        members = {}
        at = _skip_space(text, 0)
        for key, span in _members(text, at, lists, items):
            if key in lists and key in members:
                raise OddJSON(f"two members {key!r}"[:80])
            members[key] = span
            at = span.end
        return Document(members, items)
    except (ValueError, IndexError, RecursionError) as error:
        raise OddJSON("not one JSON object") from error


def string_end(text: str, span: Span, *path: str | int) -> int:
    """Return the position of the closing quote of the string at a path of keys and indexes.

    :raises OddJSON: there is no such string, or a key of the path is duplicate.
    """
    try:
        for step in path:
            matches = [child for key, child in _children(text, span) if key == step]
            if len(matches) != 1:
                raise OddJSON("no single value there")
            span = matches[0]
        if not isinstance(span.value, str):
            raise OddJSON("no string there")
        return span.end - 1
    except (ValueError, IndexError, RecursionError) as error:
        raise OddJSON("no string there") from error


def _children(text: str, span: Span) -> Iterator[tuple[str | int, Span]]:
    if text[span.start] == "{":
        yield from _members(text, span.start, (), {}, whole=False)
    elif text[span.start] == "[":
        yield from enumerate(_elements(text, span.start))


def _members(
    text: str, at: int, lists: tuple[str, ...], items: dict[str, list[Span]], *, whole: bool = True
) -> Iterator[tuple[str, Span]]:
    if text[at] != "{":
        raise OddJSON("not an object")
    at = _skip_space(text, at + 1)
    while text[at] != "}":
        if text[at] != '"':
            raise OddJSON("no key")
        key, at = scanstring(text, at + 1, True)
        at = _skip_space(text, at)
        if text[at] != ":":
            raise OddJSON("no value")
        at = _skip_space(text, at + 1)
        if key in lists and text[at] == "[":
            items[key] = list(_elements(text, at))
            at_end = items[key][-1].end if items[key] else at + 1
            end = _skip_space(text, at_end) + 1
            yield key, Span([item.value for item in items[key]], at, end)
        else:
            value, end = _DECODER.raw_decode(text, at)
            yield key, Span(value, at, end)
        at = _next_position(text, end, "}")
    if whole and _skip_space(text, at + 1) != len(text):
        raise OddJSON("trailing text")


def _elements(text: str, at: int) -> Iterator[Span]:
    at = _skip_space(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield Span(value, at, end)
        at = _next_position(text, end, "]")


def _next_position(text: str, at: int, close: str) -> int:
    at = _skip_space(text, at)
    if text[at] == close:
        return at
    if text[at] != ",":
        raise OddJSON("no comma")
    at = _skip_space(text, at + 1)
    if text[at] == close:
        raise OddJSON("trailing comma")
    return at


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match
    return match.end()


def insert(text: str, insertions: dict[int, str]) -> str:
    """Insert texts into strings of a JSON text, at positions from :func:`string_end`."""
    pieces, last = [], 0
    for at, addition in sorted(insertions.items()):
        pieces += [text[last:at], json.dumps(addition, ensure_ascii=False)[1:-1]]
        last = at
    return "".join([*pieces, text[last:]])
