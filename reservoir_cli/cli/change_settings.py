"""Change settings for ``reservoir config``, and say what the changes mean for what is stored."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import typer

from reservoir_cli.cli import console, nothing_found, open_store, options
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.embedding.resolve import absolute
from reservoir_cli.errors import ReservoirError
from reservoir_cli.maintenance.availability import check_changes
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Filter
from reservoir_cli.settings import config, edit_file
from reservoir_cli.settings.keys import split_assignment, split_key, split_written_key
from reservoir_cli.settings.schema import from_alias, setting_of
from reservoir_cli.settings.setting_values import parse_value

_MODEL = "embedding_model"


def change(ctx: typer.Context, file: Path, edits: Mapping[str, str | None]) -> None:
    """Change settings together or not at all, and say what a person should know of it.

    :param edits: the text of each key's new value; ``None`` unsets it.
    :raises UsageError: a wrong key or value.
    """
    if model := edits.get(_MODEL):  # a relative path would lead elsewhere from another folder
        edits = {**edits, _MODEL: absolute(model)}
    _edit(globals_of(ctx).config, file, edits)
    _say_if_empty(ctx, edits.get("partition"))
    for key in edits:
        if key.rpartition(".")[2] == "redact":
            _count_stored_secrets(ctx, split_key(key)[1])


def _edit(given: Path | None, file: Path, changes: Mapping[str, str | None]) -> None:
    """Change the settings file, and tell of names that are older ones."""
    if any(text is not None for text in changes.values()):
        check_changes(config.load(given), changes)
    edit_file.edit(file, changes)
    for key, text in changes.items():
        if text is not None and (note := _note(key, text)):
            console.note(note)


def _note(key: str, text: str) -> str:
    """Describe what an older name of a key stands for."""
    written = split_written_key(key)[2]
    if (setting := setting_of(written)) == written:
        return ""
    value = from_alias(written, given := parse_value(written, text, key))
    scale = f", a plain cosine: {value} for {given}" if value != given else ""
    return f"{written} is now called {setting}{scale}"


def _say_if_empty(ctx: typer.Context, partition: str | None) -> None:
    """Say that the partition that is used from now on holds nothing, if others hold something."""
    if partition is None:
        return
    with suppress(ReservoirError), open_store.open_reservoir(ctx) as reservoir:
        if places := reservoir.lookup.places():
            nothing_found.tell(Scope(partition), places)


def _count_stored_secrets(ctx: typer.Context, partition: str | None) -> None:
    """Say how many messages keep secrets although they are removed from now on."""
    with suppress(ReservoirError), open_store.open_reservoir(ctx) as reservoir:
        if reservoir.config.lookup("redact", partition)[0] != "remove":
            return
        if count := len(reservoir.find(Scope(partition), Filter(secrets=True))):
            verb = "holds" if count == 1 else "hold"
            console.note(
                f"{options.counted(count, 'stored message')} {verb} secrets: they are hidden in "
                "what is printed, and not removed; reservoir view 0 --secrets --all-partitions "
                "lists them, reservoir forget --id N deletes one"
            )


def parse_edits(changes: list[str], unset: list[str]) -> dict[str, str | None]:
    """Return what is to change: the text of each key's new value; ``None`` for one to unset.

    :param changes: each ``KEY=VALUE``.
    :raises UsageError: one of them is not.
    """
    parsed: dict[str, str | None] = dict.fromkeys(unset)
    for each in changes:
        key, value = split_assignment(each)
        parsed[key] = value
    return parsed
