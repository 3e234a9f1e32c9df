"""Count the steps of SQLite's virtual machine: a cost that does not depend on the load."""

from collections.abc import Callable

from reservoir_cli.storage.store import Store


def steps(store: Store, work: Callable[[], object]) -> int:
    """Return how many tens of steps SQLite takes for some work."""
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
