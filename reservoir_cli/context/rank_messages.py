"""Gather the candidates of a question: score its scope, and decide whether any message fits."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context.budget import Meter
from reservoir_cli.context.earlier_orders import leave_out_orders
from reservoir_cli.context.history import HistorySource, embed_talk, read_running_talk
from reservoir_cli.context.prompts_that_ask_nothing import asks_nothing
from reservoir_cli.context.request import ContextRequest
from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Filter, Scope, to_epoch_ms
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.asked_before import find_echoes
from reservoir_cli.retrieval.check_corrections import correction_notes, drop_known_words
from reservoir_cli.retrieval.question_dates import score_dates
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.recall_floor import floor_property, recall_floor
from reservoir_cli.retrieval.sessions import thread_positions
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.search.candidates import Candidates, QuestionVector, Talk
from reservoir_cli.storage.store import Store


class Inputs(NamedTuple):
    """What all steps of building a context use; without an embedder, words and recency rank."""

    request: ContextRequest
    settings: Settings
    store: Store
    embedder: Embedder | None
    meter: Meter
    redactor: Redactor


class Ranking(NamedTuple):
    """The messages of a scope, ranked for a question."""

    scope: Scope
    scored: Scored
    thread_positions: ranking.Positions  # shape (n,), its position in its conversation
    sessions: NDArray[np.int32]  # shape (n,), the number of each message's session
    running: NDArray[np.bool_]  # shape (n,), whether a message belongs to the running session
    answered: tuple[int, ...]  # the newest asking of the question that got an answer, and replies
    turns: NDArray[np.bool_]  # shape (n,), whether it may be a turn of history
    floor: float  # the relevance below which no message fits the question
    nothing_fits: bool
    notes: tuple[str, ...]  # for the user, on misspelt words and days without messages


def rank_messages(
    inputs: Inputs,
    history: HistorySource | None,
    vector: QuestionVector | None,
    where: Filter,
    *,
    explain: bool,
    without: Collection[int],
) -> Ranking:
    """Rank the messages that a question may recall; see :func:`build_context.build_context`."""
    request, settings, store = inputs.request, inputs.settings, inputs.store
    instance = history.instance if history else None
    scope = _recall_scope(request, settings, instance)
    talk = _preceding_talk(inputs, instance)
    gathered = store.gather(scope, instance, request.query, vector, where, talk)
    # Everything before the cosines are needed happens while the question is embedded.
    candidates = drop_known_words(gathered.candidates, inputs.embedder)
    if request.exclude_conversation:
        session = Filter(session=request.exclude_conversation)
        candidates = candidates.without(store.find(scope, session))
    if without:
        candidates = candidates.without(Keys((request.partition, number) for number in without))
    now, local = _reference_time(request, candidates), request.now.astimezone()
    dates, empty_days = score_dates(request.query, local, candidates.created_at)
    words = ranking.score_words(candidates, settings)
    floor = floor_in_force(settings, store, inputs.embedder)
    candidates = store.compare(gathered._replace(candidates=candidates))
    by_session = ranking.sessions_of(candidates, settings)
    echoes = find_echoes(store, scope, candidates, by_session, request.query)
    scored = ranking.score(
        candidates,
        settings,
        now,
        ranking.trust_dates(dates, candidates, echoes),
        words,
        question=request.query,
        echoes=echoes,
        parts=explain,
    )
    if echoes is not None and len(echoes.older):
        older = candidates.ids[echoes.older].tolist()
        candidates = candidates.without(Keys((request.partition, number) for number in older))
        scored = scored._replace(candidates=candidates)
    scored = ranking.leave_out_others(scored)
    own, grouped = scored.candidates.own, ranking.sessions_of(candidates, settings)
    numbers = np.asarray(grouped.to_candidate_order(grouped.number))
    if request.in_session and not request.asks:
        scored = leave_out_orders(scored, numbers, store, scope)
    running = np.zeros(len(own), bool)
    if history and history.runs:
        running = own & ranking.is_running(scored.candidates, grouped)
    is_asked = bool(request.query.strip()) and scored.candidates.count_matching() > 0
    return Ranking(
        scope,
        scored,
        thread_positions(candidates),
        numbers,
        running,
        echoes.answered if echoes else (),
        own if history and history.whole else running,
        floor,
        is_asked and scored.relevance < floor,
        (*correction_notes(candidates, store, scope, inputs.redactor), *empty_days),
    )


def floor_in_force(settings: Settings, store: Store, embedder: Embedder | None) -> float:
    """Return the relevance below which no message fits a question."""
    model_id = embedder.model_id if embedder else None
    return recall_floor(settings, model_id, store.get_property(floor_property(model_id)))


def _preceding_talk(inputs: Inputs, instance: str | None) -> Talk | None:
    """Return the messages just before the question; in ``recall``, of the reader's session."""
    request, settings = inputs.request, inputs.settings
    if not settings.follow or not request.query.strip():
        return None
    if request.talk:
        return embed_talk(request.talk, request.query, inputs.embedder, asks_nothing)
    if request.recall_only and not request.exclude_conversation:
        return None
    return read_running_talk(
        inputs.store,
        Scope(request.partition, instance),
        request.query,
        request.now,
        settings.session_gap,
        request.exclude_conversation,
        asks_nothing,
    )


def _recall_scope(request: ContextRequest, settings: Settings, instance: str | None) -> Scope:
    narrow = settings.recall_scope == "instance"
    if settings.recall_scope == "auto":
        narrow = request.instance is not None
    return Scope(request.partition, instance if narrow else None)


def _reference_time(request: ContextRequest, candidates: Candidates) -> int:
    """Return the time that ages are relative to: in ``recall`` that of the newest message."""
    if request.recall_only and len(candidates.created_at):
        return int(candidates.created_at[-1])
    return to_epoch_ms(request.now)
