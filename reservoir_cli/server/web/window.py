"""The view of the window: every candidate of a question, in or out, and why."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.context.reasons import describe_reason
from reservoir_cli.context.render.window import ContextWindow
from reservoir_cli.context.types import Candidate, Dropped
from reservoir_cli.context.window_message import WindowMessage
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope, StoredMessage, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.web.rendering import link
from reservoir_cli.server.web.shell_command import context_command
from reservoir_cli.server.web.window_form import Question
from reservoir_cli.settings.schema import Settings

#: How many messages are shown that could only have filled the budget.
_MOST_FILLERS = 100


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar, from 0 to 1 of its whole."""

    name: str
    start: float
    size: float
    value: str


@dataclass(frozen=True, slots=True)
class Row:
    """A message that was weighed.

    :param kept: it is in the window.
    :param near: it would be if there were room.
    :param tokens: what it counts, as ``--format json`` says.
    :param running: tokens of the window with it and all above it; ``None`` if it is left out.
    """

    message: StoredMessage
    text: str
    tier: str
    kept: bool
    near: bool
    why: str
    excerpt: bool
    section: str
    tokens: int
    running: int | None
    similarity: float
    cosine: float
    bm25: float
    recency: float
    priority: float
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Shown:
    """A window as the view shows it.

    :param framing: tokens of titles, day lines and the like, so that all adds up to what is used.
    :param above: tokens of what is never pruned: the question and the sections.
    :param settings: with the sliders applied; ``usual`` without them.
    :param milliseconds: that choosing took, without embedding the question.
    """

    question: Question
    window: ContextWindow
    settings: Settings
    usual: Settings
    kept: Sequence[Row]
    left_out: Sequence[Row]
    above: int
    framing: int
    bar: Sequence[Part]
    printed: str
    command: str
    milliseconds: float
    came: frozenset[int]

    def address(self, **changed: object) -> str:
        """Return the address of the same window, whole or without a message."""
        asked = self.question
        return link(
            "/window",
            q=asked.text,
            p=asked.partition,
            i=asked.instance,
            model=asked.model,
            budget=asked.budget,
            format=asked.form,
            **asked.options.flags(),
            **changed,
        )


def choose(reservoir: Reservoir, question: Question, usual_store: str) -> Shown:
    """Choose the window of a question.

    :param usual_store: where the store is if nothing else is said.
    :raises UsageError: an unknown model, or a budget that does not fit.
    """
    window = _window(reservoir, question)
    partition = window.request.partition
    usual = reservoir.config.settings(partition, window.request.model)
    changed = reservoir.config.with_flags(question.options.flags())
    settings = changed.settings(partition, window.request.model)
    above = sum(window.budget.sections.values())
    kept = list(_kept_rows(window, settings, above))
    running = kept[-1].running if kept else above
    return Shown(
        question,
        window,
        settings,
        usual,
        kept,
        list(_left_out_rows(window, settings)),
        above,
        window.used - (running or 0),
        _budget_bar(window),
        _printed(window),
        context_command(
            question.text,
            database=None if reservoir.location == usual_store else reservoir.location,
            partition=partition,
            instance=question.instance,
            model=question.model,
            budget=question.budget,
            form=question.form,
            options=question.options,
        ),
        window.timings_ms["read"] + window.timings_ms["select"],
        _came_in(reservoir, question, window),
    )


def floor_in_force(reservoir: Reservoir, partition: str, model: str | None) -> float:
    """Return the relevance below which a context recalls nothing, if no slider says otherwise."""
    from reservoir_cli.context import builder  # it loads numpy

    embedder = reservoir.indexer.usable_embedder(Scope(partition))
    settings = reservoir.config.settings(partition, model)
    return builder.floor_in_force(settings, reservoir.store, embedder)


def _window(reservoir: Reservoir, question: Question) -> ContextWindow:
    return reservoir.context(
        question.text,
        partition=question.partition,
        instance=question.instance,
        model=question.model,
        budget=question.budget,
        format=question.form,
        options=question.options,
        explain=True,
        without=question.without,
    )


def _came_in(reservoir: Reservoir, question: Question, window: ContextWindow) -> frozenset[int]:
    """Return the ids of what is in the window only because something is left out."""
    if not question.without:
        return frozenset()
    whole = _window(reservoir, replace(question, without=()))
    before = {candidate.message.id for candidate in whole.kept}
    return frozenset(candidate.message.id for candidate in window.kept) - before


def _kept_rows(window: ContextWindow, settings: Settings, running: int) -> Iterator[Row]:
    """Yield what is in the window, in the order in which it was taken."""
    candidates = {candidate.message.id: candidate for candidate in window.kept}
    printed = {message.id: message for message in window.messages if message.id is not None}
    reasons = window.selection.reasons
    taken = [number for number in reasons if number in candidates]
    taken += [number for number in candidates if number not in reasons]
    for number in taken:
        running += printed[number].tokens
        reason = reasons.get(number, "")
        yield _row(candidates[number], settings, reason, printed[number], running)


def _left_out_rows(window: ContextWindow, settings: Settings) -> list[Row]:
    """Return what was weighed and left out: what lacked room first, the best of it on top."""
    fillers = sorted(window.selection.passed_over, key=_rank)[:_MOST_FILLERS]
    left_out = sorted([*window.selection.dropped, *fillers], key=_rank)
    return [_left_out_row(window, drop, settings) for drop in left_out]


def _rank(drop: Dropped) -> tuple[bool, float, int]:
    return not drop.for_room, -drop.candidate.scores.priority, -drop.candidate.message.id


def _left_out_row(window: ContextWindow, drop: Dropped, settings: Settings) -> Row:
    candidate = drop.candidate
    return Row(
        **_about(candidate, settings),
        text=plain_text(candidate.message),
        kept=False,
        near=drop.for_room,
        why=describe_reason(drop.reason, candidate.message),
        excerpt=False,
        section="",
        tokens=window.meter.scale(candidate.message.tokens),
        running=None,
    )


def _row(
    candidate: Candidate, settings: Settings, reason: str, printed: WindowMessage, running: int
) -> Row:
    excerpt = printed.row["spans"] is not None
    return Row(
        **_about(candidate, settings),
        text=printed.content if excerpt else plain_text(candidate.message),
        kept=True,
        near=False,
        why=describe_reason(reason, candidate.message),
        excerpt=excerpt,
        section=printed.section.value,
        tokens=printed.tokens,
        running=running,
    )


def _about(candidate: Candidate, settings: Settings) -> dict[str, Any]:
    scores = candidate.scores
    return {
        "message": candidate.message,
        "tier": candidate.tier.value,
        "similarity": scores.similarity,
        "cosine": scores.cosine,
        "bm25": scores.bm25,
        "recency": scores.recency,
        "priority": scores.priority,
        "parts": _stacked(
            [
                *((name, settings.similarity_weight * part) for name, part in scores.parts.items()),
                ("recency", settings.recency_weight * scores.recency),
            ],
            settings.similarity_weight + settings.recency_weight,
        ),
    }


def _stacked(values: Iterable[tuple[str, float]], whole: float) -> list[Part]:
    """Return the parts of a bar, one behind the other."""
    parts, start = [], 0.0
    for name, value in values:
        size = max(0.0, value) / whole if whole > 0 else 0.0
        parts.append(Part(name, start, size, f"{value:.3f}"))
        start += size
    return parts


def _budget_bar(window: ContextWindow) -> list[Part]:
    """Return what takes the tokens of the budget; it is longer if the budget is exceeded."""
    budget = window.budget
    kept = {"recalled": 0, "history": 0}
    for message in window.messages:
        if message.id is not None:
            kept[message.section.value] += message.tokens
    named = [(section.value, tokens) for section, tokens in budget.sections.items()]
    question = [pair for pair in named if pair[0] == "current"]
    rest = window.history_used - sum(kept.values())
    values = [
        *(pair for pair in named if pair[0] != "current"),
        *kept.items(),
        ("titles", max(0, rest)),
        *question,
    ]
    whole = max(budget.available, window.used)
    values.append(("free", whole - window.used))
    parts = _stacked(((name, float(tokens)) for name, tokens in values if tokens), float(whole))
    return [Part(part.name, part.start, part.size, f"{float(part.value):,.0f}") for part in parts]


def _printed(window: ContextWindow) -> str:
    """Return the window as it is printed, or why it cannot be."""
    try:
        rendered = window.to()
    except UsageError as error:
        return f"{error.message}\n{error.hint or ''}".rstrip()
    if isinstance(rendered, str):
        return rendered
    return json.dumps(rendered, ensure_ascii=False, indent=2)
