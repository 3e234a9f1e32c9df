"""Open the store that a command works on."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from reservoir_cli.cli import console
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.store_locations import is_on_a_server
from reservoir_cli.util.timeouts import LOCKED_SERVER

#: Keeps the last store alive until the process exits: freeing its model would take 7 ms.
_last_opened: list[Reservoir] = []


@contextmanager
def open_reservoir(
    ctx: typer.Context, *, create: bool = False, change: bool = False, ready_only: bool = False
) -> Iterator[Reservoir]:
    """Open the store of this run with its settings.

    :param create: create the store if it does not exist.
    :param change: refuse an unfinished copy, as ``create`` does, but create no store that was
        named by ``--db``.
    :param ready_only: never download or compile a model.
    """
    flags = globals_of(ctx)
    is_missing = _is_missing(flags.db)
    if is_missing and not create:
        console.warn(f"there is no store at {flags.db}")
    with Reservoir.open(
        flags.db,
        config_file=flags.config,
        create=create or (change and not is_missing),
        offline=flags.offline,
        ready_only=ready_only,
        notify=console.warn,
        progress=console.progress,
    ) as reservoir:
        _last_opened[:] = [reservoir]
        if flags.db is None and is_named_and_missing(ctx, reservoir.config):
            console.warn(f"there is no store at {reservoir.location}")
        try:
            yield reservoir
        except _UNEXPECTED as error:
            _check_damage(reservoir, error)
            raise
        finally:
            console.progress.stop()


def is_named_and_missing(ctx: typer.Context, config: Config) -> bool:
    """Return whether a file that was named as the store, as on another disk, does not exist."""
    named = globals_of(ctx).db
    is_named = named or os.environ.get("RESERVOIR_DB") or config.lookup("database")[0]
    return bool(is_named) and _is_missing(config.store_location(named))


def _is_missing(location: str | None) -> bool:
    return (
        location is not None
        and not is_on_a_server(location)
        and not os.path.exists(os.path.expanduser(location))
    )


def opener(ctx: typer.Context, config: Config) -> Callable[..., Reservoir]:
    """Return a function like ``Reservoir.open`` by which a server opens the store of this run.

    The function also prints what is reported while the store is opened, each sentence once.

    :param config: the settings, whose warnings are printed.
    """
    flags, printed = globals_of(ctx), set(config.warnings)

    def open_it(*, notify: Callable[[str], None], **arguments: Any) -> Reservoir:
        is_open = False

        def report(text: str) -> None:
            if not is_open and text not in printed:
                printed.add(text)
                console.warn(text)
            notify(text)

        usual = {"config_file": flags.config, "offline": flags.offline, "patience": LOCKED_SERVER}
        arguments = {**usual, **arguments, "ready_only": True, "notify": report}
        reservoir = Reservoir.open(flags.db, **arguments)
        is_open = True
        return reservoir

    return open_it


#: Exceptions that invalid values read from a damaged store may cause.
_UNEXPECTED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def _check_damage(reservoir: Reservoir, error: Exception) -> None:
    """Replace an unexpected exception if the store is damaged."""
    if reservoir.database.is_damaged():
        raise StoreCorruptError(
            f"the store {reservoir.location} is corrupt", hint=StoreCorruptError.WAY_OUT
        ) from error
