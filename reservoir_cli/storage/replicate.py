"""Carrying a whole store over to another, of whatever kind the two are.

It goes in portions, each in one transaction with a mark of how far it came: what is broken off
goes on where it was. At the end both stores are read through and compared. Messages keep their
ids, unless they come to a file and two partitions of a server use the same one; what is derived
from them is made anew where they arrive.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Key
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Progress
from reservoir_cli.storage.sqlite.writes import COLUMNS
from reservoir_cli.storage.unfinished import UNFINISHED_COPY, refuse

_AT_ONCE = 500
#: A sum of hashes is kept below this.
_HASHES = 2**256
_PARTITION = COLUMNS.split(", ").index("partition")


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

    @property
    def keys(self) -> list[Key]:
        """Of the messages."""
        return [Key(row[_PARTITION], row[0]) for row in self.messages]


@dataclass(frozen=True, slots=True)
class Remainder:
    """What belongs to no message.

    :param conversations: (partition, instance, id, title, source, model, project, branch).
    :param runs: records of contexts, oldest first, without their numbers.
    :param forgotten: marks, ascending.
    :param properties: what the store knows of itself.
    :param summaries: rows with the columns of :data:`reservoir_cli.storage.summaries.COLUMNS`.
    """

    conversations: list[tuple[Any, ...]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    forgotten: list[bytes] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    summaries: list[tuple[Any, ...]] = field(default_factory=list)


#: Partition, source, target, likeness, kind.
Link = tuple[str, int, int, float, str]
#: The ids of messages that get another one where they arrive.
Renamed = Mapping[Key, int]


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
        renamed = _renamed(source) if target.files() else {}
        # At first for the names of the models; again at the end, for what else there is.
        target.put_remainder(source.remainder())
        if step == "messages":
            _messages(source, target, renamed, after, total, progress)
            step, after = "links", None
        if step == "links":
            _links(source, target, renamed, after, total, progress)
        with target.writing():
            target.put_remainder(source.remainder())
        progress("comparing", 0, 0)
        if _digest(source, renamed) != _digest(target):
            raise ReservoirError(
                "the copy differs from its source: one of the two was changed in between",
                hint=f"{_emptying(target)}, then copy again",
            )
    with target.writing():
        target.note(UNFINISHED_COPY, None)
    held = target.holdings()
    return {name: held[name] for name in ("messages", "conversations", "embedded", "synapses")}


def _renamed(source: Store) -> Renamed:
    """Return new ids, behind all others, for messages whose id another partition uses, too."""
    if not (twins := source.twins()):
        return {}
    last = max(number for portion in _portions(source) for number in portion.ids)
    return {key: last + at for at, key in enumerate(twins, 1)}


def _begin(source: Store, target: Store) -> tuple[str, Key | None]:
    """Return how far the copy came before: its step, and the key behind which it goes on."""
    mark = json.loads(target.noted(UNFINISHED_COPY) or "null")
    if mark is None:
        held = target.holdings()
        if held["messages"] or held["conversations"] or target.remainder() != Remainder():
            raise UsageError(
                f"{target.location} is not empty",
                hint="reservoir export and ingest bring two stores together",
            )
        _note(source, target, "messages", None)
        return "messages", None
    if mark["source"] not in (_place(source), source.location):
        raise UsageError(
            f"{target.location} is an unfinished copy of {mark['source']}",
            hint="finish that one first, or take an empty target",
        )
    after = mark["after"]
    # An older version noted the id alone.
    return str(mark["step"]), Key(*after) if isinstance(after, list) else Key("", after or 0)


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


def _note(source: Store, target: Store, step: str, after: Key | None) -> None:
    mark = {"source": _place(source), "step": step, "after": after}
    with target.writing():
        target.note(UNFINISHED_COPY, json.dumps(mark))


def _messages(
    source: Store,
    target: Store,
    renamed: Renamed,
    after: Key | None,
    total: int,
    progress: Progress,
) -> None:
    done = 0
    for portion in _portions(source, after):
        with target.writing():
            target.put_portion(_rename(portion, renamed))
            _note(source, target, "messages", portion.keys[-1])
        progress("copying messages", done := done + len(portion.messages), total)
    _note(source, target, "links", None)


def _links(
    source: Store,
    target: Store,
    renamed: Renamed,
    after: Key | None,
    total: int,
    progress: Progress,
) -> None:
    done = 0
    for portion in _portions(source, after):
        with target.writing():
            target.put_links(_rename_links(source.links(portion.keys), renamed))
            _note(source, target, "links", portion.keys[-1])
        progress("copying links", done := done + len(portion.messages), total)


def _portions(store: Store, after: Key | None = None) -> Iterator[Portion]:
    while (portion := store.portion(after, _AT_ONCE)).messages:
        yield portion
        after = portion.keys[-1]


def _rename(portion: Portion, renamed: Renamed) -> Portion:
    """Return a portion with the ids that its messages get."""
    if renamed.keys().isdisjoint(portion.keys):
        return portion
    new = {key.id: renamed.get(key, key.id) for key in portion.keys}
    first, second = ([new[number] for number in ids] for ids in portion.waiting)
    return Portion(
        [(new[row[0]], *row[1:]) for row in portion.messages],
        [(new[row[0]], *row[1:]) for row in portion.vectors],
        (first, second),
    )


def _rename_links(links: list[Link], renamed: Renamed) -> list[Link]:
    return [
        (
            partition,
            renamed.get(Key(partition, source), source),
            renamed.get(Key(partition, target), target),
            score,
            kind,
        )
        for partition, source, target, score, kind in links
    ]


def _digest(store: Store, renamed: Renamed | None = None) -> dict[str, tuple[int, int]]:
    """Return how much a store holds of each kind, and a hash of it, whatever its order.

    :param renamed: the ids under which messages are compared with those of the other store.
    """
    renamed = renamed or {}
    names = ("messages", "vectors", "waiting", "links", "runs", "remainder")
    counts, sums = dict.fromkeys(names, 0), dict.fromkeys(names, 0)

    def take(name: str, rows: Iterable[Any]) -> None:
        for row in rows:
            digest = hashlib.sha256(json.dumps(row, default=bytes.hex).encode()).digest()
            counts[name] += 1
            sums[name] = (sums[name] + int.from_bytes(digest)) % _HASHES

    with store.snapshot():
        for portion in _portions(store):
            given = _rename(portion, renamed)
            partitions = {row[0]: row[_PARTITION] for row in given.messages}
            take("messages", given.messages)
            take("vectors", ((partitions[row[0]], row) for row in given.vectors))
            for at, ids in enumerate(given.waiting):
                take("waiting", ((at, partitions[number], number) for number in ids))
            take("links", _rename_links(store.links(portion.keys), renamed))
        rest = store.remainder()
        take("remainder", [*rest.conversations, rest.forgotten, *rest.summaries])
        take("remainder", rest.properties.items())
        take("runs", rest.runs)
    return {name: (counts[name], sums[name]) for name in names}


__all__ = ["UNFINISHED_COPY", "Link", "Portion", "Remainder", "copy"]
