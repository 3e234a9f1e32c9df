"""Read the settings file and ``RESERVOIR_…`` variables, and check every value."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.settings import paths
from reservoir_cli.settings.projects import TABLE as PROJECTS
from reservoir_cli.settings.projects import check_project
from reservoir_cli.settings.schema import (
    GROUPS,
    SETTINGS,
    SINGLE,
    VARIABLES,
    setting_name,
    use_own_names,
)
from reservoir_cli.settings.setting import Value
from reservoir_cli.settings.setting_keys import dotted_key, find_setting, similar_settings
from reservoir_cli.util.read_files import read_bounded, suggest_fix

Tables = dict[str, dict[str, Value]]
_MAX_SIZE = 1 << 20  #: The largest settings file accepted, in bytes.
#: Names after ``RESERVOIR_`` that are not settings.
_OTHERS = re.compile("HOME|CONFIG|DB|DEBUG|MODEL_CACHE|PLUGINS|TEST_.*")
#: The hint for an invalid file.
_FIX_HINT = "fix it in an editor, or move it away: all settings then have their defaults"


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a settings file, under our own names of settings.

    :param models: ``[models.NAME]`` tables, by the name in the file.
    :param sources: ``[sources.NAME]`` tables, as written if one has an error.
    :param wrong_sources: the errors of sources, by name; they concern no other command than those
        that read the sources.
    """

    values: dict[str, Value] = field(default_factory=dict)
    partitions: Tables = field(default_factory=dict)
    models: Tables = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)
    mcp: dict[str, Any] = field(default_factory=dict)
    sources: Tables = field(default_factory=dict)
    wrong_sources: dict[str, UsageError] = field(default_factory=dict, compare=False)
    proxy: dict[str, Value] = field(default_factory=dict)
    upstreams: Tables = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def table(self, group: str | None) -> Tables:
        """Return the tables of a group by name; a group that is a single table is named ``""``."""
        if group in GROUPS:
            tables: Tables = getattr(self, group)
            return tables
        return {"": getattr(self, group) if group else self.values}


def read(path: Path, *, required: bool) -> Contents:
    """Read a settings file, and check every value."""
    return contents_of(path, read_text(path, required=required))


def contents_of(path: Path, text: str) -> Contents:
    """Return the contents of a file with this text; see :func:`read`."""
    if not text.strip():
        return Contents()
    try:
        return _parse(path, text)
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply", hint=_FIX_HINT) from None


def _parse(path: Path, text: str) -> Contents:
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = _hint_of_quotes(text, str(error)) or _FIX_HINT
        raise UsageError(f"{path} is not valid TOML: {error}", hint=hint) from None
    except ValueError:  # raised by int() for thousands of digits
        raise UsageError(f"{path} has a number with too many digits", hint=_FIX_HINT) from None
    try:
        contents = _check_document(document)
    except UsageError as error:
        raise _name_file(path, error) from None
    wrong = {name: _name_file(path, error) for name, error in contents.wrong_sources.items()}
    return replace(contents, wrong_sources=wrong)


def _name_file(path: Path, error: UsageError) -> UsageError:
    return UsageError(f"{path}: {error.message}", hint=error.hint or _FIX_HINT)


def _hint_of_quotes(text: str, error: str) -> str:
    """Return how to write a header whose name needs quotes, as ``[models.llama3:8b]`` does."""
    at = re.search(r"\(at line (\d+)", error)
    line = text.splitlines()[int(at[1]) - 1] if at else ""
    header = re.fullmatch(rf"\s*\[\s*({'|'.join(GROUPS)})\.([^\[\]\"'\s]+)\s*\]\s*(?:#.*)?", line)
    return f'write the name in quotes: [{header[1]}."{header[2]}"]' if header else ""


def _check_document(document: Mapping[str, Any]) -> Contents:
    tables: dict[tuple[str | None, str], dict[str, Value]] = {}
    contents, warnings = Contents(), []
    for group, name, key, value in _entries(document):
        table = tables.setdefault((group, name), {})
        try:
            table[key] = _check_entry(group, name, key, value, table)
        except UsageError as error:
            if group != "sources":
                raise
            table[key] = value
            contents.wrong_sources.setdefault(name, error)
    for (group, name), written in tables.items():
        values, ignored = use_own_names(written)
        contents.table(group).setdefault(name, {}).update(values)
        prefix = f"[{group}.{name}] " if group else ""
        warnings += [f"{prefix}{old} is ignored: {new} is set, too" for old, new in ignored]
    return replace(contents, warnings=tuple(warnings))


def _check_entry(
    group: str | None, name: str, key: str, value: Any, table: Mapping[str, Value]
) -> Value:
    if group == PROJECTS:
        return check_project(key, value)
    if name:
        check_name(name, f"a name in [{group}]")
    setting = find_setting(key, group, name, otherwise=_FIX_HINT)
    where = dotted_key(group, name, key) if group else key
    if key in table:
        raise UsageError(f"{where} is set twice", hint="remove one of them in an editor")
    return setting.check(value, where)


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str | None, str, str, Any]]:
    """Yield group, table, written name and value of every entry of a document."""
    for key, value in document.items():
        if key not in (*GROUPS, *SINGLE, PROJECTS):
            yield None, "", key, value
        elif not isinstance(value, dict):
            header = f"{key}.NAME" if key in GROUPS else key
            raise UsageError(f"{key} must be a table", hint=f"write [{header}]")
        elif key not in GROUPS:
            yield from ((key, "", name, entry) for name, entry in value.items())
        else:
            for name, written, entry in _flatten(key, value):
                yield key, name, written, entry


def missing_file_error(path: Path) -> UsageError:
    """Return the error for a settings file that was named but does not exist."""
    return UsageError(
        f"there is no settings file {path}",
        hint=f"omit --config to use {paths.config_file()}, which need not exist",
    )


def read_text(path: Path, *, required: bool) -> str:
    """Return the text of a file with LF line endings; see :func:`read`."""
    try:
        return read_bounded(path, _MAX_SIZE).decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        if required:
            raise missing_file_error(path) from None
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        way = suggest_fix(error, path) if isinstance(error, OSError) else None
        raise UsageError(
            f"cannot read the settings file {path}: {reason}", hint=way or _FIX_HINT
        ) from None


def _flatten(
    table: str, value: Mapping[str, Any], name: str = ""
) -> Iterator[tuple[str, str, Any]]:
    """Yield table name, key and value; ``[models.gpt-3.5-turbo]`` is one name with a dot."""
    for key, entry in value.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(entry, dict):
            yield from _flatten(table, entry, inner)
        elif not name:
            raise UsageError(f"{table}.{key} must be a table", hint=f"write [{table}.NAME]")
        else:
            yield name, key, entry


def read_environment(file: Path | None) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return the settings in environment variables, and warnings about variables without effect."""
    written = {
        name: SETTINGS[setting_name(name)].parse(os.environ[variable], variable)
        for name, variable in VARIABLES.items()
        if variable in os.environ
    }
    values, ignored = use_own_names(written)
    overridden = (
        f"{VARIABLES[loser]} is ignored: {VARIABLES[winner]} is set, too"
        for loser, winner in ignored
    )
    missing = []
    if file is None and os.environ.get("RESERVOIR_CONFIG") and not paths.config_file().exists():
        path = paths.config_file()
        missing = [f"RESERVOIR_CONFIG names {path}, which does not exist: using default settings"]
    return values, (*missing, *overridden, *unknown_variables())


def unknown_variables() -> Iterator[str]:
    """Yield a warning for each variable that begins as ours, but is none of them."""
    names = [name.upper() for name in VARIABLES]
    for variable in sorted(os.environ):
        name = variable.removeprefix("RESERVOIR_")
        if name not in (variable, *names) and not _OTHERS.fullmatch(name):
            near = similar_settings(name.lower(), list(VARIABLES), "environment")
            suggestion = f"; did you mean RESERVOIR_{near[0].upper()}?" if near else ""
            yield f"{variable} is not a setting{suggestion}"
