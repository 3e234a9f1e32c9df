"""Edit JSON with comments in place, without changing any byte outside the edited member."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]  #: A path to a value: names of members and positions in arrays.

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.S)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_MAX_DEPTH = 200  #: The deepest nesting that is read; settings have a few levels.


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    value: Any
    items: "list[_Item]" = field(default_factory=list)

    def item(self, step: str | int) -> "_Item | None":
        """Return the member with a name (the last one of several), or the element at an index."""
        if isinstance(step, int):
            return self.items[step] if step < len(self.items) else None
        return next((item for item in reversed(self.items) if item.key == step), None)


@dataclass(slots=True)
class _Item:
    """A member of an object or an element of an array, with the comma that follows it."""

    start: int
    key: str | None
    node: _Node
    comma: int | None = None


def loads(text: str, *, comments: bool = True, trailing_commas: bool = True) -> Any:
    """Parse a text; a blank text is an empty object."""
    if _skip_blank(text, 0) == len(text):
        return {}
    root = _parse(text)
    if not trailing_commas and (comma := _trailing_comma(root)) is not None:
        raise _unexpected(text, comma)
    if not comments:
        try:
            json.loads(text.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            raise _unexpected(text, error.pos) from None
    return root.value


def assign(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path, after the end of an array or in new containers."""
    if _skip_blank(text, 0) == len(text):
        text = f"{text}{'' if text.endswith(chr(10)) or not text.strip() else chr(10)}{{}}\n"
    node = _parse(text)
    for depth, step in enumerate(path):
        _require_container(node, step)
        item = node.item(step)
        if item is None:
            return _insert(text, node, step, wrap(path[depth + 1 :], value))
        node = item.node
    indent = _line_indent(text, node.start)
    return text[: node.start] + _dump(text, value, indent) + text[node.end :]


def remove(text: str, path: Path) -> str:
    """Return the text without the value at a path."""
    parent = _parse(text)
    for step in path[:-1]:
        item = parent.item(step)
        if item is None:
            raise LookupError(path)
        parent = item.node
    item = parent.item(path[-1])
    if item is None:
        raise LookupError(path)
    return _remove_item(text, parent, item)


def wrap(path: Sequence[str | int], value: Any) -> Any:
    """Return a value inside new containers, one for each step of a path."""
    for step in reversed(path):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _trailing_comma(node: _Node) -> int | None:
    for item in node.items:
        if (comma := _trailing_comma(item.node)) is not None:
            return comma
    return node.items[-1].comma if node.items else None


def _require_container(node: _Node, step: str | int) -> None:
    container = list if isinstance(step, int) else dict
    if not isinstance(node.value, container):
        kind = "an array" if container is list else "an object"
        raise ValueError(f"{kind} is expected where {json.dumps(node.value)[:20]} is")


def _insert(text: str, parent: _Node, step: str | int, value: Any) -> str:
    closing = parent.end - 1
    end = len(text[:closing].rstrip(_SPACE))
    end = max(end, parent.start + 1)
    label = "" if isinstance(step, int) else f"{json.dumps(step, ensure_ascii=False)}: "
    last = parent.items[-1] if parent.items else None
    if last is not None and "\n" not in text[parent.start : parent.end]:
        new = f" {label}{json.dumps(value, ensure_ascii=False)}"
        tail = text[end:]
    else:
        outer = _line_indent(text, parent.start)
        indent = _line_indent(text, last.start) if last else outer + _indent_unit(text)
        new = f"{_newline(text)}{indent}{label}{_dump(text, value, indent)}"
        tail = text[end:] if last else f"{_newline(text)}{outer}{text[closing:]}"
    if last is None:
        return text[:end] + new + tail
    if last.comma is not None:  # keep the style of trailing commas
        return f"{text[:end]}{new},{tail}"
    return f"{text[: last.node.end]},{text[last.node.end : end]}{new}{tail}"


def _remove_item(text: str, parent: _Node, item: _Item) -> str:
    index = parent.items.index(item)
    end = item.node.end if item.comma is None else item.comma + 1
    before = len(text[: item.start].rstrip(_SPACE))
    if (
        len(parent.items) == 1
        and not (text[parent.start + 1 : before] + text[end : parent.end - 1]).strip()
    ):
        return text[: parent.start + 1] + text[parent.end - 1 :]
    comma = parent.items[index - 1].comma if item.comma is None and index else None
    expected = [other.node.value for other in parent.items if other is not item]
    for start in (before, item.start):  # a line comment before the item needs its line break
        head = text[:start]
        if comma is not None:
            head = text[:comma] + text[comma + 1 : start]
        if _has_values(head + text[end:], parent.start, expected):
            break
    return head + text[end:]


def _has_values(text: str, start: int, expected: list[Any]) -> bool:
    try:
        _parse(text)
        node, _ = _read(text, start, 0)
    except ValueError:
        return False
    return [item.node.value for item in node.items] == expected


def _dump(text: str, value: Any, indent: str) -> str:
    dumped = json.dumps(value, ensure_ascii=False, indent=_indent_unit(text))
    return dumped.replace("\n", _newline(text) + indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_unit(text: str) -> str:
    indented = re.search(r"^([ \t]+)[\"\[{]", text, re.M)
    return indented[1] if indented else "  "


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _parse(text: str) -> _Node:
    node, end = _read(text, _skip_blank(text, 0), 0)
    if _skip_blank(text, end) != len(text):
        raise _unexpected(text, _skip_blank(text, end))
    return node


def _read(text: str, start: int, depth: int) -> tuple[_Node, int]:
    if depth > _MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    opening = text[start : start + 1]
    if opening == "{":
        return _read_items(text, start, "}", depth)
    if opening == "[":
        return _read_items(text, start, "]", depth)
    if opening == '"':
        value, end = _read_string(text, start)
        return _Node(start, end, value), end
    if scalar := _SCALAR.match(text, start):
        return _Node(start, scalar.end(), json.loads(scalar[0])), scalar.end()
    raise _unexpected(text, start)


def _read_string(text: str, start: int) -> tuple[str, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _unexpected(text, error.pos) from None


def _read_items(text: str, start: int, closing: str, depth: int) -> tuple[_Node, int]:
    items: list[_Item] = []
    position = _skip_blank(text, start + 1)
    while text[position : position + 1] != closing:
        if items and items[-1].comma is None:
            raise _unexpected(text, position)
        item = _read_item(text, position, closing, depth)
        items.append(item)
        position = _skip_blank(text, item.node.end)
        if text[position : position + 1] == ",":
            item.comma = position
            position = _skip_blank(text, position + 1)
    values = [item.node.value for item in items]
    keys = [item.key for item in items]
    value = dict(zip(keys, values, strict=True)) if closing == "}" else values
    return _Node(start, position + 1, value, items), position + 1


def _read_item(text: str, start: int, closing: str, depth: int) -> _Item:
    key, position = None, start
    if closing == "}":
        if text[start : start + 1] != '"':
            raise _unexpected(text, start)
        key, position = _read_string(text, start)
        position = _skip_blank(text, position)
        if text[position : position + 1] != ":":
            raise _unexpected(text, position)
        position = _skip_blank(text, position + 1)
    node, _ = _read(text, position, depth + 1)
    return _Item(start, key, node)


def _skip_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _unexpected(text: str, position: int) -> ValueError:
    line = text.count("\n", 0, position) + 1
    return ValueError(f"line {line} is not valid JSON")
