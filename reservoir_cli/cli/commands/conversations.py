"""``reservoir conversations``: list conversations."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from typing import Annotated, Any

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.options import option
from reservoir_cli.messages import Filter, Scope
from reservoir_cli.reservoir import ConversationSummary, Reservoir
from reservoir_cli.util.unicode_text import fold

_SHORT = 8  # minimum length of the unique id prefixes that a terminal shows


def conversations(
    ctx: typer.Context,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_partitions: options.AllPartitions = False,
    text: Annotated[
        str | None, option("TEXT", "Only with this text in the title or a message.", "--match")
    ] = None,
    project: filters.Project = None,
    since: filters.Since = None,
    tag: filters.ConversationTag = None,
    limit: Annotated[
        int | None,
        option("N", "Only the N with the newest messages (default: all).", "-n", "--limit", min=1),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the conversations of a partition or instance.

    The oldest comes first. Messages without a conversation, such as those from stdin, are not
    listed. A terminal shows shortened ids, which `view --conversation` accepts.
    """
    where = filters.message_filter(ctx)
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(reservoir, partition, instance, all_partitions)
        everything = reservoir.conversations(scope)
        summaries = _newest(_filter(everything, reservoir, scope, where), limit)
        if not summaries:
            _explain_nothing(reservoir, scope, where, bool(everything))
    if as_json:
        console.document({"conversations": [_row(summary) for summary in summaries]})
    elif summaries:
        _print_table(summaries, everything, with_partition=all_partitions)


def _filter(
    summaries: Sequence[ConversationSummary], reservoir: Reservoir, scope: Scope, where: Filter
) -> Sequence[ConversationSummary]:
    """Filter conversations; the tag and the text may be in different messages of one."""
    if where.project:
        summaries = [entry for entry in summaries if entry.conversation.project == where.project]
    if where.since:
        summaries = [entry for entry in summaries if entry.last >= where.since]
    if where.tag:
        tagged = reservoir.lookup.ids_by_conversation(scope, type(where)(tag=where.tag))
        summaries = [entry for entry in summaries if entry.name in tagged]
    if not where.text:
        return summaries
    text = fold(where.text)
    matching = reservoir.lookup.ids_by_conversation(
        scope, replace(where, project=None, since=None, tag=None)
    )
    return [
        entry
        for entry in summaries
        if text in fold(entry.conversation.title or "") or entry.name in matching
    ]


def _newest(
    summaries: Sequence[ConversationSummary], limit: int | None
) -> Sequence[ConversationSummary]:
    if limit is None:
        return summaries
    newest = {entry.name for entry in sorted(summaries, key=attrgetter("last"))[-limit:]}
    return [entry for entry in summaries if entry.name in newest]


def _explain_nothing(reservoir: Reservoir, scope: Scope, where: Filter, filtered: bool) -> None:
    if not reservoir.view(scope, 1):
        nothing_found.tell(scope, reservoir.lookup.elsewhere(scope))
    elif filtered:
        values = {"match": where.text, "project": where.project, "since": where.since}
        values["tag"] = where.tag
        names = [f"--{name}" for name, value in values.items() if value is not None]
        console.note(
            nothing_found.describe_no_match(reservoir, "conversation", scope, names, where)
        )
    else:
        console.note(f"no message in {nothing_found.name_scope(scope)} belongs to a conversation")


def _row(summary: ConversationSummary) -> dict[str, Any]:
    return {
        **asdict(summary.conversation),
        "partition": summary.partition,
        "instance": summary.instance,
        "messages": summary.messages,
        "first": summary.first.isoformat(),
        "last": summary.last.isoformat(),
    }


def _print_table(
    summaries: Sequence[ConversationSummary],
    everything: Sequence[ConversationSummary],
    *,
    with_partition: bool,
) -> None:
    short = _short_ids([entry.conversation.id for entry in everything])
    rows = [
        (
            short[entry.conversation.id] if console.is_terminal() else entry.conversation.id,
            " ".join((entry.conversation.title or "").split()),
            entry.conversation.source or "",
            f"{entry.messages:,}",
            *(moment.isoformat(timespec="seconds") for moment in (entry.first, entry.last)),
            " ".join((entry.conversation.project or "").split()),
            *((entry.partition,) if with_partition else ()),
        )
        for entry in summaries
    ]
    columns = ["id", "title", "source", "messages", "first", "last", "project"]
    if with_partition:
        columns.append("partition")
    console.table(columns, rows, numeric=("messages",))


def _short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Map each id to its shortest unique prefix of at least eight characters."""
    ordered = sorted(set(ids))
    padded = ["", *ordered, ""]
    prefixes = {}
    for before, whole, after in zip(padded, ordered, padded[2:], strict=False):
        shared = max(_shared_length(whole, before), _shared_length(whole, after))
        prefixes[whole] = whole[: max(_SHORT, shared + 1)]
    return prefixes


def _shared_length(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
