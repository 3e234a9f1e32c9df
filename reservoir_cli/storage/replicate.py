"""Carrying a whole store over to another, of whatever kind the two are.

It goes in batches, each in one transaction with a mark of how far it came: an interrupted copy
is resumed there. At the end both stores are read through and compared. Messages keep their
ids, unless they come to a file and two partitions of a server use the same one; what is derived
from them is rebuilt at the destination.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reservoir_cli.errors import ReservoirError, StoreError, UsageError
from reservoir_cli.messages import Key
from reservoir_cli.storage import dump
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.dump import DumpBatch, DumpMetadata, Link
from reservoir_cli.storage.unfinished_copy import UNFINISHED_COPY, refuse
from reservoir_cli.util.progress import Progress

_AT_ONCE = 500
#: A sum of hashes is kept below this.
_HASHES = 2**256


#: The ids of messages that get another one where they arrive.
Renamed = Mapping[Key, int]


def copy(source: Store, target: Store, progress: Progress) -> dict[str, int]:
    """Copy a store into an empty one, or go on with a copy that was broken off.

    :returns: what was copied, by its kind.
    :raises UsageError: the target is the source, or holds something else.
    :raises StoreError: the source is itself a copy that is not finished.
    :raises ReservoirError: the two differ at the end.
    """
    _refuse_itself(source, target)
    target.receiving = True
    try:
        return _copy(source, target, progress)
    finally:
        target.receiving = False


def check(source: Store, target: Store) -> dict[str, int]:
    """Check that a store can be copied into another, and write nothing.

    :returns: what would be copied in all, by its kind.
    :raises UsageError: the target is the source, or holds something else.
    :raises StoreError: the source is itself an unfinished copy, or the target is read-only.
    """
    _refuse_itself(source, target)
    if target.read_only:
        raise StoreError(f"{target.location} cannot be written to", hint="name another target")
    _find_mark(source, target)
    return _counts(source)


def _refuse_itself(source: Store, target: Store) -> None:
    if _place(source) == _place(target):
        raise UsageError("a store cannot be copied into itself", hint="name another target")
    refuse(source.get_property(UNFINISHED_COPY), source.location)


def _counts(store: Store) -> dict[str, int]:
    held = store.holdings()
    return {name: held[name] for name in ("messages", "conversations", "embedded", "synapses")}


def _copy(source: Store, target: Store, progress: Progress) -> dict[str, int]:
    after = _begin(source, target)
    total = source.holdings()["messages"]
    with source.snapshot():
        renamed = _renamed(source) if target.files() else {}
        # At first for the names of the models; again at the end, for what else there is.
        dump.load_metadata(target, dump.metadata(source))
        done = target.holdings()["messages"]  # of a copy that was interrupted
        for batch in _batches(source, after):
            with target.write():
                dump.load(target, _rename(batch, renamed))
                _set_mark(source, target, batch.keys[-1])
            progress("copying messages", done := done + len(batch.messages), total)
        dump.load_metadata(target, dump.metadata(source))
        progress("comparing", 0, 0)
        if _digest(source, renamed) != _digest(target):
            raise ReservoirError(
                "the copy differs from its source: one of the two was changed in between",
                hint=f"{_emptying(target)}, then copy again",
            )
    target.set_property(UNFINISHED_COPY, None)
    return _counts(target)


def _renamed(source: Store) -> Renamed:
    """Return new ids, behind all others, for messages whose id another partition uses, too."""
    if not (twins := source.shared_ids()):
        return {}
    last = max(key.id for batch in _batches(source) for key in batch.keys)
    return {key: last + at for at, key in enumerate(twins, 1)}


def _begin(source: Store, target: Store) -> Key | None:
    """Return the key behind which an interrupted copy goes on; ``None`` for the beginning."""
    mark = _find_mark(source, target)
    if mark is None:
        _set_mark(source, target, None)
        return None
    return Key(*mark["after"]) if mark["after"] else None


def _find_mark(source: Store, target: Store) -> Any:
    """Return the mark of an interrupted copy of the source; ``None`` if the target is empty."""
    mark = json.loads(target.get_property(UNFINISHED_COPY) or "null")
    if mark is None:
        held = target.holdings()
        if held["messages"] or held["conversations"] or dump.metadata(target) != DumpMetadata():
            raise UsageError(
                f"{target.location} is not empty",
                hint="reservoir export and ingest bring two stores together",
            )
        return None
    if mark["source"] not in (_place(source), source.location):
        raise UsageError(
            f"{target.location} is an unfinished copy of {mark['source']}",
            hint="finish that one first, or take an empty target",
        )
    if "step" in mark:
        raise UsageError(
            f"{target.location} is an unfinished copy by an older version of reservoir",
            hint=f"{_emptying(target)}, then copy again",
        )
    return mark


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


def _set_mark(source: Store, target: Store, after: Key | None) -> None:
    mark = {"source": _place(source), "after": after}
    target.set_property(UNFINISHED_COPY, json.dumps(mark))


def _batches(store: Store, after: Key | None = None) -> Iterator[DumpBatch]:
    while (batch := dump.read_batch(store, after, _AT_ONCE)).messages:
        yield batch
        after = batch.keys[-1]


def _rename(batch: DumpBatch, renamed: Renamed) -> DumpBatch:
    """Return a batch with the ids that its messages get."""
    links = _rename_links(batch.links, renamed)
    if renamed.keys().isdisjoint(batch.keys):
        return replace(batch, links=links)
    new = {key.id: renamed.get(key, key.id) for key in batch.keys}
    first, second = ([new[number] for number in ids] for ids in batch.waiting)
    return DumpBatch(
        [(new[row[0]], *row[1:]) for row in batch.messages],
        [(new[row[0]], *row[1:]) for row in batch.vectors],
        (first, second),
        links,
        [(partition, new[number], name) for partition, number, name in batch.tags],
        [(partition, new[number], at) for partition, number, at in batch.pins],
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
    names = ("messages", "vectors", "waiting", "links", "marks", "runs", "metadata")
    counts, sums = dict.fromkeys(names, 0), dict.fromkeys(names, 0)

    def take(name: str, rows: Iterable[Any]) -> None:
        for row in rows:
            digest = hashlib.sha256(json.dumps(row, default=bytes.hex).encode()).digest()
            counts[name] += 1
            sums[name] = (sums[name] + int.from_bytes(digest)) % _HASHES

    with store.snapshot():
        for dumped in _batches(store):
            batch = _rename(dumped, renamed)
            partitions = {number: partition for partition, number in batch.keys}
            take("messages", batch.messages)
            take("vectors", ((partitions[row[0]], row) for row in batch.vectors))
            for at, ids in enumerate(batch.waiting):
                take("waiting", ((at, partitions[number], number) for number in ids))
            take("links", batch.links)
            take("marks", [*batch.tags, *batch.pins])
        metadata = dump.metadata(store)
        take("metadata", [*metadata.conversations, metadata.forgotten, *metadata.summaries])
        take("metadata", metadata.sources)
        take("metadata", metadata.properties.items())
        take("runs", metadata.runs)
    return {name: (counts[name], sums[name]) for name in names}


__all__ = ["UNFINISHED_COPY", "DumpBatch", "DumpMetadata", "Link", "copy"]
