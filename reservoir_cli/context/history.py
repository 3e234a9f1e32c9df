"""Decide which messages may be turns of history: those of a running session, or an instance's.

All others are recalled under their day and title, however new they are.
"""

from datetime import timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.request import ContextRequest
from reservoir_cli.messages import Filter, Scope
from reservoir_cli.retrieval.sessions import group_sessions
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.store import Store

_SAID = Filter(documents=False)  # documents are never turns


class History(NamedTuple):
    """Where history comes from."""

    instance: str  # the one whose newest messages are recent
    whole: bool  # whether all of its messages may be turns, not only those of a running session
    runs: bool  # whether its newest session is still running


def find_history(request: ContextRequest, settings: Settings, store: Store) -> History | None:
    """Return where history comes from; ``None`` for a recall, which has no history.

    With an instance that the caller names, with ``order = "tiers"``, and without a question, all
    messages of the instance may be turns. Otherwise only those of a running session may.
    """
    if request.recall_only:
        return None
    partition, instance = request.partition, request.instance
    whole = instance is not None or settings.order == "tiers" or not request.query.strip()
    if instance is None and (whole or settings.recall_scope == "instance"):
        instance = _usual_instance(partition, store)
    newest = store.last(Scope(partition, instance), 1, _SAID)
    if not newest:
        return History(instance or partition, whole, runs=False)
    gap = timedelta(seconds=settings.session_gap)
    return History(newest[0].instance, whole, runs=request.now - newest[0].created_at <= gap)


def find_running(
    history: History | None, candidates: Candidates, session_gap: float
) -> NDArray[np.bool_]:
    """Return which candidates belong to the running session, shape (n,)."""
    own = candidates.own
    if history is None or not history.runs or not own.any():
        return np.zeros(len(own), bool)
    sessions = group_sessions(candidates, round(1000 * session_gap))
    number = sessions.to_candidate_order(sessions.number)
    return np.asarray(own & (number == number[np.flatnonzero(own)[-1]]))


def _usual_instance(partition: str, store: Store) -> str:
    if store.last(Scope(partition, partition), 1, _SAID):
        return partition
    return store.newest_instance(partition) or partition
