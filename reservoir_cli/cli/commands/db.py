"""``reservoir db``: where the store is kept, and bringing it elsewhere."""

from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import options
from reservoir_cli.cli.help import HelpfulCommand, HelpfulGroup
from reservoir_cli.errors import UsageError

if TYPE_CHECKING:
    from reservoir_cli.storage.postgres.store import PostgresStore

db = typer.Typer(
    cls=HelpfulGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look after the database itself, and bring a store from a file to a PostgreSQL server "
    "or back.",
)


@db.command(
    cls=HelpfulCommand,
    epilog="Example: reservoir --db postgresql://db.example.org/memory db status",
)
def status(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Show what keeps the store, how large it is, and what it holds."""
    from reservoir_cli.cli import console
    from reservoir_cli.storage.unfinished import UNFINISHED_COPY

    with options.open_reservoir(ctx) as reservoir:
        store = reservoir.store
        size = store.size()
        facts: dict[str, object] = {
            "location": store.location,
            "engine": store.engine() if size is not None else None,
            "bytes": size,
            "read_only": store.read_only,
            "unfinished_copy": store.get_property(UNFINISHED_COPY) is not None,
            "store": store.holdings(),
        }
        if not store.files() and size is not None:
            from reservoir_cli.storage.postgres import admin

            facts |= admin.facts(_on_server(store))
    if as_json:
        console.document(facts)
        return
    held = facts.pop("store")
    assert isinstance(held, dict)
    indexes = facts.pop("indexes", [])
    rows = [(name.replace("_", " "), _shown(value)) for name, value in facts.items()]
    rows += [(name, f"{count:,}") for name, count in held.items()]
    assert isinstance(indexes, list)
    rows += [(f"index of {each['partition']}", f"recall {each['recall']}") for each in indexes]
    console.table(("", ""), rows)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        "not there yet" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"
    )


@db.command(
    cls=HelpfulCommand,
    epilog="Example: reservoir --db postgresql://db.example.org/memory db migrate --rls",
)
def migrate(
    ctx: typer.Context,
    rls: Annotated[
        bool,
        typer.Option("--rls", help="Let users of the server see their partitions only."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Set up an empty database, or bring the tables of an older store up to date.

    With --rls the role reservoir_member may read and write, and reservoir_reader read, the
    partitions that the table reservoir.members names for each user; see docs/scaling.md.
    """
    from reservoir_cli.cli import console

    with options.open_reservoir(ctx, create=True) as reservoir:
        if rls:
            from reservoir_cli.storage.postgres import admin

            admin.guard(_on_server(reservoir.store))
        engine = reservoir.store.engine()
    console.aside(f"up to date: {engine}{', rows are guarded' if rls else ''}")
    if as_json:
        console.document({"engine": engine, "guarded": rls})


@db.command(
    cls=HelpfulCommand,
    epilog="Example: reservoir db copy reservoir.db postgresql://db.example.org/memory",
)
def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A path or a URL.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A path or a URL; empty.")],
    as_json: options.Json = False,
) -> None:
    """Copy a whole store, from a file to a server or the other way, and compare the two.

    What is broken off goes on where it was when the command is run again.
    """
    from contextlib import closing

    from reservoir_cli.cli import console
    from reservoir_cli.errors import StoreError
    from reservoir_cli.storage import replicate
    from reservoir_cli.storage.factory import open_store
    from reservoir_cli.storage.sqlite.publishing import check_count

    with closing(open_store(source, create=False)) as old:
        if old.size() is None:
            raise StoreError(
                f"there is no store at {old.location}",
                hint="reservoir db status says where yours is",
            )
        with closing(open_store(target)) as new:
            try:
                copied = replicate.copy(old, new, console.progress)
            finally:
                console.progress.stop()
    check_count(target, copied["messages"])
    console.aside(
        f"copied {options.counted(copied['messages'], 'message')}, {copied['embedded']:,} embedded;"
        " the two are equal"
    )
    if as_json:
        console.document(copied)


@db.command("shard-sql", cls=HelpfulCommand, epilog="Example: reservoir db shard-sql | psql")
def shard_sql(as_json: options.Json = False) -> None:
    """Print the statements that spread a store over the machines of a Citus cluster."""
    from reservoir_cli.cli import console
    from reservoir_cli.storage.postgres.admin import sharding

    if as_json:
        console.document({"statements": sharding()})
    else:
        console.write("\n".join(sharding()) + "\n")


@db.command(cls=HelpfulCommand, epilog="Example: reservoir db index --partition archive")
def index(
    ctx: typer.Context,
    partition: options.OnePartition,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the index instead.")] = False,
    as_json: options.Json = False,
) -> None:
    """Build an approximate index on the vectors of a large partition, and say what it finds.

    Without one every vector is compared and none is missed, which takes 65 ms for 40,000.
    """
    from reservoir_cli.cli import console
    from reservoir_cli.storage.postgres import admin

    with options.open_reservoir(ctx) as reservoir:
        store = _on_server(reservoir.store)
        if drop:
            there = admin.drop_index(store, partition)
            console.aside(f"{partition} has no index{' any more' if there else ''}")
            return
        made = admin.index(store, partition, console.progress)
    console.aside(f"{partition} has an index; it finds {made.recall:.1%} of the nearest")
    if as_json:
        console.document({"partition": partition, "recall": made.recall})


def _on_server(store: object) -> "PostgresStore":
    """A store, if it is on a server.

    :raises UsageError: it is in a file, or not there yet.
    """
    from reservoir_cli.storage.postgres.store import PostgresStore

    if not isinstance(store, PostgresStore):
        raise UsageError(
            "this is for a store on a server", hint="--db postgresql://USER@HOST/DATABASE"
        )
    return store
