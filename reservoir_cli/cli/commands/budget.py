"""``reservoir budget``: where the tokens of a context go."""

from typing import Annotated

import typer

from reservoir_cli.cli import completion, options
from reservoir_cli.errors import UsageError


def budget(
    ctx: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model to plan for; `models` lists them.",
            autocompletion=completion.models,
        ),
    ] = None,
    maximum: Annotated[
        int | None,
        typer.Option("--max", metavar="N", min=1, help="Window to plan for, instead of a model's."),
    ] = None,
    system: Annotated[
        int, typer.Option(metavar="N", min=0, help="Tokens of the system prompt.")
    ] = 0,
    procedure: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens of procedures.")] = 0,
    knowledge: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens of knowledge.")] = 0,
    episodes: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens of episodes.")] = 0,
    current: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens of the question.")] = 0,
    output_reserve: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Tokens kept free for the answer.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show where the tokens of a context go, line by line.

    The last line is what is left for history, the number alone.
    """
    from reservoir_cli.chat.turn import Section
    from reservoir_cli.cli import console
    from reservoir_cli.context.budget import plan
    from reservoir_cli.settings import config

    known = config.load(options.globals_of(ctx).config)
    settings = known.settings(model=model)
    name = model or settings.model
    window = maximum if maximum is not None else config.required_window(known, name, settings)
    reserve = known.reserve(name, settings) if output_reserve is None else output_reserve
    if reserve >= window:
        raise UsageError(
            f"the reserve of {reserve:,} leaves nothing of {window:,} tokens",
            hint="lower --output-reserve",
        )
    planned = plan(
        window=window,
        reserve=reserve,
        limit=settings.max_context_tokens,
        budget=None,
        model=name,
        sections={
            Section.SYSTEM: system,
            Section.PROCEDURE: procedure,
            Section.KNOWLEDGE: knowledge,
            Section.EPISODE: episodes,
            Section.CURRENT: current,
        },
        min_history=settings.min_history_tokens,
    )
    lines = [
        ("window", planned.window),
        ("reserve", -planned.reserve),
        ("available", planned.available),
        ("system", -system),
        ("procedure", -procedure),
        ("knowledge", -knowledge),
        ("episodes", -episodes),
        ("current", -current),
    ]
    if as_json:
        fields = {name: abs(value) for name, value in lines}
        console.document({"model": name, **fields, "history": planned.history})
        return
    for note in planned.notes:
        console.warn(note)
    console.write("".join(f"{name:<10} {value:>12,}\n" for name, value in lines))
    console.write(f"{planned.history}\n")
