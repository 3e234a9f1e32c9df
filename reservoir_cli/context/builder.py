"""The core verb: from a question to a context window."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context import budget as budgets
from reservoir_cli.context import excerpts, passages, summaries, turns
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.layout import Costs
from reservoir_cli.context.render.window import (
    ContextWindow,
    count_frame,
    count_framed,
    count_turns,
    written,
)
from reservoir_cli.context.selection import NEWEST_SHARE, Rules, select
from reservoir_cli.context.tiers import ages, fillers, not_printable, tiers_of, unread
from reservoir_cli.context.types import (
    PROVIDERS,
    Candidate,
    ContextRequest,
    Piece,
    Scores,
    Selection,
    Span,
    Tier,
    TokenBudget,
)
from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Role, Scope, StoredMessage, plain_text, to_epoch_ms
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import filters, ranking, sessions
from reservoir_cli.retrieval.dates import date_scores, find_dates
from reservoir_cli.retrieval.follow import running_talk
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.retrieval.relevance import floor_property, recall_floor
from reservoir_cli.retrieval.respelling import respelling_notes, without_known_words
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.keys import Keys
from reservoir_cli.storage.records import Candidates, Filter, Talk
from reservoir_cli.tokens import AnthropicCounter, counter_id
from reservoir_cli.util.languages import is_about_speaker

#: A counter that asks its provider is asked so often, aims at this share of the budget, and is
#: content with this one.
_REQUESTS, _AIM, _CLOSE = 3, 0.98, 0.95
#: With ``enough``, messages of less similarity are not recalled.
_ENOUGH = 0.4


def build_context(
    request: ContextRequest,
    settings: Settings,
    store: Store,
    embedder: Embedder | None,
    meter: Meter,
    *,
    window: int,
    reserve: int,
    mask: Redactor,
    where: Filter = Filter(),  # noqa: B008 - it is frozen
    explain: bool = False,
    without: Collection[int] = (),
) -> ContextWindow:
    """Choose the best context that a token budget can buy.

    :param embedder: ``None`` to go by full text and recency alone.
    :param window: tokens the model reads and writes at once.
    :param reserve: tokens kept for the answer.
    :param where: consider only stored messages that pass.
    :param mask: hides the secrets of messages before they are weighed and printed.
    :param explain: tell what each similarity is made of.
    :param without: ids of messages that are left out; scores stay as they are.
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
    vector = _vector(embedder, request.query, store)
    embedded = perf_counter()
    fill = settings.fill if settings.fill is not None else request.budget is not None
    with store.snapshot():
        instance = None if request.recall_only else _history_instance(request, store)
        scope = _recall_scope(request, settings, instance)
        talk = _talk(request, settings, store, instance, vector)
        found = store.candidates(scope, instance, request.query, vector, where, talk)
        found = without_known_words(found, embedder)
        if request.exclude_conversation:
            session = Filter(session=request.exclude_conversation)
            found = found.without(store.find(scope, session))
        if without:
            found = found.without(Keys((request.partition, number) for number in without))
        scored = ranking.score(
            found,
            settings,
            _time_of_asking(request, found),
            _date_scores(request, found),
            parts=explain,
        )
        passing = filters.passing(found)
        in_threads = sessions.places_in_threads(found)[passing]
        scored = filters.keep(scored, passing)
        respelt = respelling_notes(found, store, scope, mask)
        found = scored.candidates
        floor = _floor(settings, store, embedder)
        silent = _is_silent(scored, request, floor)
        fill = fill and not silent
        room = int(budget.history / meter.factor) if fill else 0
        rules = _rules(settings, meter, silent=silent)
        hidden, unasked = not_printable(scored, request.query, settings, rules, store, scope)
        tiers = tiers_of(scored, bool(request.query.strip()), settings, store, scope, hidden)
        if silent:
            tiers = {place: tier for place, tier in tiers.items() if tier is Tier.RECENT}
        excerpt_over = settings.excerpt_over if settings.excerpts == "auto" else None
        chosen = {*tiers, *unasked, *fillers(scored, room, excerpt_over)}
        if settings.enough:
            chosen = {place for place in chosen if _is_enough(scored, tiers, place)}
        pins = set() if silent or request.recall_only else _pins(found, store, scope)
        chosen |= pins
        stored = store.with_partners([int(each) for each in found.ids[sorted(chosen)]], scope)
        _, known = found.places(np.array([row.id for row in stored], np.int64))
        stored = [row for row, passes in zip(stored, known, strict=True) if passes]
        parts, cosines = _parts(stored, excerpt_over, store, vector)
        titles = _titles(stored, scope, store, mask)
    rows = _masked(_recounted(stored, store, meter), mask, meter)
    parts = passages.as_printed(parts, stored, rows)
    read = perf_counter()
    limit = settings.max_tool_result_tokens
    of_asker = is_about_speaker(request.query)
    pool = _pool(
        rows, scored, in_threads, tiers, pins, limit, meter, titles, parts, cosines, of_asker
    )
    not_reached = len(found.ids) - len(pool) if fill else 0
    too_large = unread(scored, pool, room)
    chooser = _Chooser(request, pool, budget, rules, meter, not_reached, too_large, silent)
    selection, used, counting = chooser.choose()
    if settings.episodes == "auto" and embedder and vector is not None and not silent:
        first, _, _ = replace(chooser, budget=summaries.held_back(budget, settings)).choose()
        chosen_summaries = summaries.choose(
            request,
            first,
            store,
            scope,
            (embedder, vector),
            budget=budget,
            settings=settings,
            meter=meter,
            mask=mask,
        )
        if chosen_summaries:
            request, selection, used, counting = chooser.beside(chosen_summaries)
    request, used = chooser.explaining(request, selection, used)
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
        scored.relevance,
        silent,
        (*respelt, *_best_left_out(selection, request, budget, meter)),
        floor,
    )


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Selections from one pool, counted as they are printed."""

    request: ContextRequest
    pool: Sequence[Candidate]
    budget: TokenBudget
    rules: Rules
    meter: Meter
    not_reached: int
    unread: set[int]
    silent: bool

    def choose(self) -> tuple[Selection, int, tuple[str, ...]]:
        """Return the selection, the tokens of the printed window, and notes for the user."""
        if isinstance(self.meter.counter, AnthropicCounter):
            return self._by_requests(self.meter.counter)
        return (*self._by_sums(self.budget.history), ())

    def beside(
        self, chosen: dict[tuple[str, str | None], Piece]
    ) -> tuple[ContextRequest, Selection, int, tuple[str, ...]]:
        """Select once more beside summaries; those of what is printed then are taken out."""
        request = replace(self.request, summaries=summaries.in_order(chosen))
        selection, used, notes = replace(self, request=request).choose()
        printed = summaries.conversations([*selection.recalled, *selection.history])
        left = {key: piece for key, piece in chosen.items() if key not in printed}
        if len(left) < len(chosen):
            request = replace(request, summaries=summaries.in_order(left))
            used = _printed(request, selection.recalled, selection.history, self.budget, self.meter)
        return request, selection, used, notes

    def explaining(
        self, request: ContextRequest, selection: Selection, used: int
    ) -> tuple[ContextRequest, int]:
        """Add the line that explains excerpts if there is room left for it, and count again."""
        counted_here = not isinstance(self.meter.counter, AnthropicCounter)
        if not counted_here or all(message.spans is None for message in selection.recalled):
            return request, used
        explained = replace(request, excerpts_explained=True)
        kept = selection.recalled, selection.history
        more = _printed(explained, *kept, self.budget, self.meter)
        return (explained, more) if more <= self.budget.history else (request, used)

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
        selection = select(
            self.pool,
            query=self.request.query,
            budget=room,
            costs=_costs(self.request, self.budget, self.meter),
            rules=self.rules,
            not_reached=self.not_reached,
            unread=self.unread,
        )
        if not self.silent:
            return selection
        # A recent reply without its question is printed among the recalled, and stays.
        recent = (each for each in selection.recalled if each.tier is Tier.RECENT)
        return replace(selection, recalled=tuple(recent))

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
        return everything or counted >= _CLOSE * limit

    def _body(self, selection: Selection) -> dict[str, Any]:
        """Count the whole request, for a counter that can count nothing smaller."""
        said = turns.history_turns(self.request, selection.recalled, selection.history)
        window = [*turns.fixed_turns(self.request), *said, *turns.current_turn(self.request)]
        body = written(window, "anthropic", None, 1)
        assert isinstance(body, dict)
        return body


def _vector(embedder: Embedder | None, question: str, store: Store) -> NDArray[np.float32] | None:
    if embedder is None or not question.strip():
        return None
    return store.beside(question, lambda: embedder.encode_query(question))


def _best_left_out(
    selection: Selection, request: ContextRequest, budget: TokenBudget, meter: Meter
) -> tuple[str, ...]:
    """Name the best match if nothing of it fits, and a budget that holds it."""
    lost = [
        drop.candidate for drop in (*selection.dropped, *selection.passed_over) if drop.for_room
    ]
    best = max(lost, key=_rank, default=None)
    kept = max(map(_rank, (*selection.recalled, *selection.history)), default=(0.0, 0))
    if best is None or best.scores.similarity <= 0 or _rank(best) < kept:
        return ()
    if best.message.tool_calls or best.message.role is Role.TOOL:  # its results need room, too
        return ()
    costs = _costs(request, budget, meter)
    alone = costs.recalled(best) + costs.recalled_title + costs.day
    alone += costs.left_out(best.message.id)
    needed = sum(budget.sections.values()) + math.ceil(alone / (1 - NEWEST_SHARE))
    size = f"#{best.message.id} ({meter.scaled(best.message.tokens):,} tokens)"
    budget_hint = f"--budget {math.ceil(needed / 100) * 100:,}"
    return (f"the best match, {size}, does not fit; {budget_hint} holds it",)


def _rank(candidate: Candidate) -> tuple[float, int]:
    return candidate.scores.priority, candidate.message.id


def _interpolated(points: Sequence[tuple[float, float]], aim: float) -> float:
    """Return the estimate at which the provider would count this many tokens.

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


def _rules(settings: Settings, meter: Meter, *, silent: bool) -> Rules:
    return Rules(
        "tiers" if silent else settings.order,
        settings.min_history_messages,
        settings.min_cosine,
        settings.include_system,
        # Three requests come near to the budget only if all of it can be used.
        to_the_last=isinstance(meter.counter, AnthropicCounter),
    )


def _section_tokens(request: ContextRequest, meter: Meter) -> dict[Section, int]:
    """Tokens of each part that the budget does not prune; the frame goes with the question."""
    given = [*turns.fixed_turns(request), *turns.current_turn(request)]
    sections = {
        section: count_turns(
            [each for each in given if each.section is section], request.format, meter
        )
        for section in dict.fromkeys(each.section for each in given)
    }
    if frame := count_frame(request.format, meter):
        sections[Section.CURRENT] = sections.get(Section.CURRENT, 0) + frame
    return sections


def _capped(request: ContextRequest, settings: Settings, meter: Meter) -> ContextRequest:
    """Return the request without the pieces that exceed the cap of their section."""

    def count(pieces: Sequence[Turn]) -> int:
        return count_turns(pieces, request.format, meter)

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
    first = count_turns(turns.knowledge_turn(request.knowledge), request.format, meter)
    if first > settings.max_knowledge_tokens:
        notes.append(
            f"the first piece of knowledge alone takes {first:,} tokens, more than "
            f"max_knowledge_tokens ({settings.max_knowledge_tokens:,})"
        )
    return tuple(notes)


def _history_instance(request: ContextRequest, store: Store) -> str:
    """Return the instance of history: the one named, the partition's own, or its newest."""
    if request.instance is not None:
        return request.instance
    if store.last(Scope(request.partition, request.partition), 1, Filter(documents=False)):
        return request.partition
    return store.newest_instance(request.partition) or request.partition


def _talk(
    request: ContextRequest,
    settings: Settings,
    store: Store,
    instance: str | None,
    vector: NDArray[np.float32] | None,
) -> Talk | None:
    """Return what was said just before the question; in ``recall``, in the reader's session."""
    if not settings.follow or not request.query.strip():
        return None
    if request.recall_only and not request.exclude_conversation:
        return None
    return running_talk(
        store,
        Scope(request.partition, instance),
        request.query,
        vector,
        request.now,
        settings.session_gap,
        request.exclude_conversation,
    )


def _time_of_asking(request: ContextRequest, found: Candidates) -> int:
    """Return what ages are counted from; in ``recall`` that is no clock but the newest message."""
    if request.recall_only and len(found.created_at):
        return int(found.created_at[-1])
    return to_epoch_ms(request.now)


def _recall_scope(request: ContextRequest, settings: Settings, instance: str | None) -> Scope:
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


def _floor(settings: Settings, store: Store, embedder: Embedder | None) -> float:
    """Return the relevance below which nothing is recalled."""
    model_id = embedder.model_id if embedder else None
    return recall_floor(settings, model_id, store.get_property(floor_property(model_id)))


def _is_silent(scored: Scored, request: ContextRequest, floor: float) -> bool:
    """Return whether no message fits the question well enough for any to be recalled."""
    if not request.query.strip() or not len(scored.candidates.ids):
        return False
    return scored.relevance < floor


def _is_enough(scored: Scored, tiers: dict[int, Tier], place: int) -> bool:
    """Return whether a message is recent or similar enough to be recalled."""
    return tiers.get(place) is Tier.RECENT or bool(scored.similarity[place] >= _ENOUGH)


def _pins(found: Candidates, store: Store, scope: Scope) -> set[int]:
    """Return the positions of pinned messages."""
    numbers = [key.id for key in store.find(scope, Filter(pinned=True))]
    places, _ = found.places(np.array(numbers, np.int64))
    return set(places.tolist())


def _titles(
    rows: Sequence[StoredMessage], scope: Scope, store: Store, mask: Redactor
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


def _masked(rows: list[StoredMessage], mask: Redactor, meter: Meter) -> list[StoredMessage]:
    """Rows as they may be printed, counted as they then are."""
    shown = mask.messages(rows)
    return [
        each if each is row else replace(each, tokens=meter.counter.count(plain_text(each)))
        for row, each in zip(rows, shown, strict=True)
    ]


def _parts(
    rows: Sequence[StoredMessage],
    excerpt_over: int | None,
    store: Store,
    vector: NDArray[np.float32] | None,
) -> tuple[dict[int, list[Span]], dict[int, tuple[float, ...]]]:
    """Return the passages of each long message, and the cosines of those that have vectors.

    :param excerpt_over: only of messages with more tokens; ``None`` for none at all.
    :param vector: of the question; ``None`` to go by words alone.
    """
    if excerpt_over is None:
        return {}, {}
    long = [row for row in rows if excerpts.is_long(row, excerpt_over)]
    parts: dict[int, list[Span]] = {}
    cosines: dict[int, tuple[float, ...]] = {}
    if vector is not None:
        for key, stored in store.passages([row.key for row in long]).items():
            parts[key.id], cosines[key.id] = passages.cosines(stored, vector)
    for row in long:
        if row.id not in parts:
            parts[row.id] = passages.cut(row.content, excerpts.Outline(row.content).breaks)
    return parts, cosines


def _pool(
    rows: list[StoredMessage],
    scored: Scored,
    in_threads: ranking.Places,
    tiers: dict[int, Tier],
    pins: set[int],
    max_result_tokens: int,
    meter: Meter,
    titles: Mapping[tuple[str, str | None], str],
    parts: Mapping[int, Sequence[Span]],
    cosines: Mapping[int, tuple[float, ...]],
    about_asker: bool,
) -> list[Candidate]:
    """Rows with their scores; long tool results are cut."""
    found = scored.candidates
    places, _ = found.places(np.array([row.id for row in rows], np.int64))
    places_from_newest = ages(found)
    limit = int(max_result_tokens / meter.factor)
    asked = {(row.instance, row.trace_id) for row in rows if row.role is Role.USER}
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
            _parts_of(scored, place),
        )
        cut = max_result_tokens > 0 and row.role is Role.TOOL and row.tokens > limit
        pool.append(
            Candidate(
                turns.shorten_result(row, limit, meter.counter) if cut else row,
                tiers.get(place, Tier.OLDER),
                place not in tiers and place not in pins,
                scores,
                int(places_from_newest[place]) if found.own[place] else None,
                cut,
                place=int(in_threads[place]),
                title=titles.get((row.instance, row.conversation_id)),
                replies=row.role is Role.ASSISTANT and (row.instance, row.trace_id) in asked,
                about_asker=about_asker,
                parts=tuple(parts.get(row.id, ())),
                cosines=cosines.get(row.id, ()),
                pinned=place in pins,
            )
        )
    return pool


def _parts_of(scored: Scored, place: int) -> dict[str, float]:
    """Return what the similarity of a message is made of, if that was asked for."""
    if scored.parts is None:
        return {}
    return dict(zip(ranking.PARTS, scored.parts[:, place].tolist(), strict=True))


def _costs(request: ContextRequest, budget: TokenBudget, meter: Meter) -> Costs:
    """Return upper bounds of a message's tokens, as a recalled line and as a turn."""
    count = cache(meter.counter.count)

    def said(message: StoredMessage, shown: str) -> int:
        """Tokens of a message's text, counted once more if it is not printed as it was stored."""
        return message.tokens if shown == plain_text(message) else count(shown)

    def recalled(each: Candidate) -> int:
        line = turns.recalled_line(each.message, each.spans, numbered=request.recall_only)
        role, shown = line.split(": ", 1)
        framing = f"\n{turns.GAP}\n{role}: \n{turns.title_line(each)}"
        return meter.scaled(said(each.message, shown) + count(framing))

    def history(each: Candidate) -> int:
        message = each.message
        framing = f"{message.role}: \n\n" + " ".join(call.id for call in message.tool_calls)
        framing += message.tool_call_id or ""
        tokens = said(message, turns.defused(plain_text(message))) + count(framing)
        return meter.scaled(tokens + budgets.PER_MESSAGE)

    return Costs(
        recalled=_once(recalled),
        history=_once(history),
        day=meter.count("2026-01-01\n"),
        recalled_title=meter.count(
            f"{turns.RECALLED_TITLE}\n{turns.RECALLED_NOTE}\n{request.recall_note}\n---\n",
            messages=1,
        ),
        printed=lambda recalled, run: _printed(request, recalled, run, budget, meter),
        left_out=lambda answer: meter.count(f"{turns.answer_left_out(answer)}\n"),
        # Of a recall trials take a tenth of the time, and fill one more token in a thousand.
        trials=1 if request.recall_only else 32,
    )


def _once(cost: Callable[[Candidate], int]) -> Callable[[Candidate], int]:
    """Return the same function, which is asked once for each form of a message."""
    known: dict[tuple[int, tuple[Span, ...] | None], int] = {}

    def cost_once(candidate: Candidate) -> int:
        form = candidate.message.id, candidate.spans
        if form not in known:
            known[form] = cost(candidate)
        return known[form]

    return cost_once


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
    alone = count_turns(shown, request.format, meter)
    if request.format in PROVIDERS:
        return alone
    window = [*turns.fixed_turns(request), *shown, *turns.current_turn(request)]
    whole = count_framed(window, request.format, meter)
    return max(alone, whole - sum(budget.sections.values()))
