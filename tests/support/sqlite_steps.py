"""The work that SQLite has with something, whatever the machine is busy with."""

from collections.abc import Callable

from reservoir_cli.storage.base import Store


def steps(store: Store, work: Callable[[], object]) -> int:
    """Return how many tens of its own steps SQLite takes for something."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    store._connection.set_progress_handler(tick, 10)
    try:
        work()
    finally:
        store._connection.set_progress_handler(None, 10)
    return count
