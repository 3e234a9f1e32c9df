"""Carrying a whole store over to another, of whatever kind the two are.

It goes in portions, each in one transaction with a mark of how far it came: what is broken off
goes on where it was. At the end both stores are read through and compared. Messages keep their
ids; what is derived from them is made anew where they arrive.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Progress
from reservoir_cli.storage.unfinished import UNFINISHED_COPY, refuse

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Portion:
    """Messages in order of their ids, and what belongs to them but their links.

    :param messages: rows with the columns of :data:`reservoir_cli.storage.sqlite.writes.COLUMNS`.
    :param vectors: (message id, model identity, passage, start, end, float32 little-endian).
    :param waiting: ids without vectors of the active model, and of the one that is being built.
    """

    messages: list[tuple[Any, ...]]
    vectors: list[tuple[int, str, int, int, int, bytes]]
    waiting: tuple[list[int], list[int]]

    @property
    def ids(self) -> list[int]:
        """Of the messages."""
        return [row[0] for row in self.messages]


@dataclass(frozen=True, slots=True)
class Remainder:
    """What belongs to no message.

    :param conversations: (partition, instance, id, title, source, model, project, branch).
    :param runs: records of contexts, oldest first, without their numbers.
    :param forgotten: marks, ascending.
    :param properties: what the store knows of itself.
    """

    conversations: list[tuple[Any, ...]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    forgotten: list[bytes] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)


#: Source, target, likeness, kind.
Link = tuple[int, int, float, str]


def copy(source: Store, target: Store, progress: Progress) -> dict[str, int]:
    """Copy a store into an empty one, or go on with a copy that was broken off.

    :returns: what was copied, by its kind.
    :raises UsageError: the target is the source, or holds something else.
    :raises StoreError: the source is itself a copy that is not finished.
    :raises ReservoirError: the two differ at the end.
    """
    if _place(source) == _place(target):
        raise UsageError("a store cannot be copied into itself", hint="name another target")
    refuse(source.noted(UNFINISHED_COPY), source.location)
    target.receiving = True
    try:
        return _copy(source, target, progress)
    finally:
        target.receiving = False


def _copy(source: Store, target: Store, progress: Progress) -> dict[str, int]:
    step, after = _begin(source, target)
    total = source.holdings()["messages"]
    with source.snapshot():
        # At first for the names of the models; again at the end, for what else there is.
        target.put_remainder(source.remainder())
        if step == "messages":
            _messages(source, target, after, total, progress)
            step, after = "links", 0
        if step == "links":
            _links(source, target, after, total, progress)
        with target.writing():
            target.put_remainder(source.remainder())
        progress("comparing", 0, 0)
        if _digest(source) != _digest(target):
            raise ReservoirError(
                "the copy differs from its source: one of the two was changed in between",
                hint=f"{_emptying(target)}, then copy again",
            )
    with target.writing():
        target.note(UNFINISHED_COPY, None)
    held = target.holdings()
    return {name: held[name] for name in ("messages", "conversations", "embedded", "synapses")}


def _begin(source: Store, target: Store) -> tuple[str, int]:
    """How far the copy came before: its step, and the id behind which it goes on."""
    mark = json.loads(target.noted(UNFINISHED_COPY) or "null")
    if mark is None:
        held = target.holdings()
        if held["messages"] or held["conversations"] or target.remainder() != Remainder():
            raise UsageError(
                f"{target.location} is not empty",
                hint="reservoir export and ingest bring two stores together",
            )
        _note(source, target, "messages", 0)
        return "messages", 0
    if mark["source"] not in (_place(source), source.location):
        raise UsageError(
            f"{target.location} is an unfinished copy of {mark['source']}",
            hint="finish that one first, or take an empty target",
        )
    return str(mark["step"]), int(mark["after"])


def _place(store: Store) -> str:
    """Where a store is, from whatever folder one looks."""
    files = store.files()
    return str(files[0]) if files else store.location


def _emptying(store: Store) -> str:
    """How a store is taken away."""
    if store.files():
        path, log, index, *_ = store.files()
        return f"remove {path}, and {log.name} and {index.name} where they are"
    return f"psql {store.location} -c 'DROP SCHEMA reservoir CASCADE'"


def _note(source: Store, target: Store, step: str, after: int) -> None:
    mark = {"source": _place(source), "step": step, "after": after}
    with target.writing():
        target.note(UNFINISHED_COPY, json.dumps(mark))


def _messages(source: Store, target: Store, after: int, total: int, progress: Progress) -> None:
    done = 0
    for portion in _portions(source, after):
        with target.writing():
            target.put_portion(portion)
            _note(source, target, "messages", portion.ids[-1])
        progress("copying messages", done := done + len(portion.messages), total)
    _note(source, target, "links", 0)


def _links(source: Store, target: Store, after: int, total: int, progress: Progress) -> None:
    done = 0
    for portion in _portions(source, after):
        with target.writing():
            target.put_links(source.links(portion.ids))
            _note(source, target, "links", portion.ids[-1])
        progress("copying links", done := done + len(portion.messages), total)


def _portions(store: Store, after: int = 0) -> Iterator[Portion]:
    while (portion := store.portion(after, _AT_ONCE)).messages:
        yield portion
        after = portion.ids[-1]


def _digest(store: Store) -> dict[str, tuple[int, str]]:
    """How much a store holds of each kind, and a hash of it."""
    counts = dict.fromkeys(("messages", "vectors", "waiting", "links", "remainder"), 0)
    hashes = {name: hashlib.sha256() for name in counts}

    def take(name: str, rows: Sequence[Any]) -> None:
        counts[name] += len(rows)
        for row in rows:
            hashes[name].update(json.dumps(row, default=bytes.hex).encode())

    with store.snapshot():
        for portion in _portions(store):
            take("messages", portion.messages)
            take("vectors", portion.vectors)
            take("waiting", [*portion.waiting[0], None, *portion.waiting[1]])
            take("links", store.links(portion.ids))
        rest = store.remainder()
        take("remainder", [*rest.conversations, rest.runs, rest.forgotten])
        take("remainder", sorted(rest.properties.items()))
    return {name: (counts[name], hashes[name].hexdigest()) for name in counts}


__all__ = ["UNFINISHED_COPY", "Link", "Portion", "Remainder", "copy"]
