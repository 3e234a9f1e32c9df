"""Edit settings in the settings file, and change nothing else in it; comments stay."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.settings import projects
from reservoir_cli.settings.models import match_name
from reservoir_cli.settings.read_settings import Contents, contents_of, read, read_text
from reservoir_cli.settings.schema import DOCUMENTED_NAMES, GROUPS, TABLES
from reservoir_cli.settings.setting import Value
from reservoir_cli.settings.setting_keys import quoted_parts, split_key
from reservoir_cli.util import edit_toml
from reservoir_cli.util.private_files import (
    exclusive_lock,
    make_private_dir,
    resolve_path,
    write_private,
)

#: A table or ``None``, its name or ``None``, a setting, and the new value; ``None`` removes it.
_Change = tuple[str | None, str | None, str, Value]


def edit(path: Path, changes: Mapping[str, str | None]) -> None:
    """Apply all changes to the settings file, or none, keeping comments and order.

    :param changes: the new text of each dotted key, or ``None`` to remove it.
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
    parsed: dict[tuple[str | None, str | None, str], _Change] = {}
    for key in sorted(changes, key=lambda key: key.rpartition(".")[2] not in DOCUMENTED_NAMES):
        change = _parse_change(key, changes[key])
        parsed[change[:3]] = change
    return list(parsed.values())


def _parse_change(key: str, text: str | None) -> _Change:
    table, name, setting = split_key(key)
    if text is None:
        return table, name, setting, None
    if table == projects.TABLE:
        return table, name, setting, projects.check_project(setting, text)
    declared = TABLES[table][setting]
    value = declared.parse(text, key)
    if setting == "partition":
        check_name(str(value), key)
    return table, name, setting, text.strip() if declared.duration else value


def contents_after(path: Path, changes: Mapping[str, str | None]) -> Contents:
    """Return the contents the file would have after changes, without writing it."""
    return _apply(read(path, required=False), _parse_changes(changes))


def is_absent(path: Path, key: str) -> bool:
    """Return whether a settings file does not set a key, so that unsetting it changes nothing."""
    try:
        contents = read(path, required=False)
        table, name, setting, _ = _as_in_file(contents, _parse_change(key, None))
    except UsageError:
        return False
    return setting not in contents.table(table).get(_name_in(contents, table, name), {})


def _remove_keys(path: Path, keys: list[str], error: UsageError) -> None:
    """Remove keys from an invalid file, or unknown keys from a valid one."""
    try:
        text = read_text(path, required=False)
        for key in keys:
            parts = quoted_parts(key) if '"' in key or "'" in key else key.split(".")
            joined = [parts[0], ".".join(parts[1:-1]), parts[-1]]
            without = (edit_toml.remove(text, names) for names in (parts, joined))
            after = next((after for after in without if after is not None), None)
            if after is None:
                raise error
            text = after
        _write(path, text)
    except (ValueError, RecursionError, OSError):
        raise error from None


def rename_partition(path: Path, old: str, new: str, *, table: bool = True) -> bool:
    """Rename a partition's table, unless the new name has one, and what refers to it.

    :returns: whether a table was renamed.
    """
    moved: list[tuple[str, Value]] = []

    def changes_of(contents: Contents) -> list[_Change]:
        if table and not contents.partitions.get(new):
            moved.extend(contents.partitions.get(old, {}).items())
        changes: list[_Change] = [("partitions", old, key, None) for key, _ in moved]
        changes += [("partitions", new, *entry) for entry in moved]
        folders = [folder for folder, name in contents.projects.items() if name == old]
        changes += [(projects.TABLE, None, folder, new) for folder in folders]
        if old in (names := contents.mcp.get("partitions", ())):
            renamed: Any = list(dict.fromkeys(new if name == old else name for name in names))
            changes.append(("mcp", None, "partitions", renamed))
        return changes

    _change(path, changes_of, renamed=("partitions", old, new))
    return bool(moved)


def add_sources(path: Path, sources: Mapping[str, Mapping[str, Value]]) -> None:
    """Add or change ``[sources.NAME]`` tables."""
    changes = [
        ("sources", name, key, value)
        for name, table in sources.items()
        for key, value in table.items()
    ]
    _change(path, lambda _: list(changes))


def move_sources(path: Path, old: str, new: str) -> list[str]:
    """Change the partition of all sources of another one, and return their names."""
    moved: list[str] = []

    def changes_of(contents: Contents) -> list[_Change]:
        sources = contents.sources.items()
        moved.extend(name for name, table in sources if table.get("partition") == old)
        return [("sources", name, "partition", new) for name in moved]

    _change(path, changes_of)
    return moved


def _change(
    path: Path,
    changes_of: Callable[[Contents], list[_Change]],
    renamed: tuple[str, str, str] | None = None,
) -> None:
    """Change the settings file.

    :param renamed: a group, and the old and new name of a table whose header is renamed first,
        which keeps its comments.
    """
    try:
        make_private_dir(resolve_path(path).parent)
        with exclusive_lock(resolve_path(path).parent):
            before = read_text(path, required=False)
            # An invalid file is reported, not overwritten.
            changes = changes_of(contents_of(path, before))
            if changes:
                _write(path, _edit_text(path, before, changes, renamed))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            hint="check the disk space and the permissions of the folder",
        ) from None


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.stat().st_nlink > 1:  # replacing would separate it from these
        raise UsageError(
            f"{path} has another name as a hard link", hint="edit the file by hand, or copy it"
        )
    if path.is_file() and b"\r\n" in path.read_bytes():
        text = text.replace("\n", "\r\n")
    write_private(path, text)


def _apply(contents: Contents, changes: list[_Change]) -> Contents:
    for table, name, setting, value in changes:
        values = contents.table(table).setdefault(_name_in(contents, table, name), {})
        values.pop(setting, None)
        if value is not None:
            is_folder = table == projects.TABLE
            values[setting] = value if is_folder else TABLES[table][setting].check(value, setting)
    return contents


def _name_in(contents: Contents, table: str | None, name: str | None) -> str:
    """Return the name that the file uses for a table, which may be another name of a model."""
    match = match_name(name or "", contents.models) if table == "models" else None
    return match or name or ""


def _edit_text(
    path: Path, text: str, changes: list[_Change], renamed: tuple[str, str, str] | None
) -> str:
    target = _without_empty(_apply(contents_of(path, text), changes))
    try:
        if renamed:
            group, old, new = renamed
            if contents_of(path, text).table(group).get(old):
                text = edit_toml.rename_table(text, (group, old), (group, new))
        for change in changes:
            text = _edit_entry(path, text, change)
        if _without_empty(contents_of(path, text)) == target:
            return text
    except (ValueError, RecursionError):
        pass
    raise UsageError(
        f"cannot change {path} without touching other settings", hint="edit the file by hand"
    )


def _edit_entry(path: Path, text: str, change: _Change) -> str:
    table, name, setting, value = change
    contents = contents_of(path, text)
    before = [part for part in (table, name and _name_in(contents, table, name)) if part]
    for other, own in DOCUMENTED_NAMES.items():
        if own == setting:
            text = _remove(text, [*before, other])
    names = [*before, setting]
    if value is None:
        return _remove(text, names)
    path_of_table = next(_split_names(tomllib.loads(text), before), before)
    return edit_toml.set_value(text, [*path_of_table, setting], value)


def _remove(text: str, names: list[str]) -> str:
    for table in _split_names(tomllib.loads(text), names[:-1]):
        after = edit_toml.remove(text, [*table, names[-1]])
        if after is None:
            continue
        text = after
        if table and edit_toml.is_bare(text, table):
            without_table = edit_toml.remove(text, table)
            text = text if without_table is None else without_table
    return text


def _split_names(table: Any, names: list[str]) -> Iterator[list[str]]:
    """Yield the paths whose names, joined, are these: ``[models.gpt-4.1]`` is in ``gpt-4``."""
    if not names:
        yield []
        return
    for key, entry in table.items():
        if isinstance(entry, dict) and key == names[0]:
            yield from ([key, *rest] for rest in _split_names(entry, names[1:]))
        elif isinstance(entry, dict) and names[0].startswith(f"{key}."):
            rest_of_name = [names[0].removeprefix(f"{key}."), *names[1:]]
            yield from ([key, *rest] for rest in _split_names(entry, rest_of_name))


def _without_empty(contents: Contents) -> Contents:
    groups: dict[str, Any] = {
        group: {name: table for name, table in contents.table(group).items() if table}
        for group in GROUPS
    }
    return replace(contents, **groups)
