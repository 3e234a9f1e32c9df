"""``reservoir db``: manage the database, or copy the store to another one."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.help import HelpfulCommand, HelpfulGroup, new_app
from reservoir_cli.cli.options import argument, flag
from reservoir_cli.maintenance import database
from reservoir_cli.util.progress import counted

db = new_app(
    cls=HelpfulGroup,
    no_args_is_help=True,
    help="Manage the database, or copy a store to or from a server.",
)
command = partial(db.command, cls=HelpfulCommand)


@command(epilog="Example: reservoir --db postgresql://db.example.org/memory db status")
def status(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Show the database that keeps the store, its size, and what it holds."""
    with open_store.open_reservoir(ctx) as reservoir:
        facts = reservoir.database.status()
    if as_json:
        console.document(facts)
        return
    counts = facts.pop("store")
    lists = {name: value for name, value in facts.items() if isinstance(value, list)}
    rows = [
        (name.replace("_", " "), _format_value(value))
        for name, value in facts.items()
        if name not in lists
    ]
    rows += [(console.HELD.get(name, name), f"{count:,}") for name, count in counts.items()]
    for name, entries in lists.items():
        rows += [_entry_row(_LABELS[name], entry) for entry in entries[:_MOST]]
    console.table(("", ""), rows)


#: The label of an entry of each list, and the number of entries shown.
_LABELS = {
    "partitions": "partition",
    "tables": "table",
    "machines": "machine",
    "indexes": "index of",
}
_MOST = 5


def _entry_row(label: str, entry: Mapping[str, Any]) -> tuple[str, str]:
    name, *values = entry.values()
    parts = (
        counted(value, field.replace("_", " ").removesuffix("s"))
        if isinstance(value, int)
        else f"{field} {value}"
        for field, value in zip(list(entry)[1:], values, strict=True)
    )
    return f"{label} {name}", ", ".join(parts)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none yet" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"


@command(epilog="Example: reservoir --db postgresql://db.example.org/memory db migrate --rls")
def migrate(
    ctx: typer.Context,
    rls: Annotated[
        bool, flag("--rls", "Restrict each user of the server to their own partitions.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Set up an empty database, or upgrade the tables of an older store.

    With --rls, the role reservoir_member may read and write, and reservoir_reader only read, the
    partitions that the table reservoir.members lists for each user; see docs/team-server.md.
    """
    with open_store.open_reservoir(ctx, create=True) as reservoir:
        engine = reservoir.database.migrate(rls=rls)
    console.aside(f"up to date: {engine}{', with row-level security' if rls else ''}")
    if as_json:
        console.document({"engine": engine, "guarded": rls})


@command(epilog="Example: reservoir db copy reservoir.db postgresql://db.example.org/memory")
def copy(
    source: Annotated[str, argument("SOURCE", "A path or a URL.")],
    target: Annotated[str, argument("TARGET", "A path or a URL; must hold nothing yet.")],
    dry_run: Annotated[
        bool, flag("--dry-run", "Open both, check the target, and copy nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Copy a whole store between a file and a server, and verify the copy.

    Run it again to resume an interrupted copy.
    """
    if dry_run:
        counts = database.check_copy(source, target)
        console.aside(
            f"would copy {counted(counts['messages'], 'message')}, "
            f"{counts['embedded']:,} embedded; {target} can take them"
        )
        if as_json:
            console.document({**counts, "dry_run": True})
        return
    try:
        copied = database.copy(source, target, console.progress)
    finally:
        console.progress.stop()
    console.aside(
        f"copied {counted(copied['messages'], 'message')}, {copied['embedded']:,} embedded;"
        " source and target are equal"
    )
    if as_json:
        console.document(copied)


@command("shard-sql", epilog="Example: reservoir db shard-sql | psql")
def shard_sql(as_json: options.Json = False) -> None:
    """Print the SQL statements that distribute a store over a Citus cluster.

    They end by deleting the rows that were left on the coordinator, forgotten text included.
    """
    statements = database.shard_statements()
    if as_json:
        console.document({"statements": statements})
    else:
        console.write("\n".join(statements) + "\n")


@command(epilog="Example: reservoir db index --partition archive")
def index(
    ctx: typer.Context,
    partition: options.OnePartition,
    drop: Annotated[bool, flag("--drop", "Remove the index instead.")] = False,
    as_json: options.Json = False,
) -> None:
    """Build an approximate index over the embeddings of a large partition, and print its recall.

    Without an index every embedding is compared, which is exact. An index is useful from about
    40,000 messages in one partition.
    """
    with open_store.open_reservoir(ctx) as reservoir:
        if drop:
            is_dropped = reservoir.database.drop_index(partition)
            console.aside(f"{partition} {'no longer has an' if is_dropped else 'has no'} index")
            return
        recall = reservoir.database.build_index(partition)
    console.aside(f"{partition} has an index; it finds {recall:.1%} of the nearest embeddings")
    if as_json:
        console.document({"partition": partition, "recall": recall})
