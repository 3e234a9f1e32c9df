"""Checks of everything Reservoir stands on, and mending what can be mended."""

import os
import statistics
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from reservoir_cli import paths
from reservoir_cli.errors import ModelUnavailableError, ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.store import Filter, Store

if TYPE_CHECKING:
    from reservoir_cli.config import Config
    from reservoir_cli.embedding import Embedder, Progress

_QUESTION = "why did we decide that, and when?"
_TIMES = 5
_PORTION = 1_000


class Status(StrEnum):
    """How a check ended. A note is worth knowing; a fault stands in the way."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Check:
    """What was found in one place.

    :param fix: what to do about it, if there is something to do.
    """

    name: str
    status: Status
    detail: str
    fix: str | None = None


def examine(
    open_config: Callable[[], "Config"],
    open_store: Callable[[], Store],
    progress: "Progress",
    *,
    repair: bool = False,
) -> Iterator[Check]:
    """Look at settings, store, model and speed, each as far as it can be reached.

    :param open_config: reads the settings.
    :param open_store: opens the store; nothing is made where there is none.
    :param repair: first make everything again that is derived, and tighten file modes.
    """
    config = yield from _opened("settings", open_config)
    if config is not None:
        there = "" if config.path.exists() else " (not there: all defaults)"
        yield Check("settings", Status.OK, f"{config.path}{there}")
    store = yield from _opened("store", open_store)
    if store is not None:
        try:
            if repair and config is not None:
                progress("repairing", 0, 0)
                _tighten(store)
                store.repair(config.settings().synapse_threshold)
                _mark_secrets(store, config, progress)
            progress("checking the store", 0, 0)
            yield from _store_checks(store)
        except ReservoirError as error:
            yield _failed("store", error)
            store.close()
            store = None
    yield _counters()
    if config is not None:
        yield from _model_checks(config, store, progress)
    if store is not None:
        store.close()


_Part = TypeVar("_Part")


def back_up(store: Store, target: Path, progress: "Progress") -> None:
    """Copy a store as it is now, whole or not at all, while others write.

    :raises ReservoirError: there is no store, or the copy cannot be written.
    """
    if store.size() is None:
        raise ReservoirError(
            f"there is no store at {store.location}", hint="reservoir ingest makes it"
        )
    paths.refuse_store(target, store.files())
    if target.is_dir():
        raise ReservoirError(f"{target} is a folder", hint="name a file in it")
    try:
        with paths.whole_private(target) as unfinished:
            store.copy_to(unfinished, progress)
    except OSError as error:
        raise ReservoirError(f"cannot write {target}: {error.strerror}") from None


def _opened(name: str, opening: Callable[[], _Part]) -> Generator[Check, None, _Part | None]:
    try:
        return opening()
    except ReservoirError as error:
        yield _failed(name, error)
        return None


def _failed(name: str, error: ReservoirError) -> Check:
    return Check(name, Status.FAULT, error.message, error.hint)


def _store_checks(store: Store) -> Iterator[Check]:
    size = store.size()
    if size is None:
        where = f"{store.location} is not there yet"
        yield Check("store", Status.NOTE, where, "reservoir ingest makes it")
        return
    held = store.holdings()
    yield Check(
        "store",
        Status.OK,
        f"{store.location}, {held['messages']:,} messages, {size / 1e6:,.1f} MB"
        + (", read only" if store.read_only else ""),
    )
    yield Check("database", Status.OK, store.engine())
    for fault in store.faults():
        fix = "reservoir doctor --repair" if fault.repairable else "restore it from a backup"
        yield Check("contents", Status.FAULT, fault.detail, fix)
    open_to_others = [each for each in _files(store) if _others_may_read(each)]
    if open_to_others:
        names = ", ".join(each.name for each in open_to_others)
        yield Check("privacy", Status.NOTE, f"others may read {names}", "reservoir doctor --repair")
    if held["pending"]:
        yield Check(
            "vectors",
            Status.NOTE,
            f"{held['pending']:,} messages not embedded yet",
            "reservoir embed",
        )
    else:
        yield Check("vectors", Status.OK, f"{held['embedded']:,} messages embedded")
    if secret := len(store.find(Scope(None), Filter(secrets=True))):
        noun = "message" if secret == 1 else "messages"
        yield Check(
            "secrets",
            Status.NOTE,
            f"found in {secret:,} {noun}",
            "reservoir view 0 --secrets --all-partitions; forget --id N deletes one",
        )


def _mark_secrets(store: Store, config: "Config", progress: "Progress") -> None:
    """Look again through what was stored before there were marks, or with other rules."""
    from reservoir_cli.redaction import Mode, kinds_in

    off = cache(lambda partition: config.lookup("redact", partition)[0] == Mode.OFF)
    ids = store.find(Scope(None))
    for start in range(0, len(ids), _PORTION):
        progress("looking for secrets", start, len(ids))
        found = store.by_id(ids[start : start + _PORTION], Scope(None))
        kinds = {each.id: kinds_in(each) for each in found if not off(each.partition)}
        news = {
            each.id: kinds[each.id]
            for each in found
            if kinds.get(each.id, each.secrets) != each.secrets
        }
        if news:
            store.mark_secrets(news)


def _files(store: Store) -> Iterator[Path]:
    """The files of a store and our log, as far as they are there."""
    return (each for each in (*store.files(), paths.log_file()) if each.exists())


def _others_may_read(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def _tighten(store: Store) -> None:
    """Make our files the user's alone; folders are the user's own business."""
    for path in _files(store):
        if _others_may_read(path):
            with suppress(OSError):
                path.chmod(0o600)


def _model_checks(config: "Config", store: Store | None, progress: "Progress") -> Iterator[Check]:
    from reservoir_cli.embedding import load_embedder

    embedder = None
    try:
        name = config.settings().embedding_model
        embedder = load_embedder(name, offline=True, progress=progress)
    except ModelUnavailableError as error:
        yield Check("model", Status.NOTE, error.message, error.hint)
    if embedder is not None:
        engine = embedder.engine
        size = f"{embedder.dimensions} dimensions"
        yield Check("model", Status.OK, f"{embedder.name}, {size}, {engine.origin}")
        status = Status.OK if engine.kind == "compiled" else Status.NOTE
        yield Check("engine", status, f"{engine.kind}: {engine.reason}")
    active = store.active_model() if store else None
    if embedder and active and active[0] != embedder.model_id:
        yield Check(
            "vectors",
            Status.FAULT,
            f"the vectors of the store are of another model ({active[1]})",
            f"reservoir embed --rebuild, or config --set embedding_model={active[1]}",
        )
    elif store is not None:
        progress("measuring", 0, 0)
        yield _speed(store, embedder, config)


def _counters() -> Check:
    if find_spec("tiktoken"):
        return Check("tiktoken", Status.OK, "installed")
    fix = "pip install 'reservoir-cli[tiktoken]'"
    return Check("tiktoken", Status.NOTE, "not installed: tokens are counted approximately", fix)


def _speed(store: Store, embedder: "Embedder | None", config: "Config") -> Check:
    """How long a question takes once the program runs, in the fullest partition."""
    from reservoir_cli import ranking

    fullest = store.places()
    scope = Scope(fullest[0][0] if fullest else config.settings().partition)
    settings, now = config.settings(scope.partition), datetime.now(UTC)
    parts: dict[str, list[float]] = {"embedding it": [], "reading": [], "ranking": []}
    for _ in range(_TIMES):
        start = perf_counter()
        vector = embedder.encode_query(_QUESTION) if embedder else None
        embedded = perf_counter()
        found = store.candidates(scope, None, _QUESTION, vector)
        read = perf_counter()
        ranking.score(found, settings, round(1000 * now.timestamp()), 0 * found.ids.astype(float))
        for part, seconds in zip(
            parts, (embedded - start, read - embedded, perf_counter() - read), strict=True
        ):
            parts[part].append(seconds)
    told = (f"{part} {1000 * statistics.median(each):.0f} ms" for part, each in parts.items())
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(
        "speed",
        Status.OK,
        f"a question among {len(found.ids):,} messages: {', '.join(told)} (Python {version})",
    )
