"""Read the settings file, and edit it without changing anything else in it."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import mcp, paths, projects, proxy, upstreams
from reservoir_cli.settings.schema import (
    ALIASES,
    MODEL_ONLY,
    SETTINGS,
    SOURCE_KEYS,
    UPSTREAM_KEYS,
    Value,
    aliases_of,
    check_value,
    from_alias,
    is_duration,
    parse_value,
    resolve_aliases,
    setting_of,
)
from reservoir_cli.util.files import read_bounded
from reservoir_cli.util.private import exclusive_lock, make_private_dir, resolve_path, write_private

Tables = dict[str, dict[str, Value]]
#: Tables of tables.
GROUPS = ("partitions", "models", "sources", upstreams.TABLE)
_Change = tuple[str | None, str | None, str, Value]
#: The largest settings file accepted, in bytes.
_LARGEST = 1 << 20

#: Tables of the file that are not settings of partitions or models, and the check of an entry.
_OTHER_TABLES: Mapping[str | None, Callable[[str, Any], Any]] = {
    projects.TABLE: projects.check_project,
    mcp.TABLE: mcp.check_entry,
    proxy.TABLE: proxy.check_entry,
}

#: A key with balanced quotes, and a value.
_ASSIGNMENT = re.compile(r"""((?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])*)(=)(.*)""", re.DOTALL)

#: The hint for an invalid file.
_FIX_HINT = "fix it in an editor, or move it away: all settings then have their defaults"


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a settings file, by the current names of settings.

    :param values: top-level settings.
    :param partitions: ``[partitions.NAME]`` tables.
    :param models: ``[models.NAME]`` tables, by the name in the file.
    :param projects: ``[projects]``: partitions by folder.
    :param mcp: ``[mcp]``.
    :param sources: ``[sources.NAME]`` tables.
    :param proxy: ``[proxy]``.
    :param upstreams: ``[upstreams.NAME]`` tables.
    :param warnings: messages about ignored entries.
    """

    values: dict[str, Value] = field(default_factory=dict)
    partitions: Tables = field(default_factory=dict)
    models: Tables = field(default_factory=dict)
    projects: dict[str, Value] = field(default_factory=dict)
    mcp: dict[str, Any] = field(default_factory=dict)
    sources: Tables = field(default_factory=dict)
    proxy: dict[str, Value] = field(default_factory=dict)
    upstreams: Tables = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def table(self, group: str | None) -> Tables:
        """Return the tables of a group by name; a group that is one table has it under ''."""
        if group in GROUPS:
            tables: Tables = getattr(self, group)
            return tables
        return {"": getattr(self, group) if group else self.values}


def split_key(key: str) -> tuple[str | None, str | None, str]:
    """Split a dotted key into (one of :data:`GROUPS` or ``None``, name, setting).

    A folder of ``projects`` stands in place of the setting.

    Names may contain dots, ``models.gpt-3.5-turbo.reserve_tokens``, and quotes as in the file,
    ``models."my-model:7b".context_window``.

    :raises UsageError: there is no such setting, or it cannot be set in that table.
    """
    table, name, written = split_written_key(key)
    return table, name, setting_of(written)


def split_written_key(key: str) -> tuple[str | None, str | None, str]:
    """Split a dotted key like :func:`split_key`, but keep an alias.

    :raises UsageError: there is no such setting, or it cannot be set in that table.
    """
    if folder := projects.folder_of_key(key):
        return projects.TABLE, None, folder
    if key == mcp.KEY:
        return mcp.TABLE, None, mcp.PARTITIONS
    if key == proxy.KEY:
        return proxy.TABLE, None, proxy.STORE
    quoted = '"' in key or "'" in key
    parts = _quoted_parts(key) if quoted else key.split(".")
    table = parts[0] if parts[0] in GROUPS else None
    if table is None:
        name, written = None, ".".join(parts)
    elif len(parts) < 3 or not all(parts[1:]):
        raise UsageError(f"{key!r} is not a setting", hint=f"write {table}.NAME.SETTING=VALUE")
    else:
        name, written = ".".join(parts[1:-1]), parts[-1]
    known_key(written, table)
    if table == "partitions" and name and "/" in name and not quoted:
        partition = name.partition("/")[0]
        raise UsageError(
            f"instances have no settings: {key!r}",
            hint=f"set it for the partition: {table}.{partition}.{written}; if its name "
            f'contains /, quote it: {table}."{name}".{written}',
        )
    return table, name, written


def split_assignment(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``; an equals sign in quotes belongs to the key.

    :raises UsageError: there is no equals sign.
    """
    match = _ASSIGNMENT.fullmatch(text)
    key, equals, value = match.group(1, 2, 3) if match else text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not an assignment", hint="write --set KEY=VALUE")
    return key.strip(), value


def dotted_key(table: str, name: str, setting: str) -> str:
    """Join a dotted key, the inverse of :func:`split_key`."""
    if table == projects.TABLE:
        return f'{table}."{setting}"'
    if table in (mcp.TABLE, proxy.TABLE):
        return f"{table}.{setting}"
    if '"' in name or "'" in name or (table == "partitions" and "/" in name):
        import tomli_w

        name = tomli_w.dumps({name: 0}).removesuffix(" = 0\n")
    return f"{table}.{name}.{setting}"


def _quoted_parts(key: str) -> list[str]:
    """Split a dotted key as TOML does.

    :raises UsageError: the key is not valid TOML.
    """
    import tomllib

    parts: list[str] = []
    try:
        value: Any = tomllib.loads(f"{key} = 0")
        while isinstance(value, dict):
            ((part, value),) = value.items()
            parts.append(part)
    except ValueError:  # invalid TOML, or more than one key
        value = None
    if value != 0:
        raise UsageError(
            f"misplaced quotes in {key!r}",
            hint='put quotes around a whole name: TABLE."NAME".SETTING',
        )
    return parts


def read(path: Path, *, required: bool) -> Contents:
    """Read the settings, ``[partitions]`` and ``[models]`` of a file, and check every value.

    :param required: the file must exist; otherwise a missing file is empty.
    :raises UsageError: the file cannot be read, or has an invalid name or value.
    """
    return _read(path, _read_text(path, required=required))


def edit(path: Path, changes: Mapping[str, str | None]) -> None:
    """Apply all changes to the settings file, or none; comments and order are kept.

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
    parsed = _parsed_changes(changes)
    _change(path, lambda _: parsed)


def _parsed_changes(changes: Mapping[str, str | None]) -> list[_Change]:
    """Check changes; among several names of one setting its own wins."""
    parsed: dict[tuple[str | None, str | None, str], _Change] = {}
    own_last = sorted(changes, key=lambda key: split_written_key(key)[2] not in ALIASES)
    for key in own_last:
        change = _parsed_change(key, changes[key])
        parsed[change[:3]] = change
    return list(parsed.values())


def _parsed_change(key: str, text: str | None) -> _Change:
    table, name, written = split_written_key(key)
    setting = setting_of(written)
    if text is None:
        return table, name, setting, None
    if table in _OTHER_TABLES:
        return table, name, setting, _OTHER_TABLES[table](setting, text)
    value = from_alias(written, parse_value(written, text, key))
    return table, name, setting, _as_written(setting, value, text)


def contents_after(path: Path, changes: Mapping[str, str | None]) -> Contents:
    """Return the contents the file would have after changes, without writing it.

    :raises UsageError: a name or value is invalid, or the file cannot be read.
    """
    parsed = _parsed_changes(changes)
    return _changed(read(path, required=False), parsed)


def _remove_keys(path: Path, keys: list[str], error: UsageError) -> None:
    """Remove keys from an invalid file, or unknown keys from a valid one.

    :param error: the error to raise on failure.
    :raises UsageError: the keys are not in the file, or it is not TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(_read_text(path, required=False))
        for key in keys:
            parts = _quoted_parts(key) if '"' in key or "'" in key else key.split(".")
            joined = [parts[0], ".".join(parts[1:-1]), parts[-1]]
            table: Any = None
            for path_in_file in (parts, joined):
                table = document
                for part in path_in_file[:-1]:
                    table = table.get(part) if isinstance(table, dict) else None
                if isinstance(table, dict) and parts[-1] in table:
                    break
            else:
                raise error
            del table[parts[-1]]
        write_private(path, tomlkit.dumps(document))
    except (TOMLKitError, OSError):
        raise error from None


def rename_partition(path: Path, old: str, new: str, *, table: bool = True) -> bool:
    """Rename a partition's table in the file, unless the new name already has one.

    Its projects, and its place in ``[mcp]``, follow in any case.

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
        if old in (offered := contents.mcp.get(mcp.PARTITIONS, ())):
            renamed: Any = list(dict.fromkeys(new if name == old else name for name in offered))
            added.append((mcp.TABLE, None, mcp.PARTITIONS, renamed))
        return [*added, *(("partitions", old, key, None) for key, _ in moved)]

    _change(path, changes_of)
    return bool(moved)


def add_sources(path: Path, sources: Mapping[str, Mapping[str, Value]]) -> None:
    """Add ``[sources.NAME]`` tables, or change what they say.

    :raises UsageError: the file cannot be edited; nothing changes.
    """
    changes = [
        ("sources", name, key, value)
        for name, table in sources.items()
        for key, value in table.items()
    ]
    _change(path, lambda _: list(changes))


def move_sources(path: Path, old: str, new: str) -> list[str]:
    """Let the sources of a partition go to another one.

    :returns: their names.
    :raises UsageError: the file cannot be edited; nothing changes.
    """
    moved: list[str] = []

    def changes_of(contents: Contents) -> list[_Change]:
        named = contents.sources.items()
        moved.extend(name for name, table in named if table.get("partition") == old)
        return [("sources", name, "partition", new) for name in moved]

    _change(path, changes_of)
    return moved


def _change(path: Path, changes_of: Callable[[Contents], list[_Change]]) -> None:
    try:
        make_private_dir(resolve_path(path).parent)
        with exclusive_lock(resolve_path(path).parent):
            before = _read_text(path, required=False)
            # An invalid file is reported, not overwritten.
            contents = _read(path, before)
            changes = changes_of(contents)
            wanted = _changed(contents, changes)
            if changes:
                write_private(path, _edited(path, before, changes, wanted))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            hint="check the disk space and the permissions of the folder",
        ) from None


def _read(path: Path, text: str) -> Contents:
    if not text.strip():
        return Contents()
    try:
        return _parsed(path, text)
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply", hint=_FIX_HINT) from None


def _parsed(path: Path, text: str) -> Contents:
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}", hint=_FIX_HINT) from None
    except ValueError:  # raised by int() for thousands of digits
        raise UsageError(f"{path} has a number with too many digits", hint=_FIX_HINT) from None
    try:
        return _checked(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint or _FIX_HINT) from None


def _checked(document: Mapping[str, Any]) -> Contents:
    tables: dict[tuple[str | None, str], dict[str, Value]] = {}
    for group, name, key, value in _entries(document):
        where = dotted_key(group, name, key) if group else key
        table = tables.setdefault((group, name), {})
        if group in _OTHER_TABLES:
            table[key] = _OTHER_TABLES[group](key, value)
        else:
            _set_once(table, key, value, where)
    contents, warnings = Contents(), []
    for (group, name), written in tables.items():
        values, ignored = resolve_aliases(written)
        contents.table(group).setdefault(name, {}).update(values)
        prefix = f"[{group}.{name}] " if group else ""
        warnings += [f"{prefix}{old} is ignored: {new} is set, too" for old, new in ignored]
    return replace(contents, warnings=tuple(warnings))


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str | None, str, str, Any]]:
    """Yield group, table, written name and value of every entry of a document."""
    for key, value in document.items():
        if key not in (*GROUPS, *_OTHER_TABLES):
            known_key(key, None, otherwise=_FIX_HINT)
            yield None, "", key, value
        elif not isinstance(value, dict):
            header = key if key in _OTHER_TABLES else f"{key}.NAME"
            raise UsageError(f"{key} must be a table", hint=f"write [{header}]")
        elif key in _OTHER_TABLES:
            yield from ((key, "", name, entry) for name, entry in value.items())
        else:
            for name, written, entry in _flatten(key, value):
                yield key, name, written, entry


def _read_text(path: Path, *, required: bool) -> str:
    try:
        return read_bounded(path, _LARGEST).decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        if required:
            raise UsageError(
                f"there is no settings file {path}",
                hint=f"omit --config to use {paths.config_file()}, which need not exist",
            ) from None
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(
            f"cannot read the settings file {path}: {reason}", hint=_FIX_HINT
        ) from None


def _set_once(table: dict[str, Value], key: str, value: Any, where: str) -> None:
    if key in table:
        raise UsageError(f"{where} is set twice", hint="remove one of them in an editor")
    table[key] = check_value(key, value, where)


def _flatten(
    table: str, value: Mapping[str, Any], name: str = ""
) -> Iterator[tuple[str, str, Any]]:
    """Yield the settings of each named table; ``[models.gpt-3.5-turbo]`` is one name with a dot."""
    for key, entry in value.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(entry, dict):
            yield from _flatten(table, entry, inner)
        elif not name:
            raise UsageError(f"{table}.{key} must be a table", hint=f"write [{table}.NAME]")
        else:
            known_key(key, table, name, otherwise=_FIX_HINT)
            yield name, key, entry


def known_key(
    key: str,
    table: str | None,
    name: str | None = None,
    *,
    otherwise: str = "reservoir config --list shows all settings",
) -> str:
    """Return the setting for a name or an alias.

    :param table: one of :data:`GROUPS`, or ``None`` for the top level of the file.
    :param name: the name of the table, for the error.
    :param otherwise: the hint if no name is similar.
    :raises UsageError: there is no such setting in that table; the hint names similar ones.
    """
    key = setting_of(key)
    if table is None:
        allowed = list(SETTINGS)
    elif table == "sources":
        allowed = list(SOURCE_KEYS)
    elif table == upstreams.TABLE:
        allowed = list(UPSTREAM_KEYS)
    else:
        kind = "partition" if table == "partitions" else "model"
        allowed = [setting for setting, field in SETTINGS.items() if field.metadata[kind]]
        allowed += list(MODEL_ONLY) if table == "models" else []
    if key in allowed:
        return key
    import difflib

    near = difflib.get_close_matches(key, [*allowed, *ALIASES], 3)
    near = [f"{alias} (now {setting_of(alias)})" if alias in ALIASES else alias for alias in near]
    location = f" in [{table}.{name}]" if name else f" for {table}" if table else ""
    raise UsageError(
        f"unknown setting {key!r}{location}",
        hint=f"did you mean {', '.join(near)}?" if near else otherwise,
    )


def _changed(contents: Contents, changes: list[_Change]) -> Contents:
    """Apply changes to contents, and return them."""
    from reservoir_cli.settings.models import match_name

    for table, name, setting, value in changes:
        group = contents.table(table)
        key = (match_name(name or "", group) if table == "models" else None) or name or ""
        values = group.setdefault(key, {})
        values.pop(setting, None)
        if value is not None:
            other = table in _OTHER_TABLES
            values[setting] = value if other else check_value(setting, value, setting)
    return contents


def _edited(path: Path, text: str, changes: list[_Change], wanted: Contents) -> str:
    """Return the new text of the file, in which nothing but the changes differs.

    :raises UsageError: the file cannot be edited safely.
    """
    if not text.strip():
        return _new_file(changes)
    # tomlkit keeps comments and order; it is imported only to edit an existing file.
    from tomlkit.exceptions import TOMLKitError

    for edit_text in (_edited_in_place, _appended):
        try:
            after = edit_text(text, changes)
            if _without_empty(_read(path, after)) == _without_empty(wanted):
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


def _edited_in_place(text: str, changes: list[_Change]) -> str:
    import tomlkit

    from reservoir_cli.settings.models import match_name

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
            made = tomlkit.inline_table() if inline else tomlkit.table()
            entries = group if name is None else group.setdefault(key or name, made)
        if value is not None:
            renamed |= _set_in_place(entries, setting, value)
            continue
        for written in (setting, *aliases_of(setting)):
            entries.pop(written, None)
        if group is not None and not entries.as_string().strip(" {}\n"):  # not even a comment
            (document if name is None else group).pop(key or name or table)
    return _renamed(tomlkit.dumps(document), renamed)


def _set_in_place(entries: Any, setting: str, value: Value) -> dict[str, tuple[str, str, Value]]:
    """Set a value, in the line of an alias if there is one.

    :returns: for a placeholder written in place of the value: the old key, the new key, the value.
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


def _renamed(text: str, renamed: Mapping[str, tuple[str, str, Value]]) -> str:
    """Replace placeholders and their keys; tomlkit cannot rename a key in place."""
    import tomlkit

    for mark, (alias, setting, value) in renamed.items():
        before, placeholder, rest = text.partition(f'"{mark}"')
        if placeholder:
            line, equals, _ = before.rpartition("=")
            head = re.sub(rf"""(["']?){alias}\1(\s*)$""", rf"{setting}\2", line)
            text = f"{head}{equals} {tomlkit.item(value).as_string()}{rest}"
    return text


def _appended(text: str, changes: list[_Change]) -> str:
    """Append the changes as new tables, for files that use dotted keys."""
    tables = [change for change in changes if change[0] is not None]
    if len(tables) < len(changes) or any(change[3] is None for change in changes):
        raise ValueError("only new keys of tables can be appended")
    return f"{text.rstrip()}\n\n{_new_file(changes)}"


def _without_empty(contents: Contents) -> Contents:
    """Return the contents without empty tables."""
    return Contents(
        contents.values,
        {name: table for name, table in contents.partitions.items() if table},
        {name: table for name, table in contents.models.items() if table},
        contents.projects,
        contents.mcp,
        {name: table for name, table in contents.sources.items() if table},
        contents.proxy,
        {name: table for name, table in contents.upstreams.items() if table},
    )


def _quote_header(text: str, table: str, name: str) -> str:
    """Quote the name in an unquoted header, so that tomlkit finds a name with dots."""
    dotted = r"\s*\.\s*".join(re.escape(part) for part in [table, *name.split(".")])
    return re.sub(
        rf"(?mi)^(\s*)\[\s*{dotted}\s*\]", lambda match: f'{match[1]}[{table}."{name}"]', text
    )


def _as_written(setting: str, value: Value, text: str | None) -> Value:
    return text.strip() if text is not None and is_duration(setting) else value
