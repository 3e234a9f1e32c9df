"""``reservoir budget``: show how the tokens of a context are divided."""

from typing import Annotated

import typer

from reservoir_cli.cli import console, options
from reservoir_cli.cli.options import tokens_option
from reservoir_cli.context.budget import TokenBudget
from reservoir_cli.context.prepare_request import plan_budget


def budget(
    ctx: typer.Context,
    model: options.Model = None,
    maximum: Annotated[
        int | None,
        tokens_option("Context window to plan for, instead of a model's.", "--max", least=1),
    ] = None,
    partition: options.Partition = None,
    system: Annotated[
        int | None,
        tokens_option("Tokens of the system prompt (default: those of the setting system_prompt)."),
    ] = None,
    procedure: Annotated[int, tokens_option("Tokens of procedures.")] = 0,
    knowledge: Annotated[int, tokens_option("Tokens of knowledge.")] = 0,
    episodes: Annotated[int, tokens_option("Tokens of episodes.")] = 0,
    current: Annotated[int, tokens_option("Tokens of the question.")] = 0,
    reserve: options.Reserve = None,
    as_json: options.Json = False,
) -> None:
    """Show how the tokens of a context are divided, line by line.

    The last line is a bare number: the tokens left for history. Withheld is the part of the window
    that max_context_tokens rules out; recommended is the value of --budget recommended. Borrowed
    is the part of the reserve that history may use; overflow is by how much the sections exceed
    what is available.
    """
    plan = plan_budget(
        options.load_config(ctx),
        partition=partition,
        model=model,
        maximum=maximum,
        reserve=reserve,
        system=system,
        procedure=procedure,
        knowledge=knowledge,
        episodes=episodes,
        current=current,
    )
    planned = plan.budget
    lines = _lines(planned, plan.recommended)
    if as_json:
        fields = {key: None if value is None else abs(value) for key, value in lines}
        console.document({"model": plan.model, **fields, "history": planned.history})
        return
    for note in planned.notes:
        console.warn(note)
    console.write(
        "".join(f"{key:<11} {value:>12,}\n" for key, value in lines if _is_shown(key, lines))
    )
    console.write(f"{planned.history}\n")


def _lines(planned: TokenBudget, recommended: int | None) -> list[tuple[str, int | None]]:
    names = {"episode": "episodes"}
    sections = [(names.get(key, key.value), -count) for key, count in planned.sections.items()]
    return [
        ("window", planned.window),
        ("reserve", -planned.reserve),
        ("withheld", -(planned.window - planned.reserve - planned.available)),
        ("available", planned.available),
        ("recommended", recommended),
        *sections,
        ("borrowed", planned.borrowed),
        ("overflow", planned.overflow),
    ]


def _is_shown(key: str, lines: list[tuple[str, int | None]]) -> bool:
    values = dict(lines)
    if key == "recommended":
        return values[key] not in (None, values["available"])
    return key not in ("withheld", "borrowed", "overflow") or bool(values[key])
