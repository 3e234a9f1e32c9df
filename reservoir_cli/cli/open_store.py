"""Open the store that a command works on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from reservoir_cli.cli import console
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.store_location import is_on_a_server

#: Seconds that a program which answers others waits while others write.
_PATIENCE = 10.0
#: The store that was opened last. The end of the process frees its model at once, Python in 7 ms.
_kept: list[Reservoir] = []


@contextmanager
def open_reservoir(ctx: typer.Context, *, create: bool = False) -> Iterator[Reservoir]:
    """Open the store that this run is about, with its settings.

    :param create: make the store when it is not there.
    """
    given = globals_of(ctx)
    if given.db and not create and not is_on_a_server(given.db) and not Path(given.db).exists():
        console.warn(f"there is no store at {given.db}")
    with Reservoir.open(
        given.db,
        config_file=given.config,
        create=create,
        offline=given.offline,
        notify=console.warn,
        progress=console.progress,
    ) as reservoir:
        _kept[:] = [reservoir]
        try:
            yield reservoir
        except _ODD as error:
            _blame_damage(reservoir, error)
            raise
        finally:
            console.progress.stop()


def opener(ctx: typer.Context) -> Callable[..., Reservoir]:
    """Return what opens the store for a program that answers others, as ``Reservoir.open``."""
    given = globals_of(ctx)

    def open_it(**asked: Any) -> Reservoir:
        usual = {"config_file": given.config, "offline": given.offline, "patience": _PATIENCE}
        return Reservoir.open(given.db, ready_only=True, **{**usual, **asked})

    return open_it


#: What values that no store holds may end in, wherever they come to.
_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def _blame_damage(reservoir: Reservoir, error: Exception) -> None:
    """Call an unforeseen error what it is if the store is damaged.

    :raises StoreCorruptError: it is.
    """
    if reservoir.database.is_damaged():
        raise StoreCorruptError(
            f"the store {reservoir.location} is corrupt",
            hint=StoreCorruptError.WAY_OUT,
        ) from error
