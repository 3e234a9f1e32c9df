"""The settings file: reading it, and changing it so that everything else stays as it is."""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import paths
from reservoir_cli.settings.schema import (
    ALIASES,
    MODEL_ONLY,
    SETTINGS,
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
_Change = tuple[str | None, str | None, str, Value]
#: A settings file that is larger is something else.
_LARGEST = 1 << 20

#: A key, whose quotes are closed, and a value.
_ASSIGNMENT = re.compile(r"""((?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])*)(=)(.*)""", re.DOTALL)

#: What helps where the file itself is wrong.
_MENDING = "mend it in an editor, or move it away: without it every setting has its default"


@dataclass(frozen=True, slots=True)
class Contents:
    """What a settings file says, by the settings' own names.

    :param values: top-level settings.
    :param partitions: ``[partitions.NAME]`` tables.
    :param models: ``[models.NAME]`` tables, by the name in the file.
    :param warnings: what is in the file and ignored.
    """

    values: dict[str, Value] = field(default_factory=dict)
    partitions: Tables = field(default_factory=dict)
    models: Tables = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def table(self, group: str | None) -> Tables:
        """Return the tables of a group; the top of the file is the one table without a name."""
        if group is None:
            return {"": self.values}
        return self.partitions if group == "partitions" else self.models


def split_key(key: str) -> tuple[str | None, str | None, str]:
    """Take a dotted key apart into (``partitions`` or ``models``, name, setting).

    Names keep their dots, ``models.gpt-3.5-turbo.reserve_tokens``, and may stand in quotes as in
    the file, ``models."my-model:7b".context_window``.

    :raises UsageError: there is no such setting, or it cannot be set there.
    """
    table, name, written = split_written_key(key)
    return table, name, setting_of(written)


def split_written_key(key: str) -> tuple[str | None, str | None, str]:
    """Take a dotted key apart as :func:`split_key` does, but keep an alias as it is.

    :raises UsageError: there is no such setting, or it cannot be set there.
    """
    quoted = '"' in key or "'" in key
    parts = _quoted_parts(key) if quoted else key.split(".")
    table = parts[0] if parts[0] in ("partitions", "models") else None
    if table is None:
        name, written = None, ".".join(parts)
    elif len(parts) < 3 or not all(parts[1:]):
        raise UsageError(f"{key!r} names no setting", hint=f"write {table}.NAME.SETTING=VALUE")
    else:
        name, written = ".".join(parts[1:-1]), parts[-1]
    known_key(written, table)
    if table == "partitions" and name and "/" in name and not quoted:
        partition = name.partition("/")[0]
        raise UsageError(
            f"instances have no settings: {key!r}",
            hint=f"set it for the partition: {table}.{partition}.{written}; a partition with / "
            f'in its name is quoted: {table}."{name}".{written}',
        )
    return table, name, written


def split_assignment(text: str) -> tuple[str, str]:
    """Take ``KEY=VALUE`` apart; an equals sign in quotes is of the key.

    :raises UsageError: there is none.
    """
    match = _ASSIGNMENT.fullmatch(text)
    key, equals, value = match.group(1, 2, 3) if match else text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} sets nothing", hint="write --set KEY=VALUE")
    return key.strip(), value


def dotted_key(table: str, name: str, setting: str) -> str:
    """The key that :func:`split_key` takes apart like this."""
    if '"' in name or "'" in name or (table == "partitions" and "/" in name):
        import tomli_w

        name = tomli_w.dumps({name: 0}).removesuffix(" = 0\n")
    return f"{table}.{name}.{setting}"


def _quoted_parts(key: str) -> list[str]:
    """The parts of a dotted key as TOML reads it.

    :raises UsageError: it is none.
    """
    import tomllib

    parts: list[str] = []
    try:
        found: Any = tomllib.loads(f"{key} = 0")
        while isinstance(found, dict):
            ((part, found),) = found.items()
            parts.append(part)
    except ValueError:  # what TOML does not read, or reads as more than one key
        found = None
    if found != 0:
        raise UsageError(
            f"a quote in {key!r} is out of place",
            hint='quotes go around a whole name: TABLE."NAME".SETTING',
        )
    return parts


def read(path: Path, *, required: bool) -> Contents:
    """What the file says: settings, ``[partitions]``, ``[models]``; every value is checked.

    :param required: the file must exist; else one that does not says nothing.
    :raises UsageError: it cannot be read, or holds a wrong name or value.
    """
    return _read(path, _read_text(path, required=required))


def edit(path: Path, changes: Mapping[str, str | None]) -> None:
    """Change the settings file, all together or not at all; comments and order stay.

    :param changes: dotted key to its new text, or ``None`` to take it out.
    :raises UsageError: a wrong name or value, or a file that cannot be edited; nothing changes.
    """
    if not any(text is not None for text in changes.values()):
        try:
            read(path, required=False)
            for key in changes:
                split_key(key)
        except UsageError as error:
            _take_out(path, list(changes), error)
            return
    parsed = _parsed_changes(changes)
    _change(path, lambda _: parsed)


def _parsed_changes(changes: Mapping[str, str | None]) -> list[_Change]:
    """Check changes; of several names of one setting its own wins."""
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
    value = from_alias(written, parse_value(written, text, key))
    return table, name, setting, _as_written(setting, value, text)


def contents_after(path: Path, changes: Mapping[str, str | None]) -> Contents:
    """Return what the file would say after changes; nothing is written.

    :raises UsageError: a wrong name or value, or a file that cannot be read.
    """
    parsed = _parsed_changes(changes)
    return _changed(read(path, required=False), parsed)


def _take_out(path: Path, keys: list[str], error: UsageError) -> None:
    """Remove keys from a file that holds something wrong, or unknown keys from any.

    :param error: what is wrong.
    :raises UsageError: the keys are not in the file, or it is not TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(_read_text(path, required=False))
        for key in keys:
            parts = _quoted_parts(key) if '"' in key or "'" in key else key.split(".")
            joined = [parts[0], ".".join(parts[1:-1]), parts[-1]]
            place: Any = None
            for way in (parts, joined):
                place = document
                for part in way[:-1]:
                    place = place.get(part) if isinstance(place, dict) else None
                if isinstance(place, dict) and parts[-1] in place:
                    break
            else:
                raise error
            del place[parts[-1]]
        write_private(path, tomlkit.dumps(document))
    except (TOMLKitError, OSError):
        raise error from None


def rename_partition(path: Path, old: str, new: str) -> bool:
    """Let a partition's settings hold for its new name, unless that has some of its own.

    :returns: whether there were any, and they hold for the new name now.
    :raises UsageError: the file cannot be edited; nothing changes.
    """
    moved: list[tuple[str, Value]] = []

    def moving(contents: Contents) -> list[_Change]:
        if not contents.partitions.get(new):
            moved.extend(contents.partitions.get(old, {}).items())
        given: list[_Change] = [("partitions", new, *each) for each in moved]
        return [*given, *(("partitions", old, key, None) for key, _ in moved)]

    _change(path, moving)
    return bool(moved)


def _change(path: Path, changes_of: Callable[[Contents], list[_Change]]) -> None:
    try:
        make_private_dir(resolve_path(path).parent)
        with exclusive_lock(resolve_path(path).parent):
            before = _read_text(path, required=False)
            # A broken file is reported, not overwritten.
            contents = _read(path, before)
            changes = changes_of(contents)
            wanted = _changed(contents, changes)
            if changes:
                write_private(path, _edited(path, before, changes, wanted))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            hint="check the room on the disk and the permissions of the folder",
        ) from None


def _read(path: Path, text: str) -> Contents:
    if not text.strip():
        return Contents()
    try:
        return _parsed(path, text)
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply", hint=_MENDING) from None


def _parsed(path: Path, text: str) -> Contents:
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}", hint=_MENDING) from None
    except ValueError:  # what int() says of thousands of digits
        raise UsageError(f"{path} has a number of too many digits", hint=_MENDING) from None
    try:
        return _checked(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint or _MENDING) from None


def _checked(document: Mapping[str, Any]) -> Contents:
    places: dict[tuple[str | None, str], dict[str, Value]] = {}
    for group, name, key, value in _entries(document):
        where = dotted_key(group, name, key) if group else key
        _set_once(places.setdefault((group, name), {}), key, value, where)
    contents, warnings = Contents(), []
    for (group, name), written in places.items():
        values, ignored = resolve_aliases(written)
        contents.table(group).setdefault(name, {}).update(values)
        start = f"[{group}.{name}] " if group else ""
        warnings += [f"{start}{old} is ignored: {new} is set, too" for old, new in ignored]
    return replace(contents, warnings=tuple(warnings))


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str | None, str, str, Any]]:
    """Yield group, table, name as written, and value of all that a document says."""
    for key, value in document.items():
        if key not in ("partitions", "models"):
            known_key(key, None, otherwise=_MENDING)
            yield None, "", key, value
        elif not isinstance(value, dict):
            raise UsageError(f"{key} must be a table", hint=f"write [{key}.NAME]")
        else:
            for name, written, each in _flatten(key, value):
                yield key, name, written, each


def _read_text(path: Path, *, required: bool) -> str:
    try:
        return read_bounded(path, _LARGEST).decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        if required:
            raise UsageError(
                f"there is no settings file {path}",
                hint=f"leave --config out for {paths.config_file()}, which need not be there",
            ) from None
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"cannot read the settings file {path}: {reason}", hint=_MENDING) from None


def _set_once(place: dict[str, Value], key: str, value: Any, where: str) -> None:
    if key in place:
        raise UsageError(f"{where} stands twice", hint="take one of them out, in an editor")
    place[key] = check_value(key, value, where)


def _flatten(
    table: str, value: Mapping[str, Any], name: str = ""
) -> Iterator[tuple[str, str, Any]]:
    """Settings of each named table; ``[models.gpt-3.5-turbo]`` is read as the name it means."""
    for key, each in value.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(each, dict):
            yield from _flatten(table, each, inner)
        elif not name:
            raise UsageError(f"{table}.{key} must be a table", hint=f"write [{table}.NAME]")
        else:
            known_key(key, table, name, otherwise=_MENDING)
            yield name, key, each


def known_key(
    key: str,
    table: str | None,
    name: str | None = None,
    *,
    otherwise: str = "reservoir config --list shows them all",
) -> str:
    """The name of a setting, by its name or another one.

    :param table: ``partitions``, ``models``, or ``None`` for the top of the file.
    :param name: of the partition or model, for the error.
    :param otherwise: the hint where no name is near.
    :raises UsageError: there is no such setting there; the hint names near ones.
    """
    key = setting_of(key)
    if table is None:
        allowed = list(SETTINGS)
    else:
        kind = "partition" if table == "partitions" else "model"
        allowed = [each for each, about in SETTINGS.items() if about.metadata[kind]]
        allowed += list(MODEL_ONLY) if table == "models" else []
    if key in allowed:
        return key
    import difflib

    near = difflib.get_close_matches(key, [*allowed, *ALIASES], 3)
    near = [f"{each} (now {setting_of(each)})" if each in ALIASES else each for each in near]
    place = f" in [{table}.{name}]" if name else f" for {table}" if table else ""
    raise UsageError(
        f"unknown setting {key!r}{place}",
        hint=f"did you mean {', '.join(near)}?" if near else otherwise,
    )


def _changed(contents: Contents, changes: list[_Change]) -> Contents:
    """What the file must say afterwards."""
    from reservoir_cli.settings.models import match_name

    for table, name, setting, value in changes:
        group = contents.table(table)
        found = (match_name(name or "", group) if table == "models" else None) or name or ""
        place = group.setdefault(found, {})
        place.pop(setting, None)
        if value is not None:
            place[setting] = check_value(setting, value, setting)
    return contents


def _edited(path: Path, text: str, changes: list[_Change], wanted: Contents) -> str:
    """The file's new text, which says what is wanted and nothing else is changed.

    :raises UsageError: the file is written in a way that cannot be edited safely.
    """
    if not text.strip():
        return _new_file(changes)
    # tomlkit keeps comments and order; it is loaded only to edit a file that is there.
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
            place = document
            for part in (table, name):
                place = place if part is None else place.setdefault(part, {})
            place[setting] = value
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
        place: Any = document
        group: Any = None
        if table is not None:
            if value is None and not document.get(table):
                continue
            group = document.setdefault(table, tomlkit.table(True))
            # The name may stand in the file in another spelling of the same model.
            found = match_name(name or "", group) if table == "models" else None
            inline = isinstance(group, tomlkit.items.InlineTable)
            made = tomlkit.inline_table() if inline else tomlkit.table()
            place = group.setdefault(found or name, made)
        if value is not None:
            renamed |= _set_in_place(place, setting, value)
            continue
        for written in (setting, *aliases_of(setting)):
            place.pop(written, None)
        if group is not None and not place.as_string().strip(" {}\n"):  # not even a comment
            group.pop(found or name)
    return _renamed(tomlkit.dumps(document), renamed)


def _set_in_place(place: Any, setting: str, value: Value) -> dict[str, tuple[str, str, Value]]:
    """Set a value, in the line of an alias if there is one.

    :returns: by a mark that stands for the value: the key to be replaced, the new one, the value.
    """
    aliases = [alias for alias in aliases_of(setting) if alias in place]
    for alias in aliases if setting in place else aliases[1:]:
        place.pop(alias)
    if setting in place or not aliases:
        place[setting] = value
        return {}
    mark = f"value of {setting}, {secrets.token_hex(16)}"
    place[aliases[0]] = mark
    return {mark: (aliases[0], setting, value)}


def _renamed(text: str, renamed: Mapping[str, tuple[str, str, Value]]) -> str:
    """Replace marked keys with their values; tomlkit cannot rename a key where it stands."""
    import tomlkit

    for mark, (alias, setting, value) in renamed.items():
        before, found, rest = text.partition(f'"{mark}"')
        if found:
            line, equals, _ = before.rpartition("=")
            head = re.sub(rf"""(["']?){alias}\1(\s*)$""", rf"{setting}\2", line)
            text = f"{head}{equals} {tomlkit.item(value).as_string()}{rest}"
    return text


def _appended(text: str, changes: list[_Change]) -> str:
    """The text with tables of its own for the changes, for files in dotted keys."""
    tables = [change for change in changes if change[0] is not None]
    if len(tables) < len(changes) or any(change[3] is None for change in changes):
        raise ValueError("only new keys of tables can be appended")
    return f"{text.rstrip()}\n\n{_new_file(changes)}"


def _without_empty(contents: Contents) -> Contents:
    """Contents without tables that say nothing."""
    return Contents(
        contents.values,
        {name: each for name, each in contents.partitions.items() if each},
        {name: each for name, each in contents.models.items() if each},
    )


def _quote_header(text: str, table: str, name: str) -> str:
    """Give the unquoted header of a name with dots its quotes, so that it is not doubled."""
    dotted = r"\s*\.\s*".join(re.escape(part) for part in [table, *name.split(".")])
    return re.sub(
        rf"(?mi)^(\s*)\[\s*{dotted}\s*\]", lambda match: f'{match[1]}[{table}."{name}"]', text
    )


def _as_written(setting: str, value: Value, text: str | None) -> Value:
    return text.strip() if text is not None and is_duration(setting) else value
