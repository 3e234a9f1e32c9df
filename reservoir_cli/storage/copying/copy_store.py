"""Copy a whole store to another, in batches that can be resumed, and compare the two at the end.

Messages keep their ids, unless the target is a file and two partitions of a server use the same id.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reservoir_cli.errors import ReservoirError, StoreError, UsageError
from reservoir_cli.messages import Key
from reservoir_cli.storage.copying import dump
from reservoir_cli.storage.copying.dump import DumpBatch
from reservoir_cli.storage.properties import UNFINISHED_COPY, refuse_unfinished
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.transactions import reading
from reservoir_cli.util.progress import Progress

_AT_ONCE = 500
_HASHES = 2**256  #: The modulus for sums of hashes.


NewIds = Mapping[Key, int]  #: The new ids of messages that cannot keep theirs in the target.


def copy(source: Store, target: Store, progress: Progress) -> dict[str, int]:
    """Copy a store into an empty one, or resume an interrupted copy."""
    _refuse_itself(source, target)
    target.receiving = True
    try:
        return _copy(source, target, progress)
    finally:
        target.receiving = False


def check(source: Store, target: Store) -> dict[str, int]:
    """Check that a store can be copied into another, and write nothing."""
    _refuse_itself(source, target)
    if target.read_only:
        raise StoreError(f"{target.location} cannot be written to", hint="name another target")
    _find_mark(source, target)
    return _counts(source)


def _refuse_itself(source: Store, target: Store) -> None:
    if _identify(source) == _identify(target):
        raise UsageError("a store cannot be copied into itself", hint="name another target")
    refuse_unfinished(source.get_property(UNFINISHED_COPY), source.location)


def _counts(store: Store) -> dict[str, int]:
    held = store.holdings()
    return {name: held[name] for name in ("messages", "conversations", "embedded")}


def _copy(source: Store, target: Store, progress: Progress) -> dict[str, int]:
    mark = _find_mark(source, target)
    if mark is None:
        _set_mark(source, target, None)
    after = Key(*mark["after"]) if mark and mark["after"] else None
    total = source.holdings()["messages"]
    with source.snapshot():
        source.lift_timeouts()
        new_ids = _assign_new_ids(source) if target.files() else {}
        # Now, because loading vectors needs the names of the models, and again at the end.
        dump.load_metadata(target, dump.read_metadata(source))
        copied = target.holdings()["messages"]  # by an interrupted copy
        for batch in _batches(source, after):
            with target.write():
                dump.load(target, _rename(batch, new_ids))
                _set_mark(source, target, batch.keys[-1])
            progress("copying messages", copied := copied + len(batch.messages), total)
        dump.load_metadata(target, dump.read_metadata(source))
        progress("comparing", 0, 0)
        if _digest(source, new_ids) != _digest(target):
            raise ReservoirError(
                "the copy differs from its source: one of the two was changed in between",
                hint=f"{_describe_removal(target)}, then copy again",
            )
    target.set_property(UNFINISHED_COPY, None)
    return _counts(target)


def _assign_new_ids(source: Store) -> NewIds:
    """Return new ids, greater than all others, for messages whose id another partition uses."""
    if not (shared := _find_shared_ids(source)):
        return {}
    last = max(key.id for batch in _batches(source) for key in batch.keys)
    return {key: last + at for at, key in enumerate(shared, 1)}


@reading
def _find_shared_ids(store: Store) -> list[Key]:
    """Return the messages whose id is also used in an earlier partition."""
    connection = store._connection
    rows = connection.execute("SELECT id FROM messages GROUP BY id HAVING COUNT(*) > 1").fetchall()
    listed, bound = connection.in_list("id", [row[0] for row in rows])
    same = connection.execute(
        f"SELECT partition, id FROM messages WHERE {listed} ORDER BY id, partition", bound
    ).fetchall()
    first = {message_id: partition for partition, message_id in reversed(same)}
    return [Key(*row) for row in same if first[row[1]] != row[0]]


def _find_mark(source: Store, target: Store) -> Any:
    """Return the mark of an interrupted copy of the source; ``None`` if the target is empty."""
    mark = json.loads(target.get_property(UNFINISHED_COPY) or "null")
    if mark is None:
        held = target.holdings()
        metadata = dump.read_metadata(target)
        if held["messages"] or any(metadata.rows.values()) or metadata.properties:
            raise UsageError(
                f"{target.location} is not empty",
                hint="to merge two stores, use reservoir export and ingest",
            )
        return None
    if mark["source"] not in (_identify(source), source.location):
        raise UsageError(
            f"{target.location} is an unfinished copy of {mark['source']}",
            hint="finish that one first, or use an empty target",
        )
    return mark


def _identify(store: Store) -> str:
    files = store.files()
    return str(files[0]) if files else store.location


def _describe_removal(store: Store) -> str:
    if store.files():
        path, log, index, *_ = store.files()
        return f"remove {path}, and {log.name} and {index.name} if they exist"
    return f"psql {store.location} -c 'DROP SCHEMA reservoir CASCADE'"


def _set_mark(source: Store, target: Store, after: Key | None) -> None:
    mark = {"source": _identify(source), "after": after}
    target.set_property(UNFINISHED_COPY, json.dumps(mark))


def _batches(store: Store, after: Key | None = None) -> Iterator[DumpBatch]:
    while (batch := dump.read_batch(store, after, _AT_ONCE)).messages:
        yield batch
        after = batch.keys[-1]


def _rename(batch: DumpBatch, new_ids: NewIds) -> DumpBatch:
    if new_ids.keys().isdisjoint(batch.keys):
        return batch
    new = {key.id: new_ids.get(key, key.id) for key in batch.keys}
    first, second = ([new[message_id] for message_id in ids] for ids in batch.waiting)
    return DumpBatch(
        [(new[row[0]], *row[1:]) for row in batch.messages],
        [(model, row._replace(message_id=new[row.message_id])) for model, row in batch.vectors],
        (first, second),
        [(partition, new[message_id], name) for partition, message_id, name in batch.tags],
        [(partition, new[message_id], at) for partition, message_id, at in batch.pins],
    )


def _digest(store: Store, new_ids: NewIds | None = None) -> dict[str, int]:
    """Return a hash of the rows of each kind that ignores their order."""
    sums = Counter[str]()

    def add(name: str, rows: Iterable[Any]) -> None:
        for row in rows:
            digest = hashlib.sha256(json.dumps(row, default=_to_hex).encode()).digest()
            sums[name] = (sums[name] + int.from_bytes(digest)) % _HASHES

    with store.snapshot():
        store.lift_timeouts()
        for dumped in _batches(store):
            batch = _rename(dumped, new_ids or {})
            partitions = {message_id: partition for partition, message_id in batch.keys}
            add("messages", batch.messages)
            vectors = ((partitions[row.message_id], model, row) for model, row in batch.vectors)
            add("vectors", vectors)
            for at, ids in enumerate(batch.waiting):
                add("waiting", ((at, partitions[message_id], message_id) for message_id in ids))
            add("marks", [*batch.tags, *batch.pins])
        metadata = dump.read_metadata(store)
        for table, rows in metadata.rows.items():
            add(table, rows)
        add("properties", metadata.properties.items())
    return dict(sums)


def _to_hex(value: Any) -> str:
    data: bytes = value if isinstance(value, bytes) else value.tobytes()  # of a vector
    return data.hex()
