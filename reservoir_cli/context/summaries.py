"""Summaries in a context: those of conversations of which nothing else is printed."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reservoir_cli.context import turns
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.render.window import count_turns
from reservoir_cli.context.types import Candidate, ContextRequest, Piece, Selection, TokenBudget
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.extractive_summaries import best_summaries
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.summaries import Summaries, Summary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The part of the history budget that summaries may take at most.
_SHARE = 4


def held_back(budget: TokenBudget, settings: Settings) -> TokenBudget:
    """Return the budget without the tokens that summaries may take."""
    return replace(budget, history=budget.history - _room(budget, settings))


def _room(budget: TokenBudget, settings: Settings) -> int:
    return min(settings.max_episode_tokens, budget.history // _SHARE)


def choose(
    request: ContextRequest,
    selection: Selection,
    store: Store,
    scope: Scope,
    question: tuple[Embedder, "NDArray[np.float32]"],
    *,
    budget: TokenBudget,
    settings: Settings,
    meter: Meter,
    mask: Redactor,
) -> dict[tuple[str, str | None], Piece]:
    """Return the summaries that a question is given, by instance and conversation.

    :param selection: what is printed beside them.
    :param question: the embedder, and the question's vector.
    """
    embedder, vector = question
    printed = conversations([*selection.recalled, *selection.history])
    room, chosen = _room(budget, settings), dict[tuple[str, str | None], Piece]()
    best = best_summaries(Summaries(store).read(scope), embedder.model_id, vector, printed)
    for summary in best:
        key = (summary.instance, summary.conversation_id)
        wider = {**chosen, key: Piece(_line(summary, mask))}
        shown = turns.history_turns(replace(request, summaries=in_order(wider)), (), ())
        if count_turns(shown, request.format, meter) <= room:
            chosen = wider
    return chosen


def conversations(printed: Iterable[Candidate]) -> set[tuple[str, str | None]]:
    """Return the instances and conversations of candidates."""
    return {(each.message.instance, each.message.conversation_id) for each in printed}


def in_order(chosen: dict[tuple[str, str | None], Piece]) -> tuple[Piece, ...]:
    """Return summaries in order of their days."""
    return tuple(sorted(chosen.values(), key=lambda piece: piece.text))


def _line(summary: Summary, mask: Redactor) -> str:
    day = datetime.fromtimestamp(summary.first_at / 1000, UTC).astimezone()
    return f"{day:%Y-%m-%d}: {mask.text(summary.partition, summary.text)}"
