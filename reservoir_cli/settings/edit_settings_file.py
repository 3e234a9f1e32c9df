"""Edit settings in the settings file, and change nothing else in it; comments stay."""

import io
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.settings import projects
from reservoir_cli.settings.models import match_name
from reservoir_cli.settings.read_settings_file import Contents, contents_of, read, read_text
from reservoir_cli.settings.schema import ALIASES, Value, aliases_of, from_alias, setting_of
from reservoir_cli.settings.setting_keys import (
    GROUPS,
    OTHER_TABLES,
    quoted_parts,
    split_key,
    split_written_key,
)
from reservoir_cli.settings.setting_values import check_value, is_duration, parse_value
from reservoir_cli.settings.single_settings import MCP
from reservoir_cli.util.private_files import (
    exclusive_lock,
    make_private_dir,
    resolve_path,
    write_private,
)

_Change = tuple[str | None, str | None, str, Value]
#: Returns a TOML text with changes applied.
_Edit = Callable[[str, list[_Change]], str]


def edit(path: Path, changes: Mapping[str, str | None]) -> None:
    """Apply all changes to the settings file, or none, keeping comments and order.

    :param changes: the new text of each dotted key, or ``None`` to remove it.
    :raises UsageError: a name or value is invalid, or the file cannot be edited.
    """
    if not any(text is not None for text in changes.values()):
        try:
            read(path, required=False)
            for key in changes:
                split_key(key)
        except UsageError as error:
            _remove_keys(path, list(changes), error)
            return
    parsed = _parse_changes(changes)
    _change(path, lambda contents: [_as_in_file(contents, change) for change in parsed])


def _as_in_file(contents: Contents, change: _Change) -> _Change:
    """Return a change of a folder's partition for the entry that the file has of that folder."""
    table, name, key, value = change
    if table == projects.TABLE:
        key = projects.written_as(contents.projects, key)
    return table, name, key, value


def _parse_changes(changes: Mapping[str, str | None]) -> list[_Change]:
    """Parse changes; among several names of a setting its current name wins."""
    parsed: dict[tuple[str | None, str | None, str], _Change] = {}
    own_last = sorted(changes, key=lambda key: split_written_key(key)[2] not in ALIASES)
    for key in own_last:
        change = _parse_change(key, changes[key])
        parsed[change[:3]] = change
    return list(parsed.values())


def _parse_change(key: str, text: str | None) -> _Change:
    table, name, written = split_written_key(key)
    setting = setting_of(written)
    if text is None:
        return table, name, setting, None
    if table in OTHER_TABLES:
        return table, name, setting, OTHER_TABLES[table](setting, text)
    value = from_alias(written, parse_value(written, text, key))
    if setting == "partition":
        check_name(str(value))
    return table, name, setting, text.strip() if is_duration(setting) else value


def contents_after(path: Path, changes: Mapping[str, str | None]) -> Contents:
    """Return the contents the file would have after changes, without writing it.

    :raises UsageError: a name or value is invalid, or the file cannot be read.
    """
    parsed = _parse_changes(changes)
    return _apply(read(path, required=False), parsed)


def is_absent(path: Path, key: str) -> bool:
    """Return whether a settings file does not set a key, so that unsetting it changes nothing."""
    try:
        contents = read(path, required=False)
        change = _as_in_file(contents, _parse_change(key, None))
        changed = _apply(deepcopy(contents), [change])
        return _without_empty(changed) == _without_empty(contents)
    except UsageError:
        return False


def _remove_keys(path: Path, keys: list[str], error: UsageError) -> None:
    """Remove keys from an invalid file, or unknown keys from a valid one.

    :param error: the error to raise on failure.
    :raises UsageError: the keys are not in the file, or it is not TOML.
    """
    from tomlkit.exceptions import TOMLKitError

    try:
        text = read_text(path, required=False)
        for key in keys:
            parts = quoted_parts(key) if '"' in key or "'" in key else key.split(".")
            joined = [parts[0], ".".join(parts[1:-1]), parts[-1]]
            without = (remove_lines(text, names) for names in (parts, joined))
            after = next((after for after in without if after is not None), None)
            if after is None:
                raise error
            text = after
        _write(path, text)
    except (TOMLKitError, ValueError, RecursionError, OSError):
        raise error from None


def rename_partition(path: Path, old: str, new: str, *, table: bool = True) -> bool:
    """Rename a partition's table in the file, unless the new name already has one.

    Its projects and its entry in ``[mcp]`` are renamed in any case.

    :param table: whether to rename its table.
    :returns: whether a table was renamed.
    :raises UsageError: the file cannot be edited; nothing changes.
    """
    moved: list[tuple[str, Value]] = []

    def changes_of(contents: Contents) -> list[_Change]:
        if table and not contents.partitions.get(new):
            moved.extend(contents.partitions.get(old, {}).items())
        added: list[_Change] = [("partitions", new, *entry) for entry in moved]
        folders = [folder for folder, name in contents.projects.items() if name == old]
        added += [(projects.TABLE, None, folder, new) for folder in folders]
        if old in (names := contents.mcp.get(MCP.name, ())):
            renamed: Any = list(dict.fromkeys(new if name == old else name for name in names))
            added.append((MCP.table, None, MCP.name, renamed))
        return [*added, *(("partitions", old, key, None) for key, _ in moved)]

    _change(path, changes_of, (partial(_rename_header, old=old, new=new),))
    return bool(moved)


def add_sources(path: Path, sources: Mapping[str, Mapping[str, Value]]) -> None:
    """Add or change ``[sources.NAME]`` tables.

    :raises UsageError: the file cannot be edited; nothing changes.
    """
    changes = [
        ("sources", name, key, value)
        for name, table in sources.items()
        for key, value in table.items()
    ]
    _change(path, lambda _: list(changes))


def move_sources(path: Path, old: str, new: str) -> list[str]:
    """Change the partition of all sources that belong to another one.

    :returns: the names of the changed sources.
    :raises UsageError: the file cannot be edited; nothing changes.
    """
    moved: list[str] = []

    def changes_of(contents: Contents) -> list[_Change]:
        sources = contents.sources.items()
        moved.extend(name for name, table in sources if table.get("partition") == old)
        return [("sources", name, "partition", new) for name in moved]

    _change(path, changes_of)
    return moved


def _change(
    path: Path, changes_of: Callable[[Contents], list[_Change]], ways: Sequence[_Edit] = ()
) -> None:
    """Change the settings file.

    :param changes_of: returns the changes for the contents of the file.
    :param ways: functions that are tried before those that suit all changes.
    """
    try:
        make_private_dir(resolve_path(path).parent)
        with exclusive_lock(resolve_path(path).parent):
            before = read_text(path, required=False)
            # An invalid file is reported, not overwritten.
            contents = contents_of(path, before)
            changes = changes_of(contents)
            wanted = _apply(contents, changes)
            if changes:
                _write(path, _edit_text(path, before, changes, wanted, ways))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            hint="check the disk space and the permissions of the folder",
        ) from None


def _write(path: Path, text: str) -> None:
    """Write the text of the file with the line endings that it has."""
    if path.is_file() and b"\r\n" in path.read_bytes():
        text = text.replace("\n", "\r\n")
    write_private(path, text)


def _apply(contents: Contents, changes: list[_Change]) -> Contents:
    """Apply changes to contents in place, and return them."""
    for table, name, setting, value in changes:
        group = contents.table(table)
        key = (match_name(name or "", group) if table == "models" else None) or name or ""
        values = group.setdefault(key, {})
        values.pop(setting, None)
        if value is not None:
            is_checked = table in OTHER_TABLES
            values[setting] = value if is_checked else check_value(setting, value, setting)
    return contents


def _edit_text(
    path: Path, text: str, changes: list[_Change], wanted: Contents, ways: Sequence[_Edit]
) -> str:
    """Return the new text of the file, which differs only by the changes.

    :raises UsageError: the file cannot be edited safely.
    """
    if not text.strip():
        return _new_file(changes)
    text = text if text.endswith("\n") else f"{text}\n"  # tomlkit may append to the last line
    return _first_edit(path, text, changes, _without_empty(wanted), (*ways, *_EDITS, _one_by_one))


def _first_edit(
    path: Path, text: str, changes: list[_Change], wanted: Contents, ways: Sequence[_Edit]
) -> str:
    """Return the text as edited in the first way that gives the wanted contents.

    :raises UsageError: none of them does.
    """
    # tomlkit keeps comments and order; it is imported only to edit an existing file.
    from tomlkit.exceptions import TOMLKitError

    for edit_text in ways:
        try:
            after = edit_text(text, changes)
            if _without_empty(contents_of(path, after)) == wanted:
                return after
        except (TOMLKitError, UsageError, ValueError, TypeError, KeyError, AttributeError):
            continue
    raise UsageError(
        f"cannot change {path} without touching other settings", hint="edit the file by hand"
    )


def _new_file(changes: list[_Change]) -> str:
    import tomli_w

    document: dict[str, Any] = {}
    for table, name, setting, value in changes:
        if value is not None:
            values = document
            for part in (table, name):
                values = values if part is None else values.setdefault(part, {})
            values[setting] = value
    return tomli_w.dumps(document)


def _edit_in_place(text: str, changes: list[_Change]) -> str:
    import tomlkit

    for table, name, _, _ in changes:
        if table and name and "." in name:
            text = _quote_header(text, table, name)
    document = tomlkit.parse(text)
    renamed: dict[str, tuple[str, str, Value]] = {}
    for table, name, setting, value in changes:
        entries: Any = document
        group: Any = None
        if table is not None:
            if value is None and not document.get(table):
                continue
            group = document.setdefault(table, tomlkit.table(name is not None))
            # The file may use another name of the same model.
            key = match_name(name or "", group) if table == "models" else None
            inline = isinstance(group, tomlkit.items.InlineTable)
            new = tomlkit.inline_table() if inline else tomlkit.table()
            entries = group if name is None else group.setdefault(key or name, new)
        if value is not None:
            renamed |= _set_in_place(entries, setting, value)
            continue
        for written in (setting, *aliases_of(setting)):
            entries.pop(written, None)
        if group is not None and not entries.as_string().strip(" {}\n"):  # nor any comment
            (document if name is None else group).pop(key or name or table)
    return _rename_keys(tomlkit.dumps(document), renamed)


def _set_in_place(entries: Any, setting: str, value: Value) -> dict[str, tuple[str, str, Value]]:
    """Set a value, on the line of an alias if the file has one.

    :returns: the alias, the setting and the value, by the placeholder that was written instead.
    """
    aliases = [alias for alias in aliases_of(setting) if alias in entries]
    for alias in aliases if setting in entries else aliases[1:]:
        entries.pop(alias)
    if setting in entries or not aliases:
        entries[setting] = value
        return {}
    mark = f"value of {setting}, {os.urandom(16).hex()}"
    entries[aliases[0]] = mark
    return {mark: (aliases[0], setting, value)}


def _rename_keys(text: str, renamed: Mapping[str, tuple[str, str, Value]]) -> str:
    """Replace placeholders and their keys, since tomlkit cannot rename a key in place."""
    import tomlkit

    for mark, (alias, setting, value) in renamed.items():
        before, placeholder, rest = text.partition(f'"{mark}"')
        if placeholder:
            line, equals, _ = before.rpartition("=")
            head = re.sub(rf"""(["']?){alias}\1(\s*)$""", rf"{setting}\2", line)
            text = f"{head}{equals} {tomlkit.item(value).as_string()}{rest}"
    return text


def _rename_header(text: str, changes: list[_Change], *, old: str, new: str) -> str:
    """Apply the changes of a renamed partition by renaming its header, which keeps comments."""
    import tomli_w

    header = tomli_w.dumps({"partitions": {new: {"redact": 0}}}).partition("\n")[0]
    lines = []
    for statement, names in _statements(text):
        is_header = statement.lstrip().startswith("[") and names[:1] == ("partitions",)
        if is_header and ".".join(names[1:]) == old:
            indent, _, rest = statement.partition("[")
            ends = (match.end() for match in re.finditer("]", rest))  # a name may have one
            end = next(at for at in ends if _is_toml(f"[{rest[:at]}"))
            statement = f"{indent}{header}{rest[end:]}"
        lines.append(statement)
    own = {("partitions", old), ("partitions", new)}
    others = [change for change in changes if change[:2] not in own]
    return _edit_in_place("".join(lines), others) if others else "".join(lines)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _append(text: str, changes: list[_Change]) -> str:
    """Append the changes as new tables, for files that use dotted keys."""
    tables = [change for change in changes if change[0] is not None]
    if len(tables) < len(changes) or any(change[3] is None for change in changes):
        raise ValueError("only new keys of tables can be appended")
    return f"{text.rstrip()}\n\n{_new_file(changes)}"


def _remove(text: str, changes: list[_Change]) -> str:
    """Remove the lines of the changes, for files that use dotted keys."""
    if any(change[3] is not None for change in changes):
        raise ValueError("only keys can be removed")
    for table, name, setting, _ in changes:
        for written in (setting, *aliases_of(setting)):
            names = [part for part in (table, name, written) if part is not None]
            text = remove_lines(text, names) or text
    return text


#: How a file is edited, in the order in which they are tried.
_EDITS: tuple[_Edit, ...] = (_edit_in_place, _append, _remove)


def _one_by_one(text: str, changes: list[_Change]) -> str:
    """Apply each change in the first way that has this effect, for files that need several."""
    for change in changes:
        wanted = _without_empty(_apply(contents_of(Path(), text), [change]))
        text = _first_edit(Path(), text, [change], wanted, _EDITS)
    return text


def _without_empty(contents: Contents) -> Contents:
    groups: dict[str, Any] = {
        group: {name: table for name, table in contents.table(group).items() if table}
        for group in GROUPS
    }
    return replace(contents, **groups)


def _quote_header(text: str, table: str, name: str) -> str:
    """Quote the name in a header, so that tomlkit recognises a name with dots."""
    dotted = r"\s*\.\s*".join(re.escape(part) for part in [table, *name.split(".")])
    return re.sub(
        rf"(?mi)^(\s*)\[\s*{dotted}\s*\]", lambda match: f'{match[1]}[{table}."{name}"]', text
    )


def remove_lines(text: str, path: Sequence[str]) -> str | None:
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
