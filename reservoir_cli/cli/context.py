"""``reservoir context``: the best context a token budget can buy."""

import sys
from typing import Annotated

import typer

from reservoir_cli.cli import options
from reservoir_cli.errors import UsageError


def context(
    ctx: typer.Context,
    query: Annotated[
        str | None, typer.Argument(help="The question; - or nothing reads stdin.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="Model it is for.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens for everything that is printed.")
    ] = None,
    partition: options.Partition = None,
    instance: options.Instance = None,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="text, json or openai.")
    ] = "text",
    save: Annotated[bool, typer.Option("--save", help="Store the question afterwards.")] = False,
    trace_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Trace of the question.")
    ] = None,
) -> None:
    """Print the best context for a question, inside a token budget.

    Recent and similar messages are ranked by 0.7 x similarity + 0.3 x recency and taken whole,
    the best first. The question comes last and is never cut.
    """
    from reservoir_cli.cli import output
    from reservoir_cli.messages import Message
    from reservoir_cli.rendering import to_document

    question = _question(query)
    if budget is not None and budget < 1:
        raise UsageError(f"--budget must be at least 1, not {budget}")
    with options.open_reservoir(ctx, create=save) as reservoir:
        window = reservoir.context(
            question,
            partition=partition,
            instance=instance,
            model=model,
            budget=budget,
            form=form,
            trace_id=trace_id,
        )
        if not window.selection.recalled and not window.selection.history:
            options.say_elsewhere(reservoir, window.request.partition, instance)
        for each in window.notes:
            output.warn(each)
        rendered = to_document(window.to())
        if form == "text":
            output.window_text(rendered)
        else:
            output.write(rendered)
        if form == "openai" and not window.request.model:
            output.note("no model is named: the request has no model key (--model adds it)")
        output.aside(window.summary())
        if save and question.strip():
            message = Message("user", question, trace_id=window.request.trace_id, source="cli")
            reservoir.ingest([message], partition=partition, instance=instance)


def _question(query: str | None) -> str:
    if query is None and sys.stdin.isatty():
        raise UsageError("no question", hint='reservoir context "…", or pipe it in')
    return options.text_or_stdin("-" if query is None else query)
