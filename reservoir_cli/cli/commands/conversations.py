"""``reservoir conversations``: which threads there are."""

import typer

from reservoir_cli.cli import console, options


def conversations(
    ctx: typer.Context,
    partition: options.Partition = None,
    instance: options.Instance = None,
    all_instances: options.AllInstances = False,
    all_partitions: options.AllPartitions = False,
    as_json: options.Json = False,
) -> None:
    """List the conversations of a partition or instance.

    The oldest comes first. Messages outside of conversations, such as those from stdin, are in
    none.
    """
    with options.open_reservoir(ctx) as reservoir:
        scope = options.read_scope(
            reservoir, partition, instance, all_instances, all_partitions, whole_partition=True
        )
        found = reservoir.conversations(scope)
        if not found:
            if reservoir.view(scope, 1):
                console.note(f"the messages in {scope} are in no conversation")
            else:
                console.elsewhere(scope, reservoir.places())
    if as_json:
        console.document(
            {
                "conversations": [
                    {
                        "id": each.conversation.id,
                        "title": each.conversation.title,
                        "source": each.conversation.source,
                        "model": each.conversation.model,
                        "project": each.conversation.project,
                        "branch": each.conversation.branch,
                        "partition": each.partition,
                        "instance": each.instance,
                        "messages": each.messages,
                        "first": each.first.isoformat(),
                        "last": each.last.isoformat(),
                    }
                    for each in found
                ]
            }
        )
        return
    rows = [
        (
            each.conversation.id,
            " ".join((each.conversation.title or "").split()),
            each.conversation.source or "",
            f"{each.messages:,}",
            *(moment.isoformat(timespec="seconds") for moment in (each.first, each.last)),
            " ".join((each.conversation.project or "").split()),
        )
        for each in found
    ]
    columns = ("id", "title", "source", "messages", "first", "last", "project")
    if rows:
        console.table(columns, rows, numeric=("messages",))
