"""Add summaries of conversations that are not printed otherwise."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reservoir_cli.context import turns
from reservoir_cli.context.fit_budget import Chooser
from reservoir_cli.context.render.window import count_turns
from reservoir_cli.context.types import Candidate, ContextRequest, Piece, Selection
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

#: A request, its selection, the tokens of that as printed, and notes for the user.
Chosen = tuple[ContextRequest, Selection, int, tuple[str, ...]]
#: Summaries may take at most one part in this many of the history budget.
_SHARE = 4


def select_beside(
    chooser: Chooser,
    store: Store,
    scope: Scope,
    question: tuple[Embedder, "NDArray[np.float32]"],
    settings: Settings,
    mask: Redactor,
) -> Chosen | None:
    """Select messages and summaries of other conversations; ``None`` if there are none.

    :param question: the embedder, and the question's vector.
    """
    room = min(settings.max_episode_tokens, chooser.budget.history // _SHARE)
    smaller = chooser.budget._replace(history=chooser.budget.history - room)
    first, _, _ = replace(chooser, budget=smaller).choose()
    summaries = _choose(chooser, first, store, scope, question, room, mask)
    return _beside(chooser, summaries) if summaries else None


def _choose(
    chooser: Chooser,
    selection: Selection,
    store: Store,
    scope: Scope,
    question: tuple[Embedder, "NDArray[np.float32]"],
    room: int,
    mask: Redactor,
) -> dict[tuple[str, str | None], Piece]:
    """Return the summaries that fit a question best, by instance and conversation.

    :param selection: the messages printed beside them.
    """
    embedder, vector = question
    request = chooser.request
    printed = _conversations([*selection.recalled, *selection.history])
    chosen = dict[tuple[str, str | None], Piece]()
    best = best_summaries(Summaries(store).read(scope), embedder.model_id, vector, printed)
    for summary in best:
        key = (summary.instance, summary.conversation_id)
        wider = {**chosen, key: Piece(_line(summary, mask))}
        shown = turns.history_turns(replace(request, summaries=_in_order(wider)), (), ())
        if count_turns(shown, request.format, chooser.meter) <= room:
            chosen = wider
    return chosen


def _beside(chooser: Chooser, summaries: dict[tuple[str, str | None], Piece]) -> Chosen:
    """Select again beside summaries, then drop summaries of conversations that are printed."""
    request = replace(chooser.request, summaries=_in_order(summaries))
    selection, used, notes = replace(chooser, request=request).choose()
    printed = _conversations([*selection.recalled, *selection.history])
    left = {key: piece for key, piece in summaries.items() if key not in printed}
    if len(left) < len(summaries):
        request = replace(request, summaries=_in_order(left))
        used = chooser.printed(request, selection)
    return request, selection, used, notes


def _conversations(printed: Iterable[Candidate]) -> set[tuple[str, str | None]]:
    """Return the instances and conversations of candidates."""
    return {(each.message.instance, each.message.conversation_id) for each in printed}


def _in_order(chosen: dict[tuple[str, str | None], Piece]) -> tuple[Piece, ...]:
    """Return summaries in order of their dates."""
    return tuple(sorted(chosen.values(), key=lambda piece: piece.text))


def _line(summary: Summary, mask: Redactor) -> str:
    day = datetime.fromtimestamp(summary.first_at / 1000, UTC).astimezone()
    return f"{day:%Y-%m-%d}: {mask.text(summary.partition, summary.text)}"
