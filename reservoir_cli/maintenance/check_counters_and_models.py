"""Check settings against this machine: that counters are available and models are known."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import edit_settings_file
from reservoir_cli.settings.config import Config, required_window
from reservoir_cli.settings.setting_keys import dotted_key, split_key
from reservoir_cli.tokens import load_counter

#: The prefix of counters that use the network; they need a key, which no settings file has.
_REMOTE = "anthropic:"


def check_changes(config: Config, changes: Mapping[str, str | None]) -> None:
    """Check the counters and models in a change of the settings file, before it is written."""
    contents = edit_settings_file.contents_after(config.path, changes)
    changed = replace(
        config, values=contents.values, partitions=contents.partitions, models=contents.models
    )
    for key, text in changes.items():
        table, _, setting = split_key(key)
        if text is None:
            continue
        if setting == "token_counter":
            if not text.startswith(_REMOTE) or text == _REMOTE:
                load_counter(text)
        elif setting == "model" and table is None:
            required_window(changed, text, changed.settings())


def unusable(config: Config) -> Iterator[tuple[str, ReservoirError]]:
    """Yield the counters and the model of the settings that cannot be used, with the errors."""
    for key, name in _named_counters(config):
        try:
            load_counter(name)
        except ReservoirError as error:
            yield key, error
    model, _ = config.lookup("model")
    try:
        required_window(config, None if model is None else str(model), config.settings())
    except ReservoirError as error:
        yield "language model", error


def _named_counters(config: Config) -> Iterator[tuple[str, str]]:
    yield "token_counter", str(config.lookup("token_counter")[0])
    for table, group in (("partitions", config.partitions), ("models", config.models)):
        for name, values in group.items():
            if "token_counter" in values:
                key = dotted_key(table, name, "token_counter")
                yield key, str(values["token_counter"])
