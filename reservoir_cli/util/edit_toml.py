"""Edit TOML texts in place: comments, order and notation of everything else stay.

Every result is read back, and compared with the old contents and the change.
"""

import io
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Path = Sequence[str]  #: The names that lead to an entry or a table.


def set_value(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; missing tables are added."""
    target = tomllib.loads(text)
    table = target
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"a table is expected at {name}")
    is_new_table = isinstance(value, dict) and path[-1] not in table
    first = _append_table if is_new_table else _replace_entry  # these leave all other lines alone
    table[path[-1]] = value
    text = text if not text or text.endswith("\n") else f"{text}\n"
    return _first_equal(target, (first, _set_in_place, _append_table), text, path, value)


def remove(text: str, path: Path) -> str | None:
    """Return the text without an entry or a table; ``None`` if it has none at this path.

    The comments inside a removed table are removed with it. Those between its last entry and the
    next table stay, except for lines right below the entry that a blank line separates from others.
    """
    target = tomllib.loads(text)
    parents = [target]
    for name in path[:-1]:
        table = parents[-1].get(name)
        if not isinstance(table, dict):
            return None
        parents.append(table)
    if path[-1] not in parents[-1]:
        return None
    del parents[-1][path[-1]]
    return _first_equal(target, (_remove_lines, _remove_inline), text, path)


def is_bare(text: str, path: Path) -> bool:
    """Return whether a table has neither entries nor comments."""
    table: Any = tomllib.loads(text)
    for name in path:
        table = table.get(name, {})
    inside = False
    for lines, names in _statements(text):
        if names:
            inside = names == tuple(path) and lines.lstrip().startswith("[")
        elif inside and lines.strip():
            return False
    return not table


def rename_table(text: str, old: Path, new: Path) -> str:
    """Return the text with the header of a table renamed; tables inside of it keep their names.

    :param old: the names in the header; those after the first may be split at any dots.
    """
    import tomli_w

    table: dict[str, Any] = {}
    for name in reversed(new):
        table = {name: table or {"x": 0}}
    header = tomli_w.dumps(table).partition("\n")[0]
    lines = []
    for statement, names in _statements(text):
        is_header = statement.lstrip().startswith("[") and names[:1] == tuple(old[:1])
        if is_header and ".".join(names) == ".".join(old):
            indent, _, rest = statement.partition("[")
            ends = (match.end() for match in re.finditer("]", rest))  # a name may have one
            end = next(at for at in ends if _is_toml(f"[{rest[:at]}"))
            statement = f"{indent}{header}{rest[end:]}"
        lines.append(statement)
    return "".join(lines)


def _first_equal(target: Any, ways: Sequence[Callable[..., str]], *arguments: Any) -> str:
    from tomlkit.exceptions import TOMLKitError

    for way in ways:
        try:
            after = way(*arguments)
            if without_empty_tables(tomllib.loads(after)) == without_empty_tables(target):
                return after
        except (TOMLKitError, ValueError, TypeError, KeyError, AttributeError):
            continue
    raise ValueError("its layout allows no change in place; edit the file by hand")


def without_empty_tables(data: Any) -> Any:
    """Return parsed data without its empty tables, to compare equivalent texts."""
    if not isinstance(data, dict):
        return data
    rest = {key: without_empty_tables(value) for key, value in data.items()}
    return {key: value for key, value in rest.items() if value != {}}


def _replace_entry(text: str, path: Path, value: Any) -> str:
    import tomlkit

    header: tuple[str, ...] = ()
    statements = []
    for statement, names in _statements(text):
        if statement.lstrip().startswith("["):
            header = names
        elif names and (*header, *names) == tuple(path):
            entry: Any = tomlkit.parse(statement)
            table = entry
            for name in names[:-1]:
                table = table[name]
            table[names[-1]] = value
            statement = tomlkit.dumps(entry)
        statements.append(statement)
    return "".join(statements)


def _set_in_place(text: str, path: Path, value: Any) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    for depth, name in enumerate(path[:-1]):
        if name not in table:
            inline = isinstance(table, tomlkit.items.InlineTable)
            is_last = depth == len(path) - 2
            table[name] = tomlkit.inline_table() if inline else tomlkit.table(not is_last)
        table = table[name]
    table[path[-1]] = value
    return tomlkit.dumps(document)


def _append_table(text: str, path: Path, value: Any) -> str:
    """Append the value as a new table, or as an entry of one for texts that use dotted keys."""
    import tomlkit

    if len(path) < 2 and not isinstance(value, dict):
        raise ValueError("an entry of the top level cannot be appended")
    for name in reversed(path):
        value = {name: value}
    gap = "\n" if text.strip() else ""
    return f"{text}{gap}{tomlkit.dumps(value)}"


def _remove_lines(text: str, path: Path) -> str:
    kept: list[str] = []
    after_entry: list[str] = []
    header: tuple[str, ...] = ()
    in_removed = False
    for lines, names in _statements(text):
        if not names:
            (after_entry if in_removed else kept).append(lines)
            continue
        is_header = lines.lstrip().startswith("[")
        header = names if is_header else header
        full_path = names if is_header else header + names
        is_removed = full_path[: len(path)] == tuple(path)
        if not is_removed:
            kept += [*_without_own_comments(after_entry, kept), lines]
        after_entry = []
        if is_header:
            in_removed = is_removed
    rest = _without_own_comments(after_entry, kept)
    if in_removed and not rest and "".join(kept).strip() and not kept[-1].strip():
        kept.pop()  # the blank line before a table at the end
    return "".join([*kept, *rest])


def _remove_inline(text: str, path: Path) -> str:
    """Remove an entry that shares its line with others, ``models = { a = { … }, b = { … } }``."""
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    for name in path[:-1]:
        table = table[name]
    del table[path[-1]]
    return tomlkit.dumps(document)


def _statements(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of each statement with the names of its key or header; a comment has none."""
    lines = ""
    for line in io.StringIO(text):
        lines += line
        try:
            document = tomllib.loads(lines)
        except tomllib.TOMLDecodeError:  # the value continues on the next line
            continue
        yield lines, _names(document)
        lines = ""


def _names(document: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    while isinstance(document, dict) and len(document) == 1:
        [(name, document)] = document.items()
        names = (*names, name)
    return names


def _without_own_comments(lines: list[str], before: list[str]) -> list[str]:
    """Return the lines after a removed table without the comments that belong to its last entry."""
    blank = next((number for number, line in enumerate(lines) if not line.strip()), None)
    if blank is None:
        return lines
    needs_gap = bool(before) and bool(before[-1].strip())
    return lines[blank if needs_gap else blank + 1 :]


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
