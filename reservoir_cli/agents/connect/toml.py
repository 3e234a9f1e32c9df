"""Edit TOML in place, keeping comments, order and line endings."""

import json
import re
import tomllib
from typing import Any

from reservoir_cli.agents.connect.jsonc import Path, wrap

#: The byte order mark that some editors write at the beginning of a file.
_MARK = "\ufeff"

_HEADER = re.compile(r"^[ \t]*\[{1,2}([^\[\]\r\n]+)\]{1,2}[ \t]*(?:#[^\r\n]*)?\r?$", re.M)
#: A value that a comment may follow on its line.
_SIMPLE_VALUE = r"""\[[^\]\r\n]*\]|"[^"\\\r\n]*"|'[^'\r\n]*'"""


def loads(text: str) -> Any:
    """Parse a text.

    :raises ValueError: the text is not TOML.
    """
    return tomllib.loads(text.removeprefix(_MARK))


def comparable(data: Any) -> Any:
    """Return parsed data without its empty tables, to compare equivalent texts."""
    if not isinstance(data, dict):
        return data
    rest = {key: comparable(value) for key, value in data.items()}
    return {key: value for key, value in rest.items() if value != {}}


def assign(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; missing tables are added.

    :raises ValueError: the text is not TOML, or a container on the path is not a table.
    """
    if text.startswith(_MARK):
        return _MARK + assign(text.removeprefix(_MARK), path, value)
    wanted = loads(text)
    table = wanted
    for step in path[:-1]:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            raise ValueError(f"a table is expected at {step}")
    is_new = path[-1] not in table
    table[path[-1]] = value
    changed = text
    if not is_new:
        changed = _replace_line(text, path, value)
    elif isinstance(value, dict):
        changed = _append_table(text, path, value)
    return changed if _is_equivalent(changed, wanted) else _assign_with_tomlkit(text, path, value)


def remove(text: str, path: Path) -> str:
    """Return the text without the value at a path.

    :raises ValueError: the text is not TOML.
    :raises LookupError: the path does not exist.
    """
    if text.startswith(_MARK):
        return _MARK + remove(text.removeprefix(_MARK), path)
    wanted = loads(text)
    table = wanted
    for step in path[:-1]:
        table = table[step]
    del table[path[-1]]
    cut = _cut_tables(text, path)
    return cut if _is_equivalent(cut, wanted) else _remove_with_tomlkit(text, path)


def _append_table(text: str, path: Path, value: dict[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    name = ".".join(_key(str(step)) for step in path)
    lines = [f"[{name}]", *(f"{_key(key)} = {_value(item)}" for key, item in value.items())]
    end = "" if not text or text.endswith("\n") else newline
    gap = newline if text.strip() else ""
    return f"{text}{end}{gap}{newline.join(lines)}{newline}"


def _replace_line(text: str, path: Path, value: Any) -> str:
    """Replace the value of a key that has a line of its own."""
    key = re.escape(str(path[-1]))
    line = re.compile(rf"^([ \t]*{key}[ \t]*=[ \t]*)(?:{_SIMPLE_VALUE}|[^\r\n]*)", re.M)
    for header in _HEADER.finditer(text):
        if _header_path(text, header) == path[:-1] and (match := line.search(text, header.end())):
            return text[: match.end(1)] + _value(value) + text[match.end() :]
    return text


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    """Return a string, a number or an array of these as TOML, which is the same as JSON here."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _cut_tables(text: str, path: Path) -> str:
    """Remove a table and its subtables, each with the blank line before it."""
    end = len(text)
    for header in reversed(list(_HEADER.finditer(text))):
        start = header.start()
        if _header_path(text, header)[: len(path)] == path:
            text = _cut_lines(text, start, end)
        end = start
    return text


def _cut_lines(text: str, start: int, end: int) -> str:
    """Remove lines and one blank line before them; keep their final blank lines and comments."""
    lines = text[start:end].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    before = text[:start]
    if before.strip():
        before = re.sub(r"(?<=\n)\r?\n\Z", "", before)
    return before + text[start + sum(map(len, lines)) :]


def _header_path(text: str, header: re.Match[str]) -> Path:
    """Return the keys of a table's header; none if the line is inside a multi-line string."""
    keys: list[str] = []
    try:
        loads(text[: header.start()])
        table = loads(f"[{header[1]}]")
    except ValueError:
        return ()
    while table:
        keys.append(next(iter(table)))
        table = table[keys[-1]]
    return tuple(keys)


def _is_equivalent(text: str, wanted: Any) -> bool:
    try:
        return bool(comparable(loads(text)) == comparable(wanted))
    except ValueError:
        return False


def _assign_with_tomlkit(text: str, path: Path, value: Any) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        table: Any = document
        for depth, step in enumerate(path[:-1]):
            if step not in table:
                table[step] = wrap(path[depth + 1 :], value)
                break
            table = table[step]
        else:
            table[path[-1]] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, TypeError) as error:
        raise ValueError(str(error)) from None


def _remove_with_tomlkit(text: str, path: Path) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    for step in path[:-1]:
        table = table[step]
    del table[path[-1]]
    return tomlkit.dumps(document)
