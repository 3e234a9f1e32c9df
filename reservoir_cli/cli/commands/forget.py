"""``reservoir forget``: delete messages for good."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Key, Scope
from reservoir_cli.reservoir import Filter, Reservoir

_AT_ONCE = 1_000
#: How many messages are shown before a person is asked.
_PREVIEWED = 3


def forget(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="N", help="The message with this number; repeatable."),
    ] = None,
    trace_id: Annotated[
        str | None,
        typer.Option("--trace-id", metavar="ID", help="A question and its replies."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="All messages of this conversation.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Messages that contain this text; case is ignored."),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="T", help="Messages from before this time, or older than 90d."),
    ] = None,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="Messages older than the setting retention_days."),
    ] = False,
    everything: Annotated[bool, typer.Option("--scope", help="All messages in the scope.")] = False,
    partition: options.Partition = None,
    instance: options.Instance = None,
    all_instances: options.EveryInstance = False,
    all_partitions: options.AllPartitions = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")
    ] = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Delete messages and all traces of their text from the files of the store.

    --id, --trace-id and --conversation search the whole partition, the other options one instance.
    Importing a file again does not bring forgotten messages back. Backups and exports made earlier
    still have them. Trace and conversation ids can be shortened to a unique prefix.
    """
    numbers = tuple(map(options.message_number, ids or ()))
    which = _Which(numbers, trace_id, conversation, match, before, expired, everything)
    which.check()
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(
            reservoir,
            partition,
            instance,
            all_instances,
            all_partitions,
            one_instance=not which.by_name,
        )
        which = which.resolved(reservoir, scope)
        found = which.found(reservoir, scope)
        count = options.counted(len(found or ()), "message")
        question = f"forget {count} in {nothing_found.place(scope)} for good?"
        if found is not None:
            options.require_answer(question, yes or dry_run)
        if not found:
            _say_nothing_found(reservoir, scope, which, found)
        elif dry_run:
            _show(reservoir, found, as_json)
        else:
            if not yes:
                _preview(reservoir, found)
            options.confirm(question, yes)
            reservoir.forget(found)
            console.aside(f"forgot {count}")
            console.note("backups and exports made earlier still have them")
    if as_json:
        forgotten = [key.id for key in found or ()]
        console.document({"forgotten": len(forgotten), "ids": forgotten, "dry_run": dry_run})


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

    def resolved(self, reservoir: Reservoir, scope: Scope) -> "_Which":
        """Complete shortened ids; say what they stand for.

        :raises UsageError: several ids of the scope begin so.
        """
        trace_id = filters.whole_id(reservoir, "trace_id", self.trace_id, scope)
        conversation = filters.whole_id(reservoir, "conversation_id", self.conversation, scope)
        for typed, whole in ((self.trace_id, trace_id), (self.conversation, conversation)):
            if typed != whole:
                console.note(f"{typed} is {whole}")
        return replace(self, trace_id=trace_id, conversation=conversation)

    def where(self) -> Filter:
        """Return the filter that was typed; for ids it lets everything through."""
        where = filters.message_filter(
            trace_id=self.trace_id,
            conversation_id=self.conversation,
            until=self.before,
            text=self.match,
        )
        if where.until:
            where = replace(where, until=where.until - timedelta(milliseconds=1))
        return where

    def found(self, reservoir: Reservoir, scope: Scope) -> Sequence[Key] | None:
        """Return the messages that are meant; ``None`` if nothing ever expires.

        :raises ReservoirError: one that is named is not there.
        """
        if self.expired:
            return reservoir.lookup.expired(reservoir.config, scope)
        if not self.ids:
            return reservoir.find(scope, self.where())
        keys = reservoir.lookup.keys_of(self.ids, scope)
        if missing := sorted(set(self.ids) - {key.id for key in keys}):
            raise nothing_found.no_message(reservoir, missing[0], scope)
        return keys


def _say_nothing_found(
    reservoir: Reservoir, scope: Scope, which: _Which, found: Sequence[Key] | None
) -> None:
    """Say where what was looked for is, or else where messages are at all."""
    if found is None:
        console.note("nothing expires: setting retention_days is unset")
        return
    others = [] if which.expired else reservoir.lookup.places(which.where())
    if others:
        # Something else was meant: --quiet does not hide that.
        _tell(scope, others, console.warn)
    elif reservoir.view(scope, 1):
        console.note(f"nothing to forget in {nothing_found.place(scope)}")
        if which.conversation is not None:
            words = ["reservoir", "conversations", "--match", which.conversation]
            words += ["-p", scope.partition] if scope.partition else ["--all-partitions"]
            console.note(f"{shlex.join(words)} looks in titles and messages")
    else:
        _tell(scope, reservoir.lookup.places(), console.note)


def _tell(
    scope: Scope, places: Sequence[tuple[str, str, int]], say: Callable[[str], object]
) -> None:
    """Say where messages are, with the options that take more than one instance."""
    nothing_found.tell(
        scope, places, in_partition="--all-instances", beyond="--all-partitions", say=say
    )


def _preview(reservoir: Reservoir, found: Sequence[Key]) -> None:
    """Show the first messages that will go, before a person is asked."""
    for message in reservoir.messages(found[:_PREVIEWED]):
        console.aside(options.first_words(message))
    if len(found) > _PREVIEWED:
        console.aside(f"and {options.counted(len(found) - _PREVIEWED, 'message')} more")


def _show(reservoir: Reservoir, found: Sequence[Key], as_json: bool) -> None:
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
                    for each in reservoir.messages(found[start : start + _AT_ONCE])
                ],
            )
    console.aside(f"would forget {options.counted(len(found), 'message')}")
