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
    ALIASES,
    DEFAULTS,
    LARGE_WINDOW,
    MODEL_ONLY,
    PROFILES,
    SETTINGS,
    SMALL_WINDOW,
    Settings,
    Value,
    check_value,
    parse_value,
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
    """

    path: Path
    values: Mapping[str, Value]
    partitions: Mapping[str, Mapping[str, Value]]
    models: Mapping[str, Mapping[str, Value]]
    environment: Mapping[str, Value]
    flags: Mapping[str, Value] = field(default_factory=dict)

    def settings(self, partition: str | None = None, model: str | None = None) -> Settings:
        """The effective settings for a partition and a model (default: the ones set)."""
        return Settings(
            **{key: self.lookup(key, partition, model)[0] for key in SETTINGS}  # type: ignore[arg-type]
        )

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
        """Tokens kept for the answer: flag, model's setting, general setting, table, 4,096."""
        if "token_reserve" in self.flags and settings.token_reserve is not None:
            return settings.token_reserve
        if model and "reserve_tokens" in (own := self.model_table(model)):
            return _whole(own["reserve_tokens"])
        if settings.token_reserve is not None:
            return settings.token_reserve
        from reservoir_cli.settings.models import find_model

        known = find_model(model) if model else None
        return known.reserve if known else 4_096

    def known_models(self) -> "list[Model]":
        """The table, with what the file adds and changes, sorted by name."""
        from reservoir_cli.settings.models import MODELS, Model, find_model

        found = {known.name: known for known in MODELS}
        settings = self.settings()
        for name in self.models:
            window = self.context_window(name)
            if window is not None:
                known = find_model(name)
                key = known.name if known else name
                found[key] = Model(
                    key, window, self.reserve(name, settings), known.recommended if known else None
                )
        return sorted(found.values(), key=lambda each: each.name)

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
    values, partitions, models = settings_file.read(file, required=path is not None)
    environment = {
        ALIASES.get(key, key): parse_value(ALIASES.get(key, key), os.environ[name], name)
        for key in (*SETTINGS, *ALIASES)
        if (name := f"RESERVOIR_{key.upper()}") in os.environ
    }
    return Config(file, values, partitions, models, environment, _checked(flags or {}))


def _checked(flags: Mapping[str, Value]) -> dict[str, Value]:
    return {
        (known := settings_file.known_key(key, None)): check_value(known, value, known)
        for key, value in flags.items()
        if value is not None
    }


def effective(known: Config, key: str) -> tuple[Value, Origin]:
    """The value that holds for a dotted key, and which place it comes from.

    :raises UsageError: there is no such setting.
    """
    table, name, setting = settings_file.split_key(key)
    if table is None:
        value, origin = known.lookup(setting)
        return _shown(setting, value), origin
    if table == "partitions":
        return known.lookup(setting, partition=name)
    if setting not in MODEL_ONLY:
        return known.lookup(setting, model=name)
    own = known.model_table(name or "")
    if setting in own:
        return own[setting], "model"
    if setting == "context_window":
        return known.context_window(name or ""), "default"
    return known.reserve(name, known.settings(model=name)), "default"


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


def model_rows(known: Config) -> list[dict[str, str | int | None]]:
    """What is known of each model, by name."""
    rows: list[dict[str, str | int | None]] = []
    for model in known.known_models():
        limit = known.settings(model=model.name).max_context_tokens
        room = max(0, model.context_window - model.reserve)
        rows.append(
            {
                "name": model.name,
                "context_window": model.context_window,
                "reserve": model.reserve,
                "available": room if limit is None else min(limit, room),
                "recommended": model.recommended,
                "origin": "file" if known.model_table(model.name) else "table",
            }
        )
    return rows


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value
