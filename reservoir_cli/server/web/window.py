"""Build the context view: every candidate for a question, whether it is in, and why."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reservoir_cli.context.candidate import Candidate, Dropped, describe_reason
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.render.json import WindowMessage
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope, StoredMessage, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.web.rendering import link
from reservoir_cli.server.web.stacked_bar import Part, stack
from reservoir_cli.server.web.window_form import WindowForm, context_command
from reservoir_cli.settings.schema import Settings

MAX_FILLERS = 50  # the most rows of messages that could only have filled the budget
_SMALLEST_PART = 0.0005  # parts of a priority below this share of the bar are not listed
_PART_NAMES = {"question": "question it answers"}


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate.

    :param near: whether it was left out only for lack of room.
    :param running: tokens of the window up to and including it; ``None`` if it is left out.
    :param scores: how its priority was computed, in words.
    """

    message: StoredMessage
    text: str
    kept: bool
    near: bool
    why: str
    excerpt: bool
    tokens: int
    running: int | None
    priority: float
    parts: Sequence[Part]
    scores: str


@dataclass(frozen=True, slots=True)
class WindowView:
    """A window as the view shows it, with the settings of the sliders, and the usual ones.

    :param above: tokens of the question and the sections, which are never pruned.
    :param unlisted: how many messages that could only have filled the budget have no row.
    :param framing: tokens of titles, day lines and the like: the rest of the used tokens.
    :param newcomers: ids of the messages that are in only because another one is left out.
    :param pending: how many messages are not embedded yet; the command embeds some first.
    """

    question: WindowForm
    window: ContextWindow
    settings: Settings
    usual: Settings
    kept: Sequence[Row]
    left_out: Sequence[Row]
    unlisted: int
    above: int
    framing: int
    bar: Sequence[Part]
    printed: str
    command: str
    milliseconds: float
    newcomers: frozenset[int]
    pending: int

    def address(self) -> str:
        """Return the address of the same window with all messages."""
        question = self.question
        return link(
            "/context",
            # An empty question asks, too; without the parameter, the address would ask nothing.
            q=question.text or " ",
            p=question.partition,
            i=question.instance,
            model=question.model,
            budget=question.budget,
            format=question.form,
            **question.options.flags(),
        )


def choose(reservoir: Reservoir, question: WindowForm, default_store: str) -> WindowView:
    """Choose the window of a question; UsageError for a wrong model or a small budget."""
    window = _build_window(reservoir, question)
    partition = window.request.partition
    usual = reservoir.config.settings(partition, window.request.model)
    changed = reservoir.config.with_flags(question.options.flags())
    settings = changed.settings(partition, window.request.model)
    above = sum(window.budget.sections.values())
    messages = window.messages
    kept = list(_kept_rows(window, messages, settings, above))
    running = kept[-1].running if kept else above
    database = None if reservoir.location == default_store else reservoir.location
    return WindowView(
        question,
        window,
        settings,
        usual,
        kept,
        _left_out_rows(window, settings),
        window.not_reached - min(len(window.selection.passed_over), MAX_FILLERS),
        above,
        window.used - (running or 0),
        _budget_bar(window, messages),
        _render(window),
        context_command(question, partition, database),
        window.timings_ms["read"] + window.timings_ms["select"],
        _find_newcomers(reservoir, question, window),
        reservoir.indexer.pending(Scope(partition)),
    )


def floor_in_force(reservoir: Reservoir, partition: str, model: str | None) -> float:
    """Return the relevance below which a context recalls nothing, if the slider is not moved."""
    from reservoir_cli.context import rank_messages  # loads numpy

    embedder = reservoir.indexer.usable_embedder(Scope(partition))
    settings = reservoir.config.settings(partition, model)
    return rank_messages.floor_in_force(settings, reservoir.store, embedder)


def _build_window(reservoir: Reservoir, question: WindowForm) -> ContextWindow:
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


def _find_newcomers(
    reservoir: Reservoir, question: WindowForm, window: ContextWindow
) -> frozenset[int]:
    """Return the ids of messages that are in the window only because another one is left out."""
    if not question.without:
        return frozenset()
    whole = _build_window(reservoir, replace(question, without=()))
    before = {candidate.message.id for candidate in whole.kept}
    return frozenset(candidate.message.id for candidate in window.kept) - before


def _kept_rows(
    window: ContextWindow, messages: Sequence[WindowMessage], settings: Settings, running: int
) -> Iterator[Row]:
    candidates = {candidate.message.id: candidate for candidate in window.kept}
    printed = {message.id: message for message in messages if message.id is not None}
    reasons = window.selection.reasons
    ids = [number for number in reasons if number in candidates]
    ids += [number for number in candidates if number not in reasons]
    for number in ids:
        running += printed[number].tokens
        reason = reasons.get(number, "")
        yield _row(candidates[number], settings, reason, printed[number], running)


def _left_out_rows(window: ContextWindow, settings: Settings) -> list[Row]:
    fillers = sorted(window.selection.passed_over, key=_sort_key)[:MAX_FILLERS]
    left_out = sorted([*window.selection.dropped, *fillers], key=_sort_key)
    return [
        Row(
            **_score_fields(drop.candidate, settings, ""),
            text=plain_text(drop.candidate.message),
            kept=False,
            near=drop.for_room,
            why=describe_reason(drop.reason, drop.candidate.message),
            excerpt=False,
            tokens=window.meter.scale(drop.candidate.message.tokens),
            running=None,
        )
        for drop in left_out
    ]


def _sort_key(drop: Dropped) -> tuple[bool, float, int]:
    return not drop.for_room, -drop.candidate.scores.priority, -drop.candidate.message.id


def _row(
    candidate: Candidate, settings: Settings, reason: str, printed: WindowMessage, running: int
) -> Row:
    excerpt = printed.row["spans"] is not None
    return Row(
        **_score_fields(candidate, settings, printed.section.value),
        text=printed.content if excerpt else plain_text(candidate.message),
        kept=True,
        near=False,
        why=describe_reason(reason, candidate.message),
        excerpt=excerpt,
        tokens=printed.tokens,
        running=running,
    )


def _score_fields(candidate: Candidate, settings: Settings, section: str) -> dict[str, Any]:
    scores = candidate.scores
    parts = stack(
        [
            *(
                (name, settings.similarity_weight * part)
                for name, part in (scores.parts or {}).items()
            ),
            ("recency", settings.recency_weight * scores.recency),
        ],
        settings.similarity_weight + settings.recency_weight,
        decimals=3,
    )
    return {
        "message": candidate.message,
        "priority": scores.priority,
        "parts": parts,
        "scores": _describe_scores(candidate, settings, parts, section),
    }


def _describe_scores(
    candidate: Candidate, settings: Settings, parts: Sequence[Part], section: str
) -> str:
    """Return how a priority was computed; one text is shown faster than a list of elements."""
    scores = candidate.scores
    return " · ".join(
        [
            f"similarity {_product(scores.similarity, settings.similarity_weight)}",
            f"recency {_product(scores.recency, settings.recency_weight)}",
            f"priority {scores.priority:.3f}",
            *(
                f"{_PART_NAMES.get(part.name, part.name)} {part.value}"
                for part in parts
                if part.size >= _SMALLEST_PART and part.name != "recency"
            ),
            f"cosine {scores.cosine:.3f}",
            f"BM25 {scores.bm25:.2f}",
            f"tier {candidate.tier.value}",
            *([f"printed in {section}"] if section else []),
        ]
    )


def _product(score: float, weight: float) -> str:
    return f"{score:.3f} × {weight:g} = {score * weight:.3f}"


def _budget_bar(window: ContextWindow, messages: Sequence[WindowMessage]) -> list[Part]:
    budget = window.budget
    kept = {"recalled": 0, "history": 0}
    for message in messages:
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
    return stack([(name, tokens) for name, tokens in values if tokens], whole, decimals=0)


def _render(window: ContextWindow) -> str:
    try:
        rendered = window.to()
    except UsageError as error:
        return f"{error.message}\n{error.hint or ''}".rstrip()
    if isinstance(rendered, str):
        return rendered
    return json.dumps(rendered, ensure_ascii=False, indent=2)
