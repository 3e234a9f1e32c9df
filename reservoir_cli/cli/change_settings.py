"""Change settings for ``reservoir config``, and print notes on how they affect the store."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import typer

from reservoir_cli.cli import console, nothing_found, open_store
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.embedding.find_model import absolute, locate
from reservoir_cli.errors import ModelUnavailableError, ReservoirError, UsageError
from reservoir_cli.maintenance.check_counters_and_models import check_changes
from reservoir_cli.messages import Filter, Scope
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.settings.setting_keys import split_assignment, split_key
from reservoir_cli.transfer.sync.history_sources import check
from reservoir_cli.util.installed_plugins import find_scheme
from reservoir_cli.util.progress import counted, no_progress

_MODEL = "embedding_model"


def change(ctx: typer.Context, file: Path, edits: Mapping[str, str | None]) -> None:
    """Change settings together or not at all, and print notes; ``None`` unsets a key."""
    if model := edits.get(_MODEL):  # a relative path would lead elsewhere from another folder
        edits = {**edits, _MODEL: absolute(model)}
    absent = [
        key for key in edits if edits[key] is None and edit_settings_file.is_absent(file, key)
    ]
    if any(text is not None for text in edits.values()):
        check_changes(config.load(globals_of(ctx).config), edits)
    edit_settings_file.edit(file, edits)
    if absent:
        console.note(f"not set in {file}: {', '.join(absent)}")
    _note_absent_model(edits.get(_MODEL))
    _note_wrong_sources(ctx, [key for key, text in edits.items() if text is not None])
    note_empty_partition(ctx, edits.get("partition"))
    for key in edits:
        if key.rpartition(".")[2] == "redact":
            _note_stored_secrets(ctx, split_key(key)[1])


def _note_absent_model(name: str | None) -> None:
    if name and not find_scheme("embedders", name)[0]:
        try:
            locate(name, offline=True, progress=no_progress)
        except ModelUnavailableError as error:
            console.note(f"{error.message}: {error.hint}")


def _note_wrong_sources(ctx: typer.Context, keys: Iterable[str]) -> None:
    changed = dict.fromkeys(name for table, name, _ in map(split_key, keys) if table == "sources")
    if changed:
        current = config.load(globals_of(ctx).config)
        for name in filter(None, changed):
            try:
                check(current, name)
            except UsageError as error:
                console.note(f"{error.message}; {error.hint}")


def note_empty_partition(ctx: typer.Context, partition: str | None) -> None:
    """Note that a partition to use from now on is empty, if others are not."""
    if partition is None:
        return
    with suppress(ReservoirError), open_store.open_reservoir(ctx) as reservoir:
        if channels := reservoir.lookup.channels():
            nothing_found.tell(Scope(partition), channels)


def _note_stored_secrets(ctx: typer.Context, partition: str | None) -> None:
    with suppress(ReservoirError), open_store.open_reservoir(ctx) as reservoir:
        if reservoir.config.lookup("redact", partition)[0] != "remove":
            return
        if count := len(reservoir.find(Scope(partition), Filter(secrets=True))):
            verb = "contains" if count == 1 else "contain"
            console.note(
                f"{counted(count, 'stored message')} {verb} secrets: they are masked in "
                "output, not removed; reservoir view 0 --secrets --all-partitions lists them, "
                "reservoir forget --id N deletes one"
            )


def parse_edits(changes: list[str], unset: list[str]) -> dict[str, str | None]:
    """Return the new text of each key, ``None`` to unset it; raise UsageError without ``=``."""
    edits: dict[str, str | None] = dict.fromkeys(unset)
    for assignment in changes:
        key, value = split_assignment(assignment)
        edits[key] = value
    return edits
