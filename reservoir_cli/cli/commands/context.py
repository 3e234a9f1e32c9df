"""``reservoir context``: print the best context for a question within a token budget."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from reservoir_cli.cli import clipboard, console, filters, nothing_found, open_store, options
from reservoir_cli.cli.options import argument, flag, name_option, option, tokens_option
from reservoir_cli.context.candidate import Candidate, describe_reason
from reservoir_cli.context.prepare_request import ContextOptions
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.request import FORMATS, PROVIDERS
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.config import masking_command
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.settings.setting import Setting
from reservoir_cli.util.clock import to_local
from reservoir_cli.util.progress import counted
from reservoir_cli.util.read_files import decode, read_bounded

_TRUNCATED = 6
#: The scale of --threshold is (1 + cosine)/2.
_THRESHOLD = Setting(name="threshold", kind=float, high=1)
COLUMNS = ("id", "day", "role", "cos", "sim", "rec", "prio", "tokens", "", "why", "text")
#: Columns that a narrow terminal leaves out, the first of them first.
_SPARE = ("text", "day", "rec", "cos", "sim")
_LEGEND = (
    "cos: cosine to the question, as it is · sim: how well it fits, 1 for the best · "
    "rec: how new it is · prio: 0.7 sim + 0.3 rec, unless set otherwise"
)
_TEXTS = "Texts to add"  # sections of options; ``-h`` has only the names of theirs
_CHOICE = "How messages are chosen"
_NEAREST_MISSES = 10  # how many messages that were left out are explained, unless all are


def _choice(metavar: str, about: str, *names: str, setting: str = "", **limits: Any) -> Any:
    choices = SETTINGS[setting].choices if setting else ()
    return option(metavar, about, *names, panel=_CHOICE, choices=choices, **limits)


def _switch(name: str, about: str) -> Any:
    return flag(f"--{name}/--no-{name}", about, _CHOICE)


def context(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, argument("[QUERY]...", "The question; read from stdin if omitted or -.")
    ] = None,
    model: Annotated[
        str | None, options.model_option("Model to build the context for; `models` lists them.")
    ] = None,
    budget: Annotated[
        str | None, option("N|recommended", "Tokens for all of it (default: the model's limit).")
    ] = None,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    form: Annotated[
        str,
        option(
            "NAME",
            "text, markdown, json, or a request body: openai, azure, ollama, anthropic.",
            "--format",
            choices=FORMATS,
        ),
    ] = "text",
    system: Annotated[str | None, option("TEXT|@FILE", "System prompt.", panel=_TEXTS)] = None,
    procedure: Annotated[
        list[str] | None, option("NAME=TEXT|@FILE", "An instruction; repeatable.", panel=_TEXTS)
    ] = None,
    knowledge: Annotated[
        list[str] | None,
        option("SOURCE=TEXT|@FILE", "A text you looked up; repeatable.", panel=_TEXTS),
    ] = None,
    episode: Annotated[
        list[str] | None,
        option("TEXT|@FILE", "A part of an old conversation; repeatable.", panel=_TEXTS),
    ] = None,
    reserve_tokens: Annotated[
        int | None, tokens_option("Tokens reserved for the answer.", "--reserve", panel=_CHOICE)
    ] = None,
    recent_context_size: Annotated[
        int | None, _choice("N", "Consider this many of the newest messages.", "--recent", min=0)
    ] = None,
    semantic_context_size: Annotated[
        int | None,
        _choice("N", "Consider this many of the most similar messages.", "--similar", min=0),
    ] = None,
    threshold: Annotated[
        float | None, _choice("X", "Similar is above this (1 + cosine)/2; try 0.65.", min=0, max=1)
    ] = None,
    since: filters.Since = None,
    until: filters.Until = None,
    role: filters.Role = None,
    source: filters.Source = None,
    project: filters.Project = None,
    tag: filters.Tag = None,
    recall_scope: Annotated[
        str | None,
        _choice(
            "WHERE", "instance, partition, or auto: partition without -i.", setting="recall_scope"
        ),
    ] = None,
    fill: Annotated[
        bool | None, _switch("fill", "Spend the whole budget (default: with --budget).")
    ] = None,
    order: Annotated[
        str | None,
        _choice("HOW", "score, or tiers: recent, similar, synapse, older.", setting="order"),
    ] = None,
    excerpts: Annotated[
        str | None,
        _choice("HOW", "auto: best parts of long messages; off: whole ones.", setting="excerpts"),
    ] = None,
    profile: Annotated[
        str | None,
        _choice("SIZE", "Defaults for a small or large context window.", setting="profile"),
    ] = None,
    copy: Annotated[
        bool, flag("--copy", "Also copy the context to the clipboard.", options.OUTPUT)
    ] = False,
    follow: Annotated[
        bool | None, _switch("follow", "Take it as a follow-up (default: in a session).")
    ] = None,
    recall_floor: Annotated[
        float | None, _choice("X", "Below this relevance nothing fits; 0: off.", "--floor")
    ] = None,
    enough: Annotated[
        bool | None, _switch("enough", "Leave room rather than add barely similar messages.")
    ] = None,
    save: Annotated[
        bool, flag("--save", "Store the question, too, after building the context.")
    ] = False,
    saved_trace: Annotated[
        str | None,
        name_option(
            "Id that the saved question and its replies share.",
            "--trace-id",
            metavar="ID",
            panel=options.OUTPUT,
        ),
    ] = None,
    explain: Annotated[
        bool, flag("--explain", "Explain the choice; --explain all: all candidates.")
    ] = False,
    explain_all: Annotated[bool, typer.Option("--explain-all", hidden=True)] = False,
    strict: Annotated[
        bool, flag("--strict", "Exit with 6 if a message did not fit.", options.OUTPUT)
    ] = False,
) -> None:
    """Print the best context for a question within a token budget.

    Ranks recent and similar messages by 0.7 x similarity + 0.3 x recency, and adds them best first
    while they fit. The question comes last and is never cut.
    """
    chosen = _context_options(ctx, threshold)
    where = filters.message_filter(ctx)
    texts = [typed.partition("=")[2] for typed in (*(procedure or ()), *(knowledge or ()))]
    question = options.question_of(words, "context", [system or "", *(episode or ()), *texts])
    if save:  # refuse invalid names before anything is printed
        for name in filter(None, (partition, instance, saved_trace)):
            check_name(name)
    with open_store.open_reservoir(ctx, create=save) as reservoir:
        window = reservoir.context(
            question,
            partition=partition,
            instance=instance,
            model=model,
            budget=budget,
            format=form,
            system=None if system is None else _text(system, "--system"),
            procedure=[_named_text(typed, "--procedure") for typed in procedure or ()],
            knowledge=[_named_text(typed, "--knowledge") for typed in knowledge or ()],
            episode=[_text(typed, "--episode") for typed in episode or ()],
            options=chosen,
            trace_id=filters.complete_new_trace(reservoir, saved_trace, partition),
            where=where,
            explain=explain,
        )
        if not window.kept:
            nothing_found.say_elsewhere(reservoir, window.request.partition, instance, where)
        elif not question.strip():
            fitting = " that fit" if window.lacks_room else ""
            console.note(f"there is no question: the newest messages{fitting} are printed")
        try:
            _print(window, explain, reservoir, everything=explain_all)
            if copy:
                rendered = window.to(explain=explain)
                text = rendered if isinstance(rendered, str) else console.json_text(rendered)
                clipboard.copy(text)
                console.note("copied to the clipboard")
        finally:  # even if the reader closes the pipe before the end of the context
            if save:
                _save_question(reservoir, window)
            reservoir.runs.record(window)
    if strict and (window.truncated or window.excerpts):
        console.note(f"--strict: {_describe_loss(window)}")
        raise typer.Exit(_TRUNCATED)


def _context_options(ctx: typer.Context, threshold: float | None) -> ContextOptions:
    """Return the options that are named like settings, each checked as its setting is."""
    chosen: dict[str, Any] = {}
    for parameter in ctx.command.params:
        name, value = str(parameter.name), ctx.params.get(str(parameter.name))
        if name in ContextOptions.__slots__ and value is not None:
            chosen[name] = SETTINGS[name].check(value, parameter.opts[0])
    if threshold is not None:
        _THRESHOLD.check(threshold, "--threshold")
        chosen["similar_cosine"] = round(2 * threshold - 1, 12)
    return ContextOptions(**chosen)


def _describe_loss(window: ContextWindow) -> str:
    losses = {
        "left out or cut for lack of room": window.truncations,
        "printed as excerpts": window.excerpts,
    }
    return ", ".join(f"{count:,} {loss}" for loss, count in losses.items() if count)


def _save_question(reservoir: Reservoir, window: ContextWindow) -> None:
    question, request = window.request.question(), window.request
    if question is None:
        return
    reservoir.ingest([question], partition=request.partition, instance=request.instance)
    partition, source = request.partition, window.scope["instance"]
    if request.instance is None and source not in (None, partition):
        console.note(
            f"the question is saved in {partition}/{partition}; the newest messages are in "
            f"{partition}/{source} (-i {shlex.quote(source)} saves it there)"
        )


def _print(window: ContextWindow, explain: bool, reservoir: Reservoir, *, everything: bool) -> None:
    request = window.request
    for note in window.notes:
        console.warn(note)
    if window.nothing_found:
        console.note("nothing stored fits this question well; these are the nearest")
    for hint in window.hints:
        console.note(hint)
    _note_dropped_pins(window)
    if cut := sum(candidate.cut for candidate in window.kept):
        console.note(f"long tool results are cut: {cut} (max_tool_result_tokens; 0 never cuts)")
    if secret := sum(bool(candidate.message.secrets) for candidate in window.kept):
        command = masking_command(reservoir.config, request.partition)
        outcome = f"printed as they are; {command} hides them"
        if reservoir.redactor.hides(request.partition):
            outcome = "masked"
        console.note(f"secrets in {counted(secret, 'message')} {outcome}")
    rendered = window.to(explain=explain)
    if isinstance(rendered, str):
        console.window_text(rendered)
    else:
        console.write_json(rendered)
    if explain and request.format != "json":
        _print_explanation(window, everything=everything)
    if request.format in PROVIDERS and not request.model:
        console.note("no model is set: the request has no model key (--model adds it)")
    console.summary(window.summary())


def _note_dropped_pins(window: ContextWindow) -> None:
    for dropped in window.selection.dropped:
        if dropped.candidate.pinned and dropped.for_room:
            message = dropped.candidate.message
            console.note(
                f"pinned #{message.id} is left out, {describe_reason(dropped.reason, message)}: "
                "with the newest two messages, pins take at most a quarter of the budget"
            )


def _named_text(text: str, option: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not equals or not name.strip():
        fault = f"{name!r} has no text" if name.strip() else "has no name"
        raise UsageError(f"{option} {fault}", hint=f"write {option} NAME=TEXT")
    return name.strip(), _text(rest, option)


def _text(text: str, option: str) -> str:
    """Return the text, that of a file for ``@FILE``, or stdin for ``-``; ``@@`` is an ``@``."""
    if text.startswith("@@"):
        return text[1:]
    if not text.startswith("@"):
        return text if text != "-" else options.text_or_stdin(text, f"text of {option}")
    path = Path(os.path.expanduser(text[1:]))
    try:
        data = read_bounded(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        hint = "- alone reads stdin" if text == "@-" else "@@ stands for a literal @"
        raise UsageError(f"{option}: cannot read {path}: {reason}", hint=hint) from None
    return decode(data, str(path))[0].strip("\r\n")


def _print_explanation(window: ContextWindow, *, everything: bool) -> None:
    from reservoir_cli.context.render.json import explain_candidates

    selection = window.selection
    left_out = [dropped.candidate for dropped in (*selection.dropped, *selection.passed_over)]
    candidates = {candidate.message.id: candidate for candidate in (*window.kept, *left_out)}
    rows = explain_candidates(window)
    best = rows[0]["id"] if rows else None
    misses = [row for row in rows if row["outcome"] != "kept"]
    nearest = misses if everything else misses[:_NEAREST_MISSES]
    kept_rows = [row for row in rows if row["outcome"] == "kept"]
    console.side_table(
        COLUMNS,
        [_cells(row, candidates[row["id"]], best) for row in (*nearest, *kept_rows)],
        numeric=COLUMNS[3:8],
        spare=_SPARE,
    )
    console.legend(_LEGEND)
    if hidden := len(misses) - len(nearest):
        console.aside(f"{counted(hidden, 'candidate')} more left out (--explain all)")
    if count := window.not_reached:
        verb = "was" if count == 1 else "were"
        console.aside(
            f"{counted(count, 'message')} that could only have filled the budget {verb} not reached"
        )


def _cells(row: dict[str, Any], candidate: Candidate, best: int | None) -> Sequence[str]:
    return (
        str(row["id"]),
        to_local(candidate.message.created_at).date().isoformat(),
        row["role"],
        f"{row['cosine']:.2f}",
        f"{row['similarity']:.2f}",
        f"{row['recency']:.2f}",
        f"{row['priority']:.3f}",
        f"{row['tokens']:,}",
        "✓" if row["outcome"] == "kept" else "·",
        _describe(row, candidate, best),
        " ".join(plain_text(candidate.message)[:200].split()),
    )


def _describe(row: dict[str, Any], candidate: Candidate, best: int | None) -> str:
    if row["outcome"] == "kept" and row["id"] == best:
        return "best match"
    if row["reason"] == "newest":
        return "newest of the running session" if candidate.running else "newest"
    if row["outcome"] == "kept" and row["reason"] in _BY_TIER:
        return _TIERS[row["tier"]]
    return describe_reason(row["reason"], candidate.message)


_BY_TIER = ("priority", "tier")  # the reasons for which the tier says more
_TIERS = {
    "recent": "recent",
    "similar": "similar to the question",
    "synapse": "linked to a match",
    "older": "fills the rest",
    "pinned": "pinned",
}
