"""The core verb: from a question to a context window."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context import budget as budgets
from reservoir_cli.context import render, turns
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.layout import Costs
from reservoir_cli.context.render import ContextWindow
from reservoir_cli.context.selection import Rules, select
from reservoir_cli.context.tiers import ages, fillers, not_printable, tiers_of, unread
from reservoir_cli.context.types import (
    PROVIDERS,
    Candidate,
    ContextRequest,
    Scores,
    Selection,
    Tier,
    TokenBudget,
)
from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Role, Scope, StoredMessage, plain_text, to_epoch_ms
from reservoir_cli.redaction import Mask
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Candidates, Filter
from reservoir_cli.tokens import AnthropicCounter, counter_id

#: A counter that asks its provider is asked so often, aims at this share of the budget, and is
#: content with this one.
_REQUESTS, _AIM, _ENOUGH = 3, 0.98, 0.95


def build_context(
    request: ContextRequest,
    settings: Settings,
    store: Store,
    embedder: Embedder | None,
    meter: Meter,
    *,
    window: int,
    reserve: int,
    mask: Mask,
) -> ContextWindow:
    """Choose the best context that a token budget can buy.

    :param embedder: ``None`` to go by full text and recency alone.
    :param window: tokens the model reads and writes at once.
    :param reserve: tokens kept for the answer.
    :param mask: hides the secrets of messages before they are weighed and printed.
    :raises UsageError: the budget does not fit the model.
    """
    started = perf_counter()
    asked, request = request, _capped(request, settings, meter)
    left_out = len(asked.knowledge + asked.episodes) - len(request.knowledge + request.episodes)
    budget = budgets.plan(
        window=window,
        reserve=reserve,
        limit=settings.max_context_tokens,
        budget=request.budget,
        model=request.model,
        sections=_section_tokens(request, meter),
        min_history=settings.min_history_tokens,
    )
    vector = embedder.encode_query(request.query) if embedder and request.query.strip() else None
    embedded = perf_counter()
    fill = settings.fill if settings.fill is not None else request.budget is not None
    with store.snapshot():
        instance = _history_instance(request, store)
        scope = _recall_scope(request, settings, instance)
        found = store.candidates(scope, instance, request.query, vector)
        scored = ranking.score(
            found,
            settings,
            to_epoch_ms(request.now),
            _date_scores(request, found),
        )
        hidden, unasked = not_printable(
            scored, request.query, settings, _rules(settings), store, scope
        )
        tiers = tiers_of(scored, bool(request.query.strip()), settings, store, scope, hidden)
        chosen = {*tiers, *unasked, *fillers(scored, budget.history if fill else 0)}
        rows = store.with_partners([int(each) for each in found.ids[sorted(chosen)]], scope)
        titles = _titles(rows, scope, store, mask)
    rows = _masked(_recounted(rows, store, meter), mask, meter)
    read = perf_counter()
    pool = _pool(rows, scored, tiers, settings.max_tool_result_tokens, meter, titles)
    too_large = unread(scored, pool, budget.history if fill else 0)
    chooser = _Chooser(
        request, pool, budget, settings, meter, len(found.ids) - len(pool) if fill else 0, too_large
    )
    selection, used, counting = chooser.choose()
    timings = {
        "embed": embedded - started,
        "read": read - embedded,
        "select": perf_counter() - read,
    }
    return ContextWindow(
        request,
        budget,
        selection,
        meter,
        {"partition": request.partition, "instance": instance, "recall": str(scope)},
        used,
        left_out,
        (*_cap_notes(request, left_out, settings, meter), *budget.notes, *counting),
        {name: 1000 * seconds for name, seconds in timings.items()},
    )


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Selections from one pool, counted as they are printed."""

    request: ContextRequest
    pool: Sequence[Candidate]
    budget: TokenBudget
    settings: Settings
    meter: Meter
    not_reached: int
    unread: set[int]

    def choose(self) -> tuple[Selection, int, tuple[str, ...]]:
        """The selection, its tokens as it is printed, and what a person should know of them."""
        if isinstance(self.meter.counter, AnthropicCounter):
            return self._by_requests(self.meter.counter)
        return (*self._by_sums(self.budget.history), ())

    def _by_sums(self, room: int) -> tuple[Selection, int]:
        """Select by this machine's counts.

        The account while packing adds up single messages; what is printed is counted as a whole,
        and should that ever be more, the account gets so much less.
        """
        target = room
        while True:
            selection = self._within(room)
            used = _printed(
                self.request, selection.recalled, selection.history, self.budget, self.meter
            )
            if used <= target or room <= 0:
                return selection, used
            room = max(0, room - (used - target))

    def _within(self, room: int) -> Selection:
        return select(
            self.pool,
            query=self.request.query,
            budget=room,
            costs=_costs(self.request, self.budget, self.meter),
            rules=_rules(self.settings),
            not_reached=self.not_reached,
            unread=self.unread,
        )

    def _by_requests(self, counter: AnthropicCounter) -> tuple[Selection, int, tuple[str, ...]]:
        """Select by the provider's counts: each one tells how far this machine's are off."""
        fixed = sum(self.budget.sections.values())
        limit = fixed + self.budget.history
        selection, estimate = self._by_sums(self.budget.history)
        tried: list[tuple[int, Selection]] = []
        points = [(0.0, 0.0)]
        while True:
            counted = counter.count_request(self._body(selection))
            tried.append((counted, selection))
            if len(tried) == _REQUESTS or self._is_enough(counted, limit, selection):
                break
            points.append((float(counted), float(fixed + estimate)))
            room = round(_interpolated(points, _AIM * limit)) - fixed
            selection, estimate = self._by_sums(max(0, room))
        fitting = [each for each in tried if each[0] <= limit]
        best = max if fitting else min
        counted, selection = best(fitting or tried, key=lambda each: each[0])
        return selection, max(0, counted - fixed), _exceeded(counted, limit)

    def _is_enough(self, counted: int, limit: int, selection: Selection) -> bool:
        """Whether another request could only make it worse."""
        if counted > limit:
            return not (selection.recalled or selection.history)
        left_out = (*selection.dropped, *selection.passed_over)
        everything = not self.not_reached and not any(each.for_room for each in left_out)
        return everything or counted >= _ENOUGH * limit

    def _body(self, selection: Selection) -> dict[str, Any]:
        """The whole request: this counter knows no other."""
        said = turns.history_turns(self.request, selection.recalled, selection.history)
        window = [*turns.fixed_turns(self.request), *said, *turns.current_turn(self.request)]
        body = render.written(window, "anthropic", None, 1)
        assert isinstance(body, dict)
        return body


def _interpolated(points: Sequence[tuple[float, float]], aim: float) -> float:
    """The estimate at which the provider may count so many tokens.

    :param points: the provider's count and this machine's estimate of each window, from (0, 0).
    """
    below = max(each for each in points if each[0] <= aim)
    above = min((each for each in points if each[0] > aim), default=None)
    if above is None:
        return below[1] * aim / below[0] if below[0] else aim
    share = (aim - below[0]) / (above[0] - below[0])
    return below[1] + share * (above[1] - below[1])


def _exceeded(counted: int, limit: int) -> tuple[str, ...]:
    if counted <= limit:
        return ()
    return (f"the provider counts {counted:,} tokens, {counted - limit:,} more than the budget",)


def _rules(settings: Settings) -> Rules:
    return Rules(
        settings.order,
        settings.min_history_messages,
        settings.min_cosine,
        settings.include_system,
    )


def _section_tokens(request: ContextRequest, meter: Meter) -> dict[Section, int]:
    """Tokens of each part that the budget does not prune; the frame goes with the question."""
    given = [*turns.fixed_turns(request), *turns.current_turn(request)]
    sections = {
        section: render.count_turns(
            [each for each in given if each.section is section], request.format, meter
        )
        for section in dict.fromkeys(each.section for each in given)
    }
    if frame := render.count_frame(request.format, meter):
        sections[Section.CURRENT] = sections.get(Section.CURRENT, 0) + frame
    return sections


def _capped(request: ContextRequest, settings: Settings, meter: Meter) -> ContextRequest:
    """The request without the pieces that are beyond their section's cap."""

    def count(pieces: Sequence[Turn]) -> int:
        return render.count_turns(pieces, request.format, meter)

    knowledge, episodes = request.knowledge, request.episodes
    cap = settings.max_knowledge_tokens
    while len(knowledge) > 1 and count(turns.knowledge_turn(knowledge)) > cap:
        knowledge = knowledge[:-1]
    while episodes and count(turns.episodes_turn(episodes)) > settings.max_episode_tokens:
        episodes = episodes[1:]
    return replace(request, knowledge=knowledge, episodes=episodes)


def _cap_notes(
    request: ContextRequest, left_out: int, settings: Settings, meter: Meter
) -> tuple[str, ...]:
    notes = []
    if left_out:
        noun = "piece" if left_out == 1 else "pieces"
        notes.append(f"{left_out} {noun} of knowledge and episodes left out: beyond the caps")
    first = render.count_turns(turns.knowledge_turn(request.knowledge), request.format, meter)
    if first > settings.max_knowledge_tokens:
        notes.append(
            f"the first piece of knowledge alone takes {first:,} tokens, more than "
            f"max_knowledge_tokens ({settings.max_knowledge_tokens:,})"
        )
    return tuple(notes)


def _history_instance(request: ContextRequest, store: Store) -> str:
    """The instance history comes from: the one named, the partition's own, or its newest."""
    if request.instance is not None:
        return request.instance
    if store.last(Scope(request.partition, request.partition), 1, Filter(documents=False)):
        return request.partition
    return store.newest_instance(request.partition) or request.partition


def _recall_scope(request: ContextRequest, settings: Settings, instance: str) -> Scope:
    """Where messages are looked for beyond the recent ones."""
    narrow = settings.recall_scope == "instance"
    if settings.recall_scope == "auto":
        narrow = request.instance is not None
    return Scope(request.partition, instance if narrow else None)


def _date_scores(request: ContextRequest, found: Candidates) -> ranking.Floats:
    """How near each message is to a date that the question names, in local time."""
    local = request.now.astimezone()
    spans = find_dates(request.query, local)
    return date_scores(spans, found.created_at, local.tzinfo or UTC)


def _titles(
    rows: Sequence[StoredMessage], scope: Scope, store: Store, mask: Mask
) -> dict[tuple[str, str | None], str]:
    """Titles of the conversations that messages are of, as they may be printed."""
    numbers = {each.conversation_id for each in rows if each.conversation_id}
    assert scope.partition is not None
    known = store.known_conversations(scope.partition, sorted(numbers)) if numbers else {}
    return {
        key: mask.text(scope.partition, about.title) for key, about in known.items() if about.title
    }


def _recounted(rows: list[StoredMessage], store: Store, meter: Meter) -> list[StoredMessage]:
    """Rows with counts by the counter in use; what another one counted is counted once more."""
    name = counter_id(meter.counter)
    stale = {each.id for each in rows if each.counter != name}
    if not stale:
        return rows
    rows = [
        replace(each, tokens=meter.counter.count(plain_text(each)), counter=name)
        if each.id in stale
        else each
        for each in rows
    ]
    # Kept for the next time if nobody else writes just now; never waited for.
    with suppress(StoreError), store.write(wait=0):
        store.update_counts({each.key: each.tokens for each in rows if each.id in stale}, name)
    return rows


def _masked(rows: list[StoredMessage], mask: Mask, meter: Meter) -> list[StoredMessage]:
    """Rows as they may be printed, counted as they then are."""
    shown = mask.messages(rows)
    return [
        each if each is row else replace(each, tokens=meter.counter.count(plain_text(each)))
        for row, each in zip(rows, shown, strict=True)
    ]


def _pool(
    rows: list[StoredMessage],
    scored: Scored,
    tiers: dict[int, Tier],
    max_result_tokens: int,
    meter: Meter,
    titles: Mapping[tuple[str, str | None], str],
) -> list[Candidate]:
    """Rows with their scores; long tool results are cut."""
    found = scored.candidates
    places, _ = found.places(np.array([row.id for row in rows], np.int64))
    places_from_newest = ages(found)
    in_threads = ranking.places_in_threads(found)
    limit = int(max_result_tokens / meter.factor)
    pool = []
    for row, place in zip(rows, places.tolist(), strict=True):
        cosine = float(found.cosine[place])
        scores = Scores(
            float(scored.similarity[place]),
            0.0 if np.isnan(cosine) else cosine,
            float(scored.bm25[place]),
            float(scored.recency[place]),
            float(scored.priority[place]),
            not np.isnan(cosine),
        )
        cut = max_result_tokens > 0 and row.role is Role.TOOL and row.tokens > limit
        pool.append(
            Candidate(
                turns.shorten_result(row, limit, meter.counter) if cut else row,
                tiers.get(place, Tier.OLDER),
                place not in tiers,
                scores,
                int(places_from_newest[place]) if found.own[place] else None,
                cut,
                place=int(in_threads[place]),
                title=titles.get((row.instance, row.conversation_id)),
            )
        )
    return pool


def _costs(request: ContextRequest, budget: TokenBudget, meter: Meter) -> Costs:
    """What a message costs as a recalled line and as a turn; an upper bound of each."""
    count = cache(meter.counter.count)

    @cache
    def said(message: StoredMessage, shown: str) -> int:
        """Tokens of a message's text, counted once more if it is not printed as it was stored."""
        return message.tokens if shown == plain_text(message) else count(shown)

    def recalled(each: Candidate) -> int:
        role, shown = turns.recalled_line(each.message).split(": ", 1)
        framing = f"\n{turns.GAP}\n{role}: \n{turns.title_line(each)}"
        return meter.scaled(said(each.message, shown) + count(framing))

    def history(each: Candidate) -> int:
        message = each.message
        framing = f"{message.role}: \n\n" + " ".join(call.id for call in message.tool_calls)
        framing += message.tool_call_id or ""
        tokens = said(message, turns.defused(plain_text(message))) + count(framing)
        return meter.scaled(tokens + budgets.PER_MESSAGE)

    return Costs(
        recalled=recalled,
        history=history,
        day=meter.count("2026-01-01\n"),
        recalled_title=meter.count(
            f"{turns.RECALLED_TITLE}\n{turns.RECALLED_NOTE}\n\n---\n", messages=1
        ),
        printed=lambda recalled, run: _printed(request, recalled, run, budget, meter),
        left_out=lambda answer: meter.count(f"{turns.answer_left_out(answer)}\n"),
    )


def _printed(
    request: ContextRequest,
    recalled: Sequence[Candidate],
    history: Sequence[Candidate],
    budget: TokenBudget,
    meter: Meter,
) -> int:
    """Tokens of recalled messages and history, as they are printed.

    A text is counted whole as well: its sections are rounded one by one, which may come to less.
    """
    shown = turns.history_turns(request, recalled, history)
    alone = render.count_turns(shown, request.format, meter)
    if request.format in PROVIDERS:
        return alone
    window = [*turns.fixed_turns(request), *shown, *turns.current_turn(request)]
    whole = render.count_framed(window, request.format, meter)
    return max(alone, whole - sum(budget.sections.values()))
