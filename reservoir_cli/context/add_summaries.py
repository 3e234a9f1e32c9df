"""Add summaries of conversations that are not printed otherwise."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reservoir_cli.context import finished_window
from reservoir_cli.context.candidate import Candidate, Selection
from reservoir_cli.context.rank_messages import Inputs, Ranking
from reservoir_cli.context.render.formats import count_turns
from reservoir_cli.context.request import ContextRequest, Piece
from reservoir_cli.context.shrink_to_fit import Chooser
from reservoir_cli.context.window_constants import SUMMARIES_SHARE
from reservoir_cli.messages import EVERYTHING, Filter, Scope, from_epoch_ms
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.summaries import Summaries, Summary
from reservoir_cli.util.clock import local_day

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A request, its selection, the tokens of that as printed, and notes for the user.
Chosen = tuple[ContextRequest, Selection, int, tuple[str, ...]]
#: The least cosine of a summary with the question, as a share of the recall floor.
_FLOOR_SHARE = 0.7


def select_with_summaries(
    chooser: Chooser,
    inputs: Inputs,
    ranking: Ranking,
    vector: "NDArray[np.float32]",
    where: Filter,
    without: Collection[int],
) -> Chosen | None:
    """Select messages and summaries of other conversations; ``None`` if there are none."""
    allowed = _allowed_summaries(inputs.store, ranking.scope, where, without)
    if not allowed:
        return None
    room = min(inputs.settings.max_episode_tokens, int(chooser.budget.history * SUMMARIES_SHARE))
    smaller = chooser.budget._replace(history=chooser.budget.history - room)
    without_summaries, _, _ = replace(chooser, budget=smaller).choose()
    printed = _conversations([*without_summaries.recalled, *without_summaries.history])
    assert inputs.embedder  # it made the vector
    comparable = [row for row in allowed if row.model_id == inputs.embedder.model_id]
    best = _best_summaries(comparable, vector, printed, _FLOOR_SHARE * ranking.floor)
    summaries = _choose_that_fit(chooser, best, room, inputs.redactor)
    return _select_again(chooser, summaries) if summaries else None


def _allowed_summaries(
    store: Store, scope: Scope, where: Filter, without: Collection[int]
) -> list[Summary]:
    """Return summaries, which may quote any message, if all of theirs may be printed."""
    summaries = Summaries(store).read(scope)
    if not summaries or (where == EVERYTHING and not without):
        return summaries
    matching = store.ids_by_conversation(scope, where)
    sizes = {entry.name: entry.messages for entry in store.conversations(scope)}
    left_out = set(without)
    return [
        summary
        for summary in summaries
        for name in [(summary.partition, summary.instance, summary.conversation_id)]
        if len(set(matching.get(name, ())) - left_out) == sizes.get(name)
    ]


def _best_summaries(
    summaries: Sequence[Summary],
    vector: "NDArray[np.float32]",
    printed: Collection[tuple[str, str | None]],
    least: float,
) -> list[Summary]:
    """Return the summaries of conversations that are not printed, the most similar first."""
    cosines = [
        (float(summary.vector @ vector), summary)
        for summary in summaries
        if summary.vector is not None and (summary.instance, summary.conversation_id) not in printed
    ]
    similar = [pair for pair in cosines if pair[0] >= least]
    return [summary for _, summary in sorted(similar, key=lambda pair: -pair[0])]


def _choose_that_fit(
    chooser: Chooser, best: Sequence[Summary], room: int, redactor: Redactor
) -> dict[tuple[str, str | None], Piece]:
    """Return the best summaries that a number of tokens holds, by instance and conversation."""
    chosen = dict[tuple[str, str | None], Piece]()
    for summary in best:
        key = (summary.instance, summary.conversation_id)
        extended = {**chosen, key: Piece(_line(summary, redactor))}
        summary_turns = finished_window.history_turns(
            chooser.request._replace(summaries=_in_order(extended)), (), ()
        )
        if count_turns(summary_turns, chooser.request.format, chooser.meter) <= room:
            chosen = extended
    return chosen


def _select_again(chooser: Chooser, summaries: dict[tuple[str, str | None], Piece]) -> Chosen:
    """Select again beside summaries, then drop summaries of conversations that are printed."""
    request = chooser.request._replace(summaries=_in_order(summaries))
    selection, used, notes = replace(chooser, request=request).choose()
    printed = _conversations([*selection.recalled, *selection.history])
    remaining = {key: piece for key, piece in summaries.items() if key not in printed}
    if len(remaining) < len(summaries):
        request = request._replace(summaries=_in_order(remaining))
        used = chooser.count_printed(request, selection)
    return request, selection, used, notes


def _conversations(printed: Iterable[Candidate]) -> set[tuple[str, str | None]]:
    return {
        (candidate.message.instance, candidate.message.conversation_id) for candidate in printed
    }


def _in_order(chosen: dict[tuple[str, str | None], Piece]) -> tuple[Piece, ...]:
    return tuple(sorted(chosen.values(), key=lambda piece: piece.text))


def _line(summary: Summary, redactor: Redactor) -> str:
    day = local_day(from_epoch_ms(summary.first_at))
    return f"{day}: {redactor.text(summary.partition, summary.text)}"
