"""``reservoir forget``: delete messages for good."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import options
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Key, Scope

if TYPE_CHECKING:
    from reservoir_cli.reservoir import Reservoir
    from reservoir_cli.transfer.forget import Target

_AT_ONCE = 1_000
#: The options that take more than one instance.
_WIDER = {"in_partition": "--all-instances", "beyond": "--all-partitions"}


def forget(
    ctx: typer.Context,
    ids: Annotated[
        list[int] | None,
        typer.Option("--id", metavar="N", min=1, max=options.MOST, help="A message; repeatable."),
    ] = None,
    trace_id: Annotated[
        str | None, typer.Option("--trace-id", metavar="ID", help="A question and its reply.")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="A whole conversation.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What says this, word for word; case is ignored."),
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="T", help="What was said before it; 90d is an age.")
    ] = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="What is older than setting retention_days.")
    ] = False,
    everything: Annotated[bool, typer.Option("--scope", help="Everything in the scope.")] = False,
    partition: options.Partition = None,
    instance: options.Instance = None,
    all_instances: options.EveryInstance = False,
    all_partitions: options.AllPartitions = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go; delete nothing.")
    ] = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Delete messages, and every word of them, from all files of the store.

    --id, --trace-id and --conversation look in the whole partition, the others in an instance.
    Importing a file again does not bring back what was forgotten. Backups and exports made
    earlier are out of reach.
    """
    from reservoir_cli.cli import console
    from reservoir_cli.transfer import forget as forgetting

    which = _Which(tuple(ids or ()), trace_id, conversation, match, before, expired, everything)
    which.check()
    with options.open_reservoir(ctx) as reservoir:
        scope = options.read_scope(
            reservoir,
            partition,
            instance,
            all_instances,
            all_partitions,
            one_instance=not which.by_name,
        )
        targets = which.targets(reservoir, scope)
        if targets and not dry_run:
            options.require_answer(yes)
        found = which.found(reservoir, scope, targets)
        if not found:
            _say_nothing_found(reservoir, scope, which, targets)
        elif dry_run:
            _show(reservoir, found, as_json)
        else:
            count = options.counted(len(found), "message")
            options.confirm(f"forget {count} in {console.place(scope)} for good?", yes)
            forgetting.forget(reservoir.store, found, console.progress)
            console.aside(f"forgot {options.counted(len(found), 'message')}")
            console.note("backups and exports made earlier still have them")
    if as_json:
        console.document(
            {"forgotten": len(found), "ids": [key.id for key in found], "dry_run": dry_run}
        )


@dataclass(frozen=True, slots=True)
class _Which:
    """What is to be forgotten, as it was typed: exactly one of these."""

    ids: tuple[int, ...]
    trace_id: str | None
    conversation: str | None
    match: str | None
    before: str | None
    expired: bool
    scope: bool

    @property
    def by_name(self) -> bool:
        return bool(self.ids) or self.trace_id is not None or self.conversation is not None

    def check(self) -> None:
        given = [
            bool(self.ids),
            self.trace_id is not None,
            self.conversation is not None,
            self.match is not None,
            self.before is not None,
            self.expired,
            self.scope,
        ]
        if sum(given) != 1:
            raise UsageError(
                "name what is to be forgotten, in one way",
                hint="--id, --trace-id, --conversation, --match, --before, --expired or --scope",
            )

    def targets(self, reservoir: "Reservoir", scope: Scope) -> "list[Target]":
        """What is meant; by its filter, which for ids lets everything through."""
        from dataclasses import replace
        from datetime import UTC, datetime, timedelta

        from reservoir_cli.transfer import forget as forgetting

        if self.expired:
            return forgetting.expired(reservoir.store, reservoir.config, scope, datetime.now(UTC))
        where = options.message_filter(
            trace_id=self.trace_id,
            conversation_id=self.conversation,
            until=self.before,
            text=self.match,
        )
        if where.until:
            where = replace(where, until=where.until - timedelta(milliseconds=1))
        return [(scope, where)]

    def found(self, reservoir: "Reservoir", scope: Scope, targets: "list[Target]") -> Sequence[Key]:
        """The messages that are meant.

        :raises ReservoirError: one that is named is not there.
        """
        from datetime import UTC, datetime

        from reservoir_cli.transfer import forget as forgetting

        if self.expired:
            return forgetting.find_expired(reservoir.store, targets, datetime.now(UTC))
        if not self.ids:
            return forgetting.find(reservoir.store, targets)
        found = forgetting.named(reservoir.store, self.ids, scope)
        if missing := sorted(set(self.ids) - {key.id for key in found}):
            raise options.no_message(reservoir, missing[0], scope)
        return found


def _say_nothing_found(
    reservoir: "Reservoir", scope: Scope, which: _Which, targets: "list[Target]"
) -> None:
    """Say where what was looked for is, or else where messages are at all."""
    from reservoir_cli.cli import console
    from reservoir_cli.transfer import forget as forgetting

    if which.expired and not targets:
        console.note("nothing expires: setting retention_days is unset")
        return
    others = [] if which.expired else forgetting.places(reservoir.store, targets[0][1])
    if others:
        console.elsewhere(scope, others, **_WIDER)
    elif reservoir.view(scope, 1):
        console.note(f"nothing to forget in {console.place(scope)}")
    else:
        console.elsewhere(scope, reservoir.store.places(), **_WIDER)


def _show(reservoir: "Reservoir", found: Sequence[Key], as_json: bool) -> None:
    from reservoir_cli.cli import console

    if not as_json:
        for start in range(0, len(found), _AT_ONCE):
            console.table(
                ("id", "time", "place", "message"),
                [
                    (
                        str(each.id),
                        each.created_at.isoformat(timespec="seconds"),
                        f"{each.partition}/{each.instance}",
                        console.message_line(each, False, True),
                    )
                    for each in reservoir.mask.messages(
                        reservoir.store.by_key(found[start : start + _AT_ONCE])
                    )
                ],
            )
    console.aside(f"would forget {options.counted(len(found), 'message')}")
