"""Look up settings in all sources.

For each key, the first source that has a value wins: flag, environment (``RESERVOIR_<KEY>``),
partition, model, file, profile, default.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from reservoir_cli.errors import UsageError, mask_passwords
from reservoir_cli.settings import paths, projects
from reservoir_cli.settings import read_settings as settings_file
from reservoir_cli.settings.models import Model, built_in_models, find_model, match_name, near_names
from reservoir_cli.settings.read_settings import read_environment
from reservoir_cli.settings.schema import (
    DEFAULT_RESERVE,
    DEFAULTS,
    GROUPS,
    LARGE_WINDOW,
    PROFILES,
    SETTINGS,
    SINGLE,
    SMALL_WINDOW,
    TABLES,
    Settings,
    use_own_names,
)
from reservoir_cli.settings.setting import Value
from reservoir_cli.settings.setting_keys import dotted_key, find_setting, split_key
from reservoir_cli.util.unicode_text import plain_number

Origin = Literal["flag", "environment", "partition", "model", "file", "profile", "default"]


_MAX_TOKENS = 1_000_000_000  #: The largest budget: more than the context window of any model.


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(settings_file.Contents):
    """The settings of the file, the environment and the command line, as read at start."""

    path: Path
    environment: Mapping[str, Value]
    flags: Mapping[str, Value]

    @property
    def mcp_partitions(self) -> tuple[str, ...]:
        """The partitions that agents may name."""
        return tuple(self.mcp.get("partitions", ()))

    @property
    def mcp_correct(self) -> bool:
        """Whether agents may mark messages as outdated that are not their notes."""
        return bool(self.mcp.get("correct", False))

    @property
    def proxy_store(self) -> str:
        """Which clients' exchanges the proxy stores."""
        return str(self.proxy.get("store", TABLES["proxy"]["store"].default))

    def settings(self, partition: str | None = None, model: str | None = None) -> Settings:
        """Return the effective settings for a partition and a model, by default the configured."""
        partition = partition or str(self.lookup("partition")[0])
        model = model or self._default_model()
        sources = [values for _, values in self._sources(partition, model)]
        merged = {**DEFAULTS, **PROFILES.get(self.profile(partition, model), {})}
        for values in reversed(sources):
            merged |= values
        return Settings(**{key: merged[key] for key in SETTINGS})

    def partition_of(self, folder: str | Path) -> str | None:
        """Return the partition of a folder; ``None`` if it is not in a project."""
        return projects.partition_of(self.projects, folder)

    def lookup(
        self, key: str, partition: str | None = None, model: str | None = None
    ) -> tuple[Value, Origin]:
        """Return the effective value of one setting, and its source."""
        if key not in ("partition", "model"):  # they select the tables, so no table has them
            partition = partition or str(self.lookup("partition")[0])
            model = model or self._default_model()
        for origin, values in self._sources(partition, model):
            if key in values:
                return values[key], origin
        if key != "profile" and key in (sizes := PROFILES.get(self.profile(partition, model), {})):
            return sizes[key], "profile"
        return DEFAULTS[key], "default"

    def store_location(self, named: str | Path | None = None) -> str:
        """Return the location of the named store, else of the default one.

        The location may be a URL with a password.
        """
        location = self.lookup("database")[0]
        return str(named or paths.store_location(str(location) if location else None))

    def profile(self, partition: str | None = None, model: str | None = None) -> str:
        """Return the configured profile, else the one for the model's window, else ``""``."""
        for _, values in self._sources(partition, model):
            if "profile" in values:
                return str(values["profile"])
        window = self.context_window(model) if model else None
        if window is None or SMALL_WINDOW < window < LARGE_WINDOW:
            return ""
        return "small" if window <= SMALL_WINDOW else "large"

    def with_flags(self, flags: Mapping[str, Value]) -> "Config":
        """Return a copy with more flags, which override all else; ``None`` values are ignored."""
        return replace(self, flags={**self.flags, **_check_flags(flags)})

    def model_table(self, model: str) -> Mapping[str, Value]:
        """Return the file's table for a model, under any of its names."""
        name = match_name(model, self.models)
        return self.models[name] if name else {}

    def context_window(self, model: str) -> int | None:
        """Return a model's context window: from the file, else from the built-in table."""
        table = self.model_table(model)
        entry = find_model(model)
        if "context_window" in table:
            return _as_int(table["context_window"])
        if entry:
            return entry.context_window
        return _as_int(table["max_context_tokens"]) if "max_context_tokens" in table else None

    def reserve(self, model: str | None, settings: Settings) -> int:
        """Return the tokens to reserve for the answer: the setting, else the model's default."""
        reserve = settings.reserve_tokens
        return _default_reserve(model) if reserve is None else reserve

    def known_models(self, partition: str | None = None) -> list[Model]:
        """Return the built-in models with the file's additions and changes, sorted by name."""
        names = {entry.name: entry.name for entry in built_in_models()}
        for name in self.models:
            entry = find_model(name)
            is_found = entry and match_name(entry.name, self.models) == name
            names[entry.name if entry and is_found else name] = name
        models = []
        for key, name in sorted(names.items()):
            window, entry = self.context_window(name), find_model(name)
            if window is not None:
                reserve = self.lookup("reserve_tokens", partition, name)[0]
                reserve = _default_reserve(name) if reserve is None else _as_int(reserve)
                models.append(Model(key, window, reserve, entry.recommended if entry else None))
        return models

    def _default_model(self) -> str | None:
        model = self.lookup("model")[0]
        return None if model is None else str(model)

    def _sources(
        self, partition: str | None, model: str | None
    ) -> Iterator[tuple[Origin, Mapping[str, Value]]]:
        yield "flag", self.flags
        yield "flag", PROFILES.get(str(self.flags.get("profile")), {})
        yield "environment", self.environment
        if partition:
            yield "partition", self.partitions.get(partition, {})
        if model:
            yield "model", self.model_table(model)
        yield "file", self.values


def load(path: Path | None = None, flags: Mapping[str, Value] | None = None) -> Config:
    """Read the settings file and the environment, and check every value.

    :param path: a file that must exist; the default is the user's file, which need not exist.
    :param flags: settings that override all others for this run; ``None`` values are ignored.
    """
    file = path or paths.config_file()
    contents = settings_file.read(file, required=path is not None)
    environment, warnings = read_environment(path)
    tables = {name: getattr(contents, name) for name in settings_file.Contents.__slots__}
    tables["warnings"] = (*(f"{file}: {warning}" for warning in contents.warnings), *warnings)
    return Config(path=file, environment=environment, flags=_check_flags(flags or {}), **tables)


def _check_flags(flags: Mapping[str, Value]) -> dict[str, Value]:
    written = {}
    for name, value in flags.items():
        if value is not None:
            written[name] = find_setting(name, None).check(value, name)
    return use_own_names(written)[0]


def effective_value(config: Config, key: str) -> tuple[Value, Origin]:
    """Return the effective value of a dotted key, and its source."""
    table, named, setting = split_key(key)
    name = named or ""
    if table == projects.TABLE:
        partition = projects.partition_of(config.projects, setting)
        return (partition, "file") if partition else config.lookup("partition")
    if table in SINGLE:
        return _single_value(config, table, setting)
    if table is None:
        value, origin = config.lookup(setting)
        if setting == "database" and isinstance(value, str):
            value = mask_passwords(value)
        return value, origin
    if table == "partitions":
        return config.lookup(setting, partition=name)
    if table in ("sources", "upstreams"):
        entry = config.table(table).get(name, {})
        return entry.get(setting), "file" if setting in entry else "default"
    if setting not in SETTINGS:  # a model's context window
        in_table = setting in config.model_table(name)
        return config.context_window(name), "model" if in_table else "default"
    value, origin = config.lookup(setting, model=name)
    if setting == "reserve_tokens" and value is None:
        return _default_reserve(name), "default"
    return value, origin


def _single_value(config: Config, table: str, setting: str) -> tuple[Value, Origin]:
    default = TABLES[table][setting].default
    value = config.table(table)[""].get(setting, default)
    text = ", ".join(value) or None if isinstance(value, list) else value
    return text, "default" if value == default else "file"


def list_settings(config: Config) -> list[tuple[str, Value, Origin]]:
    """List every setting with its value and source, then the entries of the tables."""
    rows = [(key, *effective_value(config, key)) for key in SETTINGS]
    origins: dict[str, Origin] = {"partitions": "partition", "models": "model"}
    for table in GROUPS:
        rows += [
            (dotted_key(table, name, key), value, origins.get(table, "file"))
            for name, values in config.table(table).items()
            for key, value in values.items()
        ]
    rows += [
        (dotted_key(projects.TABLE, "", folder), partition, "file")
        for folder, partition in config.projects.items()
    ]
    single = [
        (dotted_key(table, "", setting), *_single_value(config, table, setting))
        for table in SINGLE
        for setting in TABLES[table]
    ]
    return rows + [row for row in single if row[-1] == "file"]


def masking_command(config: Config, partition: str | None) -> str:
    """Return the command that masks the secrets of a partition in all output."""
    _, origin = config.lookup("redact", partition)
    in_partition = origin == "partition"
    key = dotted_key("partitions", partition or "", "redact") if in_partition else "redact"
    return f"reservoir config set {shlex.quote(f'{key}=mask')}"


def required_window(config: Config, model: str | None, settings: Settings) -> int:
    """Return the context window to plan for: a model's, or the setting if no model is named."""
    if model is None:
        return settings.max_working_memory_tokens
    window = config.context_window(model)
    if window is not None:
        return window
    near = near_names(model, [row.name for row in config.known_models()])
    assignment = shlex.quote(f"models.{model}.context_window=N")
    question = f"did you mean {', '.join(near)}? Or " if near else ""
    raise UsageError(
        f"unknown model {model!r}", hint=f"{question}reservoir config set {assignment} adds it"
    )


def recommended_budget(model: str | None, budget: int | str | None, available: int) -> int | None:
    """Parse a budget: a number, ``recommended``, or ``None``.

    :param available: the tokens that the model's limit leaves: the maximum of a recommendation,
        and the budget of models without one.
    """
    if budget is None:
        return None
    if budget == "recommended":
        if model is None:
            raise UsageError("--budget recommended needs a model", hint="add --model NAME")
        entry = find_model(model)
        return min(entry.recommended, available) if entry and entry.recommended else available
    text = plain_number(str(budget))
    if not text.isascii() or not text.isdigit() or int(text[:20]) < 1:
        thousands = text[:-1].isdecimal() and text[-1] in "kK"
        raise UsageError(
            f"--budget must be a positive whole number or recommended, not {budget!r}",
            hint=f"use --budget {f'{text[:-1]}000' if thousands else 4000}, or --model NAME "
            "--budget recommended; the default is the model's limit",
        )
    if int(text[:20]) > _MAX_TOKENS:
        raise UsageError(
            f"--budget is at most {_MAX_TOKENS:,}", hint="the default is the model's limit"
        )
    return int(text)


def model_rows(config: Config, partition: str | None = None) -> list[dict[str, str | int | None]]:
    """Return a row for each known model, sorted by name."""
    rows: list[dict[str, str | int | None]] = []
    for model in config.known_models(partition):
        limit = config.lookup("max_context_tokens", partition, model.name)[0]
        available = max(0, model.context_window - model.reserve)
        if limit is not None:
            available = min(available, _as_int(limit))
        rows.append(
            {
                "name": model.name,
                "context_window": model.context_window,
                "reserve": model.reserve,
                "available": available,
                "recommended": model.recommended and min(model.recommended, available),
                "origin": "file" if config.model_table(model.name) else "table",
            }
        )
    return rows


def _default_reserve(model: str | None) -> int:
    entry = find_model(model) if model else None
    return entry.reserve if entry else DEFAULT_RESERVE


def _as_int(value: Value) -> int:
    assert isinstance(value, int)
    return value
