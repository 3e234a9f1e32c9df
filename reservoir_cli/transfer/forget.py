"""Forgetting messages for good: which ones, and that no word of them stays in the store's files."""

from bisect import bisect
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Key, Scope
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.records import Filter, Progress
from reservoir_cli.util.times import FAR_AHEAD

#: Messages of a scope that a filter lets through.
Target = tuple[Scope, Filter]


def find(store: Store, targets: Sequence[Target]) -> Keys:
    """Return the keys of all that is meant, each once."""
    found = Keys()
    for scope, where in targets:
        found.extend(store.find(scope, where))
    return found


def named(store: Store, ids: Sequence[int], scope: Scope) -> list[Key]:
    """Return the keys of messages in a scope that have these ids.

    :raises UsageError: an id is that of several messages, in several partitions.
    """
    keys = [message.key for message in store.by_id(sorted(set(ids)), scope)]
    by_id: dict[int, Key] = {}
    for key in keys:
        if key.id in by_id:
            places = " and ".join(sorted((by_id[key.id].partition, key.partition)))
            raise UsageError(f"message {key.id} is in {places}", hint="name one of them by -p")
        by_id[key.id] = key
    return keys


def find_expired(store: Store, targets: Sequence[Target], now: datetime) -> Keys:
    """Return the keys of all that is expired.

    A message whose time is far ahead is as old as the one stored before it, for its own time says
    nothing of its age.
    """
    keys = find(store, targets)
    ahead = now + FAR_AHEAD
    for scope, _ in targets:
        if later := store.find(scope, Filter(since=ahead + timedelta(milliseconds=1))):
            others = sorted(store.find(scope, Filter(until=ahead)))
            keys.extend(_beside(later, others, set(keys)))
    return keys


def _beside(later: Sequence[Key], others: Sequence[Key], expired: Collection[Key]) -> Iterator[Key]:
    """Yield those keys before which an expired message was stored, or behind which, at the start.

    :param others: ascending.
    """
    for key in later:
        before = max(bisect(others, key) - 1, 0)
        if others and others[before] in expired:
            yield key


def places(store: Store, where: Filter) -> list[tuple[str, str, int]]:
    """(partition, instance, messages) wherever a filter lets messages through."""
    counts: dict[tuple[str, str], int] = {}
    for (partition, instance, _), ids in store.threads(Scope(None), where).items():
        counts[partition, instance] = counts.get((partition, instance), 0) + len(ids)
    return [(*place, count) for place, count in counts.items()]


def expired(store: Store, config: Config, scope: Scope, now: datetime) -> list[Target]:
    """Select what is older than the ``retention_days`` of its partition."""
    return list(_expired(store, config, scope, now))


def _expired(store: Store, config: Config, scope: Scope, now: datetime) -> Iterator[Target]:
    for partition, instance, _ in store.places():
        if scope.partition not in (None, partition) or scope.instance not in (None, instance):
            continue
        days = config.settings(partition).retention_days
        if days is not None:
            yield Scope(partition, instance), Filter(until=now - timedelta(days=days))


def forget(store: Store, keys: Sequence[Key], progress: Progress = lambda *_: None) -> None:
    """Delete messages and everything that was made of them.

    Importing them again does not bring them back; saying the same words again does.

    :raises ReservoirError: they are gone, but whoever reads the store just now keeps their words
        in its files; the next command that opens the store finishes it.
    """
    if not store.delete(keys, progress):
        raise still_there(f"{len(keys):,} messages are gone, but words of them")


def still_there(what: str) -> ReservoirError:
    """Return the error for words that are deleted but not yet out of the files."""
    return ReservoirError(
        f"{what} are still in the store's files: another program is reading it, "
        "or the disk is full",
        hint="end that program, or make room; then any reservoir command finishes this",
    )
