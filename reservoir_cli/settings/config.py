"""Where each setting's value comes from, and how the settings file is changed.

Key by key the first of these that says something holds: flag, environment
(``RESERVOIR_<KEY>``), partition, model, file, profile, default.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import file as settings_file
from reservoir_cli.settings import paths
from reservoir_cli.settings.schema import (
    DEFAULTS,
    LARGE_WINDOW,
    MODEL_ONLY,
    PROFILES,
    SETTINGS,
    SMALL_WINDOW,
    VARIABLES,
    Settings,
    Value,
    check_value,
    parse_value,
    resolve_aliases,
    setting_of,
    to_alias,
)

if TYPE_CHECKING:
    from reservoir_cli.settings.models import Model

# The table of models is loaded where a model is asked for: most commands know none.

Origin = Literal["flag", "environment", "partition", "model", "file", "profile", "default"]


#: More than any model reads.
_MOST_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Config:
    """The settings file and the environment, read once.

    :param path: the file the values came from; it need not exist.
    :param values: top-level settings of the file.
    :param partitions: ``[partitions.NAME]`` tables.
    :param models: ``[models.NAME]`` tables, by the name in the file.
    :param environment: settings found in the environment.
    :param flags: settings given for this run only.
    :param warnings: what the file and the environment say that is ignored.
    """

    path: Path
    values: Mapping[str, Value]
    partitions: Mapping[str, Mapping[str, Value]]
    models: Mapping[str, Mapping[str, Value]]
    environment: Mapping[str, Value]
    flags: Mapping[str, Value] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def settings(self, partition: str | None = None, model: str | None = None) -> Settings:
        """The effective settings for a partition and a model (default: the ones set)."""
        return Settings(
            **{key: self.lookup(key, partition, model)[0] for key in SETTINGS}  # type: ignore[arg-type]
        )

    def synapse_threshold(self, partition: str) -> float:
        """Return the likeness from which on messages of a partition are linked."""
        return self.settings(partition).synapse_threshold

    def lookup(
        self, key: str, partition: str | None = None, model: str | None = None
    ) -> tuple[Value, Origin]:
        """The effective value of one setting, and which place it comes from."""
        if key not in ("partition", "model"):  # these two choose the tables, so no table holds them
            partition = partition or str(self.lookup("partition")[0])
            model = model or self._default_model()
        for origin, place in self._places(partition, model):
            if key in place:
                return place[key], origin
        if key != "profile" and key in (sizes := PROFILES.get(self.profile(partition, model), {})):
            return sizes[key], "profile"
        return DEFAULTS[key], "default"

    def database(self) -> str | None:
        """Where the store is when nothing else says so; a URL may hold a password."""
        found = self.lookup("database")[0]
        return str(found) if found else None

    def profile(self, partition: str | None = None, model: str | None = None) -> str:
        """The profile that holds: the one set, else the one for the model's window, else ''."""
        for _, place in self._places(partition, model):
            if "profile" in place:
                return str(place["profile"])
        window = self.context_window(model) if model else None
        if window is None or SMALL_WINDOW < window < LARGE_WINDOW:
            return ""
        return "small" if window <= SMALL_WINDOW else "large"

    def with_flags(self, flags: Mapping[str, Value]) -> "Config":
        """The same with settings above all others; ``None`` values do not count.

        :raises UsageError: a wrong name or value.
        """
        return replace(self, flags={**self.flags, **_checked(flags)})

    def model_table(self, model: str) -> Mapping[str, Value]:
        """What the file says of a model, whichever of its names is used."""
        from reservoir_cli.settings.models import match_name

        name = match_name(model, self.models)
        return self.models[name] if name else {}

    def context_window(self, model: str) -> int | None:
        """Tokens a model reads at once: the file's word, else the table's, else unknown."""
        from reservoir_cli.settings.models import find_model

        own = self.model_table(model)
        known = find_model(model)
        if "context_window" in own:
            return _whole(own["context_window"])
        if known:
            return known.context_window
        return _whole(own["max_context_tokens"]) if "max_context_tokens" in own else None

    def reserve(self, model: str | None, settings: Settings) -> int:
        """Tokens kept for the answer: the setting, else what the table says, else 4,096.

        :param settings: those for this model.
        """
        if settings.reserve_tokens is not None:
            return settings.reserve_tokens
        return _usual_reserve(model)

    def known_models(self, partition: str | None = None) -> "list[Model]":
        """The table, with what the settings add and change, sorted by name."""
        from reservoir_cli.settings.models import MODELS, Model, find_model

        names = {known.name: known.name for known in MODELS}
        for name in self.models:
            known = find_model(name)
            names[known.name if known else name] = name
        models = []
        for key, name in sorted(names.items()):
            window, known = self.context_window(name), find_model(name)
            if window is not None:
                reserve = self.lookup("reserve_tokens", partition, name)[0]
                reserve = _usual_reserve(name) if reserve is None else _whole(reserve)
                models.append(Model(key, window, reserve, known.recommended if known else None))
        return models

    def _default_model(self) -> str | None:
        model = self.lookup("model")[0]
        return None if model is None else str(model)

    def _places(
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

    :param path: a file that must exist; without it the user's own, which need not.
    :param flags: settings for this run, above all others; ``None`` values do not count.
    :raises UsageError: the file is missing or broken, or holds a wrong name or value.
    """
    file = path or paths.config_file()
    contents = settings_file.read(file, required=path is not None)
    environment, warnings = _from_environment()
    return Config(
        file,
        contents.values,
        contents.partitions,
        contents.models,
        environment,
        _checked(flags or {}),
        tuple(f"{file}: {warning}" for warning in contents.warnings) + warnings,
    )


def _from_environment() -> tuple[dict[str, Value], tuple[str, ...]]:
    """Read the settings in the environment, and say which of them are ignored."""
    written = {
        name: parse_value(name, os.environ[variable], variable)
        for name, variable in VARIABLES.items()
        if variable in os.environ
    }
    values, ignored = resolve_aliases(written)
    return values, tuple(
        f"{VARIABLES[loser]} is ignored: {VARIABLES[winner]} is set, too"
        for loser, winner in ignored
    )


def _checked(flags: Mapping[str, Value]) -> dict[str, Value]:
    written = {}
    for name, value in flags.items():
        if value is not None:
            settings_file.known_key(name, None)
            written[name] = check_value(name, value, name)
    return resolve_aliases(written)[0]


def effective(known: Config, key: str) -> tuple[Value, Origin]:
    """The value that holds for a dotted key, and which place it comes from.

    :param key: of a setting, or of an alias, whose scale the value is then on.
    :raises UsageError: there is no such setting.
    """
    table, name, written = settings_file.split_written_key(key)
    value, origin = _effective(known, table, name or "", setting_of(written))
    return to_alias(written, value), origin


def _effective(known: Config, table: str | None, name: str, setting: str) -> tuple[Value, Origin]:
    if table is None:
        value, origin = known.lookup(setting)
        return _shown(setting, value), origin
    if table == "partitions":
        return known.lookup(setting, partition=name)
    if setting in MODEL_ONLY:
        in_table = setting in known.model_table(name)
        return known.context_window(name), "model" if in_table else "default"
    value, origin = known.lookup(setting, model=name)
    if setting == "reserve_tokens" and value is None:
        return _usual_reserve(name), "default"
    return value, origin


def listed(known: Config) -> list[tuple[str, Value, Origin]]:
    """Every setting with its value and origin, then what partitions and models set themselves."""
    rows = [(key, *effective(known, key)) for key in SETTINGS]
    for table, origin, group in (
        ("partitions", "partition", known.partitions),
        ("models", "model", known.models),
    ):
        rows += [
            (settings_file.dotted_key(table, name, key), value, origin)  # type: ignore[misc]
            for name, values in group.items()
            for key, value in values.items()
        ]
    return rows


def _shown(key: str, value: Value) -> Value:
    """A value as it may be seen: the password of a server is not."""
    if key != "database" or not isinstance(value, str):
        return value
    value = re.sub(r"(://[^/?@]*?:)[^/?]*@", r"\1***@", value)
    value = re.sub(r"(?i)([?&](?:ssl)?password=)[^&]*", r"\1***", value)
    # Written for libpq it is refused, but it may stand in the settings until then.
    return re.sub(r"(?i)((?:^|\s)(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", r"\1***", value)


def required_window(known: Config, model: str | None, settings: Settings) -> int:
    """The context window to plan for: a model's, or the setting for when none is named.

    :raises UsageError: the model is unknown; the hint has near names and the way to add it.
    """
    if model is None:
        return settings.max_working_memory_tokens
    window = known.context_window(model)
    if window is not None:
        return window
    from reservoir_cli.settings.models import near_names

    near = near_names(model, [each.name for each in known.known_models()])
    wanted = shlex.quote(f"models.{model}.context_window=N")
    asked = f"did you mean {', '.join(near)}? Or " if near else ""
    raise UsageError(
        f"unknown model {model!r}",
        hint=f"{asked}reservoir config --set {wanted} adds it",
    )


def recommended_budget(model: str | None, budget: int | str | None, available: int) -> int | None:
    """A budget as it was asked for: a number, ``recommended``, or none.

    :param available: what the model's limit leaves: no recommendation is more, and it is the
        one of models without.
    :raises UsageError: ``recommended`` without a model, or no positive whole number.
    """
    if budget is None:
        return None
    if budget == "recommended":
        if model is None:
            raise UsageError("--budget recommended needs a model", hint="add --model NAME")
        from reservoir_cli.settings.models import find_model

        found = find_model(model)
        return min(found.recommended, available) if found and found.recommended else available
    text = str(budget).replace(",", "").replace("_", "")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_TOKENS:
        raise UsageError(
            f"--budget must be a positive whole number or recommended, not {budget!r}",
            hint="--budget 4000, or --model NAME --budget recommended; without it all is used "
            "that the model takes",
        )
    return int(text)


def model_rows(known: Config, partition: str | None = None) -> list[dict[str, str | int | None]]:
    """What is known of each model, by name."""
    rows: list[dict[str, str | int | None]] = []
    for model in known.known_models(partition):
        limit = known.lookup("max_context_tokens", partition, model.name)[0]
        available = max(0, model.context_window - model.reserve)
        if limit is not None:
            available = min(available, _whole(limit))
        rows.append(
            {
                "name": model.name,
                "context_window": model.context_window,
                "reserve": model.reserve,
                "available": available,
                "recommended": model.recommended and min(model.recommended, available),
                "origin": "file" if known.model_table(model.name) else "table",
            }
        )
    return rows


def _usual_reserve(model: str | None) -> int:
    """What is kept for the answer where no setting says so."""
    from reservoir_cli.settings.models import find_model

    known = find_model(model) if model else None
    return known.reserve if known else 4_096


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value
