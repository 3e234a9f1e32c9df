"""Find messages that are older than the setting ``retention_days`` of their partition."""

from bisect import bisect
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from reservoir_cli.messages import Filter, Key, Scope
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.store import Store
from reservoir_cli.util.clock import FAR_AHEAD


def retention(config: Config, partition: str) -> timedelta | None:
    """Return how long messages of a partition are kept; ``None`` means for ever."""
    days = config.settings(partition).retention_days
    return None if days is None else timedelta(days=days)


def find_expired(
    store: Store, config: Config, scope: Scope, now: datetime | None = None
) -> Keys | None:
    """Return the messages of a scope that are older than their partition keeps them, if it does.

    A message dated far in the future is as old as the one stored before it.
    """
    now = now or datetime.now(UTC)
    expiring = list(_expiring(store, config, scope, now))
    if not expiring:
        return None
    keys, ahead = Keys(), now + FAR_AHEAD
    for place, until in expiring:
        keys.extend(store.find(place, Filter(until=until)))
    for place, _ in expiring:
        since = ahead + timedelta(milliseconds=1)
        if later := store.find(place, Filter(since=since)):
            others = sorted(store.find(place, Filter(until=ahead)))
            keys.extend(_stored_after(later, others, set(keys)))
    return keys


def _expiring(
    store: Store, config: Config, scope: Scope, now: datetime
) -> Iterator[tuple[Scope, datetime]]:
    """Yield the scopes in which messages expire, with the time before which they have."""
    for partition, instance, _ in store.places():
        if scope.partition not in (None, partition) or scope.instance not in (None, instance):
            continue
        if age := retention(config, partition):
            yield Scope(partition, instance), now - age


def _stored_after(
    later: Sequence[Key], others: Sequence[Key], expired: Collection[Key]
) -> Iterator[Key]:
    """Yield the keys whose preceding one is expired; for the first of all, the first of others."""
    for key in later:
        previous = max(bisect(others, key) - 1, 0)
        if others and others[previous] in expired:
            yield key
