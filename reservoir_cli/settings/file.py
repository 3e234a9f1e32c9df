"""The settings file: reading it, and changing it so that everything else stays as it is."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import paths
from reservoir_cli.settings.schema import (
    ALIASES,
    MODEL_ONLY,
    SETTINGS,
    Value,
    check_value,
    is_duration,
    parse_value,
)
from reservoir_cli.util.files import read_bounded

Tables = dict[str, dict[str, Value]]
_Change = tuple[str | None, str | None, str, Value]
#: A settings file that is larger is something else.
_LARGEST = 1 << 20

#: A key, whose quotes are closed, and a value.
_ASSIGNMENT = re.compile(r"""((?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])*)(=)(.*)""", re.DOTALL)

#: What helps where the file itself is wrong.
_MENDING = "mend it in an editor, or move it away: without it every setting has its default"
Contents = tuple[dict[str, Value], Tables, Tables]


def split_key(key: str) -> tuple[str | None, str | None, str]:
    """Take a dotted key apart into (``partitions`` or ``models``, name, setting).

    Names keep their dots, ``models.gpt-3.5-turbo.reserve_tokens``, and may stand in quotes as in
    the file, ``models."my-model:7b".context_window``.

    :raises UsageError: there is no such setting, or it cannot be set there.
    """
    parts = _quoted_parts(key) if '"' in key or "'" in key else key.split(".")
    if parts[0] not in ("partitions", "models"):
        return None, None, known_key(".".join(parts), None)
    if len(parts) < 3 or not all(parts[1:]):
        raise UsageError(f"{key!r} names no setting", hint=f"write {parts[0]}.NAME.SETTING=VALUE")
    return parts[0], ".".join(parts[1:-1]), known_key(parts[-1], parts[0])


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
    if '"' in name or "'" in name:
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
    parsed = []
    for key, text in changes.items():
        table, name, setting = split_key(key)
        value = None if text is None else parse_value(setting, text, key)
        parsed.append((table, name, setting, _as_written(setting, value, text)))
    _change(path, lambda _: parsed)


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
        paths.replace_private(path, tomlkit.dumps(document))
    except (TOMLKitError, OSError):
        raise error from None


def rename_partition(path: Path, old: str, new: str) -> bool:
    """Let a partition's settings hold for its new name, unless that has some of its own.

    :returns: whether there were any, and they hold for the new name now.
    :raises UsageError: the file cannot be edited; nothing changes.
    """
    moved: list[tuple[str, Value]] = []

    def moving(contents: Contents) -> list[_Change]:
        _, partitions, _ = contents
        if not partitions.get(new):
            moved.extend(partitions.get(old, {}).items())
        given: list[_Change] = [("partitions", new, *each) for each in moved]
        return [*given, *(("partitions", old, key, None) for key, _ in moved)]

    _change(path, moving)
    return bool(moved)


def _change(path: Path, changes_of: Callable[[Contents], list[_Change]]) -> None:
    try:
        paths.make_private_dir(paths.real(path).parent)
        with paths.one_at_a_time(paths.real(path).parent):
            before = _read_text(path, required=False)
            # A broken file is reported, not overwritten.
            contents = _read(path, before)
            changes = changes_of(contents)
            wanted = _changed(contents, changes)
            if changes:
                paths.replace_private(path, _edited(path, before, changes, wanted))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            hint="check the room on the disk and the permissions of the folder",
        ) from None


def _read(path: Path, text: str) -> Contents:
    if not text.strip():
        return {}, {}, {}
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
    values: dict[str, Value] = {}
    tables: dict[str, Tables] = {"partitions": {}, "models": {}}
    for key, value in document.items():
        if key in tables:
            if not isinstance(value, dict):
                raise UsageError(f"{key} must be a table", hint=f"write [{key}.NAME]")
            for name, setting, each in _flatten(key, value):
                place = tables[key].setdefault(name, {})
                _set_once(place, setting, each, dotted_key(key, name, setting))
        else:
            known = known_key(key, None, otherwise=_MENDING)
            _set_once(values, known, value, known)
    return values, tables["partitions"], tables["models"]


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
            yield name, known_key(key, table, name, otherwise=_MENDING), each


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
    key = ALIASES.get(key, key)
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
    place = f" in [{table}.{name}]" if name else f" for {table}" if table else ""
    raise UsageError(
        f"unknown setting {key!r}{place}",
        hint=f"did you mean {', '.join(near)}?" if near else otherwise,
    )


def _changed(contents: Contents, changes: list[_Change]) -> Contents:
    """What the file must say afterwards."""
    from reservoir_cli.settings.models import match_name

    values, partitions, models = contents
    for table, name, setting, value in changes:
        group = {"": values} if table is None else partitions if table == "partitions" else models
        found = (match_name(name or "", group) if table == "models" else None) or name or ""
        place = group.setdefault(found, {})
        place.pop(setting, None)
        if value is not None:
            place[setting] = check_value(setting, value, setting)
    return values, partitions, models


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
        written = next(
            (old for old, new in ALIASES.items() if new == setting and old in place), None
        )
        if value is not None:
            place[written or setting] = value
            continue
        place.pop(written or setting, None)
        if group is not None and not place.as_string().strip(" {}\n"):  # not even a comment
            group.pop(found or name)
    return tomlkit.dumps(document)


def _appended(text: str, changes: list[_Change]) -> str:
    """The text with tables of its own for the changes, for files in dotted keys."""
    tables = [change for change in changes if change[0] is not None]
    if len(tables) < len(changes) or any(change[3] is None for change in changes):
        raise ValueError("only new keys of tables can be appended")
    return f"{text.rstrip()}\n\n{_new_file(changes)}"


def _without_empty(contents: Contents) -> Contents:
    """Contents without tables that say nothing."""
    values, partitions, models = contents
    return (
        values,
        {name: each for name, each in partitions.items() if each},
        {name: each for name, each in models.items() if each},
    )


def _quote_header(text: str, table: str, name: str) -> str:
    """Give the unquoted header of a name with dots its quotes, so that it is not doubled."""
    dotted = r"\s*\.\s*".join(re.escape(part) for part in [table, *name.split(".")])
    return re.sub(
        rf"(?mi)^(\s*)\[\s*{dotted}\s*\]", lambda match: f'{match[1]}[{table}."{name}"]', text
    )


def _as_written(setting: str, value: Value, text: str | None) -> Value:
    return text.strip() if text is not None and is_duration(setting) else value
