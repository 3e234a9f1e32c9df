"""Check settings, store, model and speed, and repair the store."""

import os
import shlex
import statistics
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from reservoir_cli.context.counter_factors import ENOUGH, counter_factors
from reservoir_cli.embedding import Embedder
from reservoir_cli.embedding.load_model import compiled_is_damaged, load_embedder
from reservoir_cli.errors import (
    ModelUnavailableError,
    ReservoirError,
    StoreCorruptError,
    UsageError,
)
from reservoir_cli.maintenance.check_counters_and_models import unusable
from reservoir_cli.maintenance.model_language import find_wrong_language
from reservoir_cli.messages import EVERYWHERE, Filter, Scope
from reservoir_cli.redaction import Mode, find_kinds
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.embed_messages import describe_other_model
from reservoir_cli.retrieval.recall_floor import floor_property, recall_floor
from reservoir_cli.settings import log_file, paths
from reservoir_cli.settings.config import Config, load
from reservoir_cli.settings.setting_keys import dotted_key
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.properties import UNFINISHED_COPY, unfinished_copy_error
from reservoir_cli.storage.store import Repaired, Store
from reservoir_cli.tokens import counter_id, storing_counter
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.private_files import restrict_permissions
from reservoir_cli.util.progress import Progress, counted
from reservoir_cli.util.shared_folders import describe_shared_folder

_QUESTION = "why did we decide that, and when?"
_REPETITIONS = 5
_BATCH = 1_000
_FACTOR_ERROR = 0.1  #: By how much a multiplier may differ from what providers report.
#: Checks the settings of a source by its name; returns what is wrong and the fix if it is missing.
_CheckSource = Callable[[Config, str], tuple[str, str] | None]


class Status(StrEnum):
    """The result of a check. A note is for information; a fault must be fixed."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Check:
    """A finding of the doctor."""

    name: str
    status: Status
    detail: str
    fix: str | None = None


def examine(
    location: str | Path | None,
    config_file: Path | None,
    progress: Progress,
    *,
    check_source: _CheckSource,
    repair: bool = False,
) -> Iterator[Check]:
    """Check settings, store, model and speed, as far as each is accessible.

    :param check_source: checks the settings of a source.
    :param repair: first rebuild derived data, and fix file permissions.
    """
    yield from _plugin_checks()
    config = yield from _try_open("settings", lambda: load(config_file))
    if config is not None:
        yield from _settings_checks(config, check_source)
    store = yield from _try_open("store", lambda: _open_store(location, config), repair=repair)
    with ExitStack() as opened:
        if store is not None:
            opened.callback(store.close)
            try:
                yield from _examine_store(store, config, progress, repair=repair)
            except ReservoirError as error:
                beyond = repair and isinstance(error, StoreCorruptError)
                hint = _restore_hint(store)
                yield _unrepaired(error, hint) if beyond else _fault("store", error)
                opened.close()
                store = None
        yield from _log_checks()
        if config is not None:
            try:
                yield from _model_checks(config, store, progress, repair=repair)
            except ReservoirError as error:  # from reading the store
                yield _fault("store", error)


def _examine_store(
    store: Store, config: Config | None, progress: Progress, *, repair: bool
) -> Iterator[Check]:
    if repair and config is not None:
        progress("repairing", 0, 0)
        if loose := restrict_permissions(_files(store)):
            names = ", ".join(path.name for path in loose)
            yield Check("privacy", Status.NOTE, f"{names}: now readable only by you")
        yield from _losses(store.repair())
        _mark_secrets(store, config, progress)
    progress("checking the store", 0, 0)
    yield from _store_checks(store, repaired=repair)
    yield from _partition_checks(store, config)
    if config is not None:
        yield from _factor_checks(store, config)


def _log_checks() -> Iterator[Check]:
    log = paths.log_file()
    yield Check("log", Status.OK, f"{log}{'' if log.exists() else ' (does not exist yet)'}")
    if failures := log_file.recent_failures():
        detail = log_file.describe_failures(failures)
        yield Check("hooks", Status.NOTE, detail, "reservoir recall --last lists what agents got")


def _open_store(location: str | Path | None, config: Config | None) -> Store:
    path = config.store_location(location) if config else location or paths.store_location()
    return open_store(str(path), create=False)


_Part = TypeVar("_Part")
#: The hint for a store that cannot be opened.
_CANNOT_OPEN = (
    "move it and the files -wal and -shm beside it away, then copy a backup there; without one, "
    "reservoir doctor --salvage FILE saves what can be read"
)


def _try_open(
    name: str, open_part: Callable[[], _Part], *, repair: bool = False
) -> Generator[Check, None, _Part | None]:
    try:
        return open_part()
    except ReservoirError as error:
        beyond = repair and isinstance(error, StoreCorruptError)
        yield _unrepaired(error, _CANNOT_OPEN) if beyond else _fault(name, error)
        return None


def _fault(name: str, error: ReservoirError) -> Check:
    return Check(name, Status.FAULT, error.message, error.hint)


def _unrepaired(error: ReservoirError, fix: str) -> Check:
    detail = f"{error.message}; it cannot be repaired, and was left as it is"
    return Check("store", Status.FAULT, detail, fix)


def _losses(repaired: Repaired) -> Iterator[Check]:
    if repaired.texts:
        detail = f"invalid bytes were replaced by U+FFFD in messages {_first_ten(repaired.texts)}"
        yield Check("texts", Status.NOTE, detail, "a backup may have the original text")
    if repaired.summaries is None:
        detail = "some summaries of conversations could not be read, and are deleted"
        yield Check("summaries", Status.NOTE, detail, "reservoir summarize -p PARTITION")
    elif names := repaired.summaries:
        ids = _first_ten([conversation for *_, conversation in names])
        count = counted(len(names), "conversation")
        detail = f"the summaries of {count} could not be read, and are deleted: {ids}"
        partitions = sorted({name[0] for name in names})
        fix = "; ".join(f"reservoir summarize -p {shlex.quote(name)}" for name in partitions)
        yield Check("summaries", Status.NOTE, detail, fix)


def _first_ten(ids: Sequence[object]) -> str:
    return ", ".join(map(str, ids[:10])) + (", …" if len(ids) > 10 else "")


def _store_checks(store: Store, *, repaired: bool) -> Iterator[Check]:
    size = store.size()
    if size is None:
        detail = f"{store.location} does not exist yet"
        yield Check("store", Status.NOTE, detail, "reservoir ingest creates it")
        return
    counts = store.holdings()
    yield Check(
        "store",
        Status.OK,
        f"{store.location}, {counted(counts['messages'], 'message')}, {size / 1e6:,.1f} MB"
        + (", read only" if store.read_only else ""),
    )
    yield Check("database", Status.OK, store.engine())
    if store.files() and (shared := describe_shared_folder(store.files()[0])):
        yield Check("file_system", Status.NOTE, *shared)
    if mark := store.get_property(UNFINISHED_COPY):
        yield _fault("copy", unfinished_copy_error(mark, store.location))
    for problem in store.problems():
        can_repair = problem.repairable and not repaired
        fix = "reservoir doctor --repair" if can_repair else _restore_hint(store)
        yield Check("contents", Status.FAULT, problem.detail, fix)
    is_posix = os.name == "posix"
    if exposed := [path for path in _files(store) if is_posix and path.stat().st_mode & 0o077]:
        names = ", ".join(path.name for path in exposed)
        detail = f"other users can read {names}"
        yield Check("privacy", Status.NOTE, detail, "reservoir doctor --repair")
    if store.files() and _is_open(folder := store.files()[0].absolute().parent):
        detail = f"other users can enter the folder of the store, {folder}"
        yield Check("folder", Status.NOTE, detail, "move the store to a folder of your own")
    if counts["pending"]:
        detail = f"{counted(counts['pending'], 'message')} not embedded yet"
        yield Check("vectors", Status.NOTE, detail, "reservoir embed")
    else:
        yield Check("vectors", Status.OK, f"{counted(counts['embedded'], 'message')} embedded")
    if secret := len(store.find(EVERYWHERE, Filter(secrets=True))):
        yield Check(
            "secrets",
            Status.NOTE,
            f"found in {counted(secret, 'message')}",
            "reservoir view 0 --secrets --all-partitions; reservoir forget --id N deletes one",
        )


def _factor_checks(store: Store, config: Config) -> Iterator[Check]:
    for row in counter_factors(store, datetime.now(UTC)):
        settings = config.settings(None, row.model)
        try:
            counter = storing_counter(settings.token_counter)
        except ReservoirError:  # reported with the settings
            continue
        if counter_id(counter) != row.counter:
            continue
        detail = (
            f"{row.model} has {row.factor:.2f} times the tokens that {counter.name} counts, "
            f"by {counted(row.answers, 'answer')}"
        )
        fix, is_set = None, config.lookup("token_multiplier", None, row.model)[1] != "default"
        if row.answers < ENOUGH:
            detail += f"; used after {ENOUGH}"
        elif not (is_set or counter.exact):
            detail += ", and its counts are multiplied by that"
        elif abs(settings.token_multiplier / row.factor - 1) > _FACTOR_ERROR:
            key = dotted_key("models", row.model, "token_multiplier")
            detail += f"; token_multiplier is {settings.token_multiplier:g}"
            fix = f"reservoir config set {shlex.quote(f'{key}={row.factor:.2f}')}"
        yield Check("token_counts", Status.NOTE if fix else Status.OK, detail, fix)


def _partition_checks(store: Store, config: Config | None) -> Iterator[Check]:
    tables = config.partitions if config else {}
    partitions = {partition for partition, *_ in store.channels()} if tables else set()
    for name in sorted(tables.keys() - partitions) if partitions else ():
        keys = [dotted_key("partitions", name, setting) for setting in tables[name]]
        detail = f"there are settings for the partition {name}, which the store does not have"
        fix = f"reservoir config unset {shlex.join(keys)}; reservoir partitions lists the names"
        yield Check("settings", Status.NOTE, detail, fix)


def _mark_secrets(store: Store, config: Config, progress: Progress) -> None:
    """Scan all messages again, as some were stored by a version with other rules or none."""
    is_off = cache(lambda partition: config.lookup("redact", partition)[0] == Mode.OFF)
    keys = store.find(EVERYWHERE)
    for start in range(0, len(keys), _BATCH):
        progress("looking for secrets", start, len(keys))
        messages = store.by_key(keys[start : start + _BATCH])
        kinds = {
            message.key: find_kinds(message)
            for message in messages
            if not is_off(message.partition)
        }
        changed = {
            message.key: kinds[message.key]
            for message in messages
            if kinds.get(message.key, message.secrets) != message.secrets
        }
        if changed:
            store.mark_secrets(changed)


def _restore_hint(store: Store) -> str:
    if not store.files():
        return "restore the database from a dump"
    path, log, index, *_ = store.files()
    return (
        f"move {path}, {log.name} and {index.name} away, copy a backup to {path}; without one, "
        "reservoir doctor --salvage FILE saves what can be read"
    )


def _files(store: Store) -> Iterator[Path]:
    return (path for path in paths.private_files(store.files()) if path.exists())


def _is_open(folder: Path) -> bool:
    """Return whether other users can enter a folder, and all those above it."""
    above = (folder, *folder.parents)
    return os.name == "posix" and all(path.stat().st_mode & 0o001 for path in above)


def _model_checks(
    config: Config, store: Store | None, progress: Progress, *, repair: bool
) -> Iterator[Check]:
    embedder = yield from _embedder(config, progress, repair=repair)
    active = store.active_model() if store else None
    if embedder and active and active[0] != embedder.model_id:
        yield Check("vectors", Status.FAULT, *describe_other_model(embedder, active[1]))
    elif store is not None:
        if embedder:
            yield _floor(store, embedder, config)
        if wrong := find_wrong_language(store, config.settings().embedding_model):
            yield Check("language", Status.NOTE, wrong.detail, wrong.fix)
        progress("measuring", 0, 0)
        yield _speed(store, embedder, config)


def _floor(store: Store, embedder: Embedder, config: Config) -> Check:
    settings, measured = config.settings(), store.get_property(floor_property(embedder.model_id))
    floor = recall_floor(settings, embedder.model_id, measured)
    if settings.recall_floor is not None:
        return Check("recall_floor", Status.OK, f"{floor:g} (setting)")
    if measured is not None:
        return Check("recall_floor", Status.OK, f"{floor:g} (calibrated on this store)")
    if floor:
        return Check("recall_floor", Status.OK, f"{floor:g} (measured for this model)")
    detail = "off: none was measured for this model"
    return Check("recall_floor", Status.NOTE, detail, "reservoir doctor --calibrate")


def _embedder(
    config: Config, progress: Progress, *, repair: bool
) -> Generator[Check, None, "Embedder | None"]:
    try:
        name = config.settings().embedding_model
        progress("checking the embedding model", 0, 0)
        if compiled_is_damaged(name, remove=repair):
            detail = "the compiled model is damaged"
            if not repair:
                yield Check("engine", Status.FAULT, detail, "reservoir doctor --repair")
                return None
            fix = "reservoir embed --rebuild, if embeddings were built with it since"
            yield Check("engine", Status.NOTE, f"{detail}, and is rebuilt", fix)
        embedder = load_embedder(name, offline=True, progress=progress)
    except ModelUnavailableError as error:
        yield Check("model", Status.NOTE, error.message, error.hint)
        return None
    engine = embedder.engine
    size = f"{embedder.dimensions} dimensions"
    yield Check("model", Status.OK, f"{embedder.name}, {size}, {engine.origin}")
    if engine.kind in ("compiled", "plugin"):
        yield Check("engine", Status.OK, engine.reason)  # it begins with that word
    else:
        yield Check("engine", Status.NOTE, f"{engine.kind}: {engine.reason}")
    return embedder


def _plugin_checks() -> Iterator[Check]:
    for plugin, error in installed_plugins.check_all():
        detail = f"{plugin.kind}: {plugin.name} of {plugin.package}"
        yield _fault("plugin", error) if error else Check("plugin", Status.OK, detail)


def _settings_checks(config: Config, check_source: _CheckSource) -> Iterator[Check]:
    suffix = "" if config.path.exists() else " (does not exist: all defaults)"
    yield Check("settings", Status.OK, f"{config.path}{suffix}")
    for warning in config.warnings:
        yield Check("settings", Status.NOTE, warning)
    yield from _sources_checks(config, check_source)
    wrong = dict(unusable(config))
    for key, error in wrong.items():
        yield Check(key, Status.FAULT, error.message, error.hint)
    if "token_counter" not in wrong:
        name, origin = config.lookup("token_counter")
        yield Check("token_counter", Status.OK, f"{name} ({origin})")
    if find_spec("tiktoken"):
        yield Check("tiktoken", Status.OK, "installed")
    else:
        detail = "not installed; it counts tokens of OpenAI models exactly"
        yield Check("tiktoken", Status.NOTE, detail, "pip install tiktoken")


def _sources_checks(config: Config, check_source: _CheckSource) -> Iterator[Check]:
    for name in config.sources:
        try:
            if missing := check_source(config, name):
                yield Check("sources", Status.NOTE, *missing)
        except UsageError as error:
            yield _fault("sources", error)


def _speed(store: Store, embedder: Embedder | None, config: Config) -> Check:
    """Measure how long a question takes once modules are imported, in the largest partition."""
    channels = store.channels()
    scope = Scope(channels[0][0] if channels else config.settings().partition)
    settings, now = config.settings(scope.partition), datetime.now(UTC)
    parts: dict[str, list[float]] = {"embedding it": [], "reading": [], "ranking": []}
    for _ in range(_REPETITIONS):
        start = perf_counter()
        vector = embedder.encode_query(_QUESTION) if embedder else None
        embedded = perf_counter()
        candidates = store.candidates(scope, None, _QUESTION, vector)
        read = perf_counter()
        ranking.score(
            candidates, settings, round(1000 * now.timestamp()), 0 * candidates.ids.astype(float)
        )
        for part, seconds in zip(
            parts, (embedded - start, read - embedded, perf_counter() - read), strict=True
        ):
            parts[part].append(seconds)
    medians = (f"{part} {1000 * statistics.median(times):.0f} ms" for part, times in parts.items())
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(
        "speed",
        Status.OK,
        f"a question among {counted(len(candidates.ids), 'message')}: {', '.join(medians)} "
        f"(Python {version})",
    )
