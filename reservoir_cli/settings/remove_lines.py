"""Remove an entry or a table from the text of a TOML file, and keep the comments of all others."""

import io
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any


def remove(text: str, path: Sequence[str]) -> str | None:
    """Return a TOML text without an entry or a table.

    The comments inside a removed table are removed with it. Those between its last entry and the
    next table stay, except for lines right below the entry that a blank line separates from others.

    :param path: the names that lead to it.
    :returns: the new text; ``None`` if there is no such entry or table.
    :raises ValueError: the text is not TOML.
    """
    tomllib.loads(text)
    kept: list[str] = []
    after_entry: list[str] = []
    header: tuple[str, ...] = ()
    in_removed = removed_any = False
    for lines, names in _statements(text):
        if not names:
            (after_entry if in_removed else kept).append(lines)
            continue
        is_header = lines.lstrip().startswith("[")
        header = names if is_header else header
        full_path = names if is_header else header + names
        is_removed = full_path[: len(path)] == tuple(path)
        if is_removed:
            removed_any = True
        else:
            kept += [*_without_own_comments(after_entry, kept), lines]
        after_entry = []
        if is_header:
            in_removed = is_removed
    kept += _without_own_comments(after_entry, kept)
    return "".join(kept) if removed_any else _remove_inline(text, path)


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


def _remove_inline(text: str, path: Sequence[str]) -> str | None:
    """Remove an entry that shares its line with others, ``models = { a = { … }, b = { … } }``."""
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    for name in path[:-1]:
        table = table.get(name) if isinstance(table, dict) else None
    if not isinstance(table, dict) or path[-1] not in table:
        return None
    del table[path[-1]]
    return tomlkit.dumps(document)
