"""Leave out earlier orders and their replies, for a prompt that is an order itself.

What was answered to ``run the tests`` in another session says nothing in this one.
"""

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.prompts_that_ask_nothing import is_order
from reservoir_cli.context.standing_instructions import is_standing
from reservoir_cli.messages import Role, Scope
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.sessions import thread_positions
from reservoir_cli.storage.store import Store

_READ = 32  # so many of the most similar messages are examined
_LONGEST = 12  # words of an order or reply; a longer reply may contain a fact
_STEPS = 4  # how many messages before a reply its order may be, because of calls of tools


def leave_out_orders(
    scored: Scored, sessions: NDArray[np.int32], store: Store, scope: Scope
) -> Scored:
    """Return the scores without short orders and their short replies.

    :param sessions: shape (n,), the number of each message's session.
    """
    candidates, turns = scored.candidates, {}
    positions = thread_positions(candidates)
    by_thread = np.argsort(positions)
    for at in _most_similar(scored):
        before = by_thread[max(0, positions[at] - _STEPS) : positions[at] + 1]
        turns[at] = before[sessions[before] == sessions[at]]
    if not turns:
        return scored
    ids = candidates.ids[np.concatenate(list(turns.values()))]
    rows = {row.id: row for row in store.by_id(list(dict.fromkeys(ids.tolist())), scope)}

    def is_ordered(turn: NDArray[np.intp]) -> bool:
        messages = (rows.get(number) for number in candidates.ids[turn[::-1]].tolist())
        asked = next((row for row in messages if row and row.role is Role.USER), None)
        return asked is not None and is_order(asked.content) and not is_standing(asked)

    orders = np.array([at for at, turn in turns.items() if is_ordered(turn)], np.intp)
    fit = scored.fit.copy()
    fit[orders] = 0.0
    return ranking.leave_out(scored, orders)._replace(fit=fit)


def _most_similar(scored: Scored) -> list[int]:
    """Return the positions of short messages among those most similar to prompt or talk."""
    similarities = [scored.similarity] if scored.talk is None else [scored.similarity, scored.talk]
    best = {at for values in similarities for at in ranking.best(values, _READ).tolist()}
    return [at for at in sorted(best) if scored.candidates.terms[at] <= _LONGEST]
