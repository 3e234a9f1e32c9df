"""``reservoir conversations``: list conversations."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from typing import Annotated, Any

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import ConversationSummary, Filter, Reservoir
from reservoir_cli.util.fold_case import fold

#: Characters of an id that a terminal shows, if they tell it from the others.
_SHORT = 8


def conversations(
    ctx: typer.Context,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_instances: options.AllInstances = False,
    all_partitions: options.AllPartitions = False,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only conversations with this text in their title or messages."
        ),
    ] = None,
    project: options.Project = None,
    since: options.Since = None,
    tag: options.ConversationTag = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            metavar="N",
            min=1,
            help="Only the N with the newest messages (default: all).",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the conversations of a partition or instance.

    The oldest comes first. Messages without a conversation, such as those from stdin, are not
    listed. A terminal shows shortened ids, which `view --conversation` accepts.
    """
    where = filters.message_filter(text=match, project=project, since=since, tag=tag)
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(reservoir, partition, instance, all_instances, all_partitions)
        everything = reservoir.conversations(scope)
        found = _newest(_passing(everything, reservoir, scope, where), limit)
        if not found:
            _say_nothing_found(reservoir, scope, where, bool(everything))
    if as_json:
        console.document({"conversations": [_row(each) for each in found]})
    elif found:
        _print_table(found, everything)


def _passing(
    summaries: Sequence[ConversationSummary],
    reservoir: Reservoir,
    scope: Scope,
    where: Filter,
) -> Sequence[ConversationSummary]:
    """Return the conversations that pass a filter; a text may stand in the title, too.

    Of those with a tag some message has it, and a text may stand in another one.
    """
    if where.project:
        summaries = [each for each in summaries if each.conversation.project == where.project]
    if where.since:
        summaries = [each for each in summaries if each.last >= where.since]
    if where.tag:
        tagged = reservoir.lookup.threads(scope, type(where)(tag=where.tag))
        summaries = [each for each in summaries if each.thread in tagged]
    if not where.text:
        return summaries
    text = fold(where.text)
    holding = reservoir.lookup.threads(scope, replace(where, project=None, since=None, tag=None))
    return [
        each
        for each in summaries
        if text in fold(each.conversation.title or "") or each.thread in holding
    ]


def _newest(
    summaries: Sequence[ConversationSummary], limit: int | None
) -> Sequence[ConversationSummary]:
    """Return the conversations with the newest messages, in the order they have."""
    if limit is None:
        return summaries
    newest = {each.thread for each in sorted(summaries, key=attrgetter("last"))[-limit:]}
    return [each for each in summaries if each.thread in newest]


def _say_nothing_found(reservoir: Reservoir, scope: Scope, where: Filter, filtered: bool) -> None:
    if not reservoir.view(scope, 1):
        nothing_found.tell(scope, reservoir.lookup.places())
    elif filtered:
        names = [
            f"--{name}" for name in ("match", "project", "since", "tag") if _typed(where, name)
        ]
        console.note(nothing_found.describe_no_match("conversation", scope, names, where))
    else:
        console.note(f"the messages in {nothing_found.place(scope)} are in no conversation")


def _typed(where: Filter, name: str) -> bool:
    return asdict(where)["text" if name == "match" else name] is not None


def _row(summary: ConversationSummary) -> dict[str, Any]:
    """Return a conversation as plain JSON values."""
    return {
        **{name: getattr(summary.conversation, name) for name in ("id", "title", "source")},
        **{name: getattr(summary.conversation, name) for name in ("model", "project", "branch")},
        "partition": summary.partition,
        "instance": summary.instance,
        "messages": summary.messages,
        "first": summary.first.isoformat(),
        "last": summary.last.isoformat(),
    }


def _print_table(
    found: Sequence[ConversationSummary], everything: Sequence[ConversationSummary]
) -> None:
    shown = _short_ids([each.conversation.id for each in everything])
    rows = [
        (
            shown[each.conversation.id] if console.is_terminal() else each.conversation.id,
            " ".join((each.conversation.title or "").split()),
            each.conversation.source or "",
            f"{each.messages:,}",
            *(moment.isoformat(timespec="seconds") for moment in (each.first, each.last)),
            " ".join((each.conversation.project or "").split()),
        )
        for each in found
    ]
    columns = ("id", "title", "source", "messages", "first", "last", "project")
    console.table(columns, rows, numeric=("messages",))


def _short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return of each id the beginning that no other one has, of eight characters at least."""
    ordered = sorted(set(ids))
    around = ["", *ordered, ""]
    shown = {}
    for before, number, after in zip(around, ordered, around[2:], strict=False):
        shared = max(_shared(number, before), _shared(number, after))
        shown[number] = number[: max(_SHORT, shared + 1)]
    return shown


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
