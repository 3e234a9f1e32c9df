"""Resolve a caller's options and the settings into a request with its limits."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context.budget import Meter, TokenBudget, plan, reserve_setting
from reservoir_cli.context.counter_factors import find_factor
from reservoir_cli.context.render.formats import count_turns, parse_format
from reservoir_cli.context.request import ContextRequest, Piece
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_time, clean_text
from reservoir_cli.settings.config import Config, recommended_budget, required_window
from reservoir_cli.settings.schema import Settings
from reservoir_cli.settings.setting import Value
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import TokenCounter, load_counter, storing_counter

#: Named texts: (name, text) pairs, or a mapping.
Pieces = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOptions:
    """Settings for one context, by name; ``None`` leaves a setting unchanged.

    :param reserve_tokens: tokens kept for the answer.
    :param recent_context_size: how many of the newest messages to consider.
    :param semantic_context_size: how many of the most similar messages to consider.
    :param similar_cosine: the lowest cosine that counts as similar, -1 to 1.
    :param recall_scope: ``instance``, ``partition`` or ``auto``.
    :param fill: add older messages until the budget is spent.
    :param order: choose by ``score`` or by ``tiers``.
    :param excerpts: whether long messages are cut to their best parts.
    :param profile: how many messages to consider, for a ``small`` or a ``large`` model.
    :param follow: rank with the messages just before the question while a session is running.
    :param recall_floor: recall nothing when no message fits the question this well; 0 is off.
    :param enough: recall only messages that are similar enough, even if there is room.
    :param similarity_weight: weight of similarity in the priority, 0 to 1.
    :param recency_weight: weight of recency in the priority, 0 to 1.
    :param excerpt_over: messages with more tokens are recalled by their best parts.
    """

    reserve_tokens: int | None = None
    recent_context_size: int | None = None
    semantic_context_size: int | None = None
    similar_cosine: float | None = None
    recall_scope: str | None = None
    fill: bool | None = None
    order: str | None = None
    excerpts: str | None = None
    profile: str | None = None
    follow: bool | None = None
    recall_floor: float | None = None
    enough: bool | None = None
    similarity_weight: float | None = None
    recency_weight: float | None = None
    excerpt_over: int | None = None

    def flags(self) -> dict[str, Value]:
        """Return the options as settings for this run."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not None}


class Prepared(NamedTuple):
    """A request with its resolved settings."""

    request: ContextRequest
    settings: Settings
    window: int  # tokens of the model's context window
    reserve: int  # tokens kept for the answer
    multiplier_is_set: bool = False  # whether the user has set the factor on counts

    def meter(self, store: Store, *, offline: bool) -> Meter:
        """Return the meter with the configured counter, and how far it is off for the model."""
        counter = load_counter(self.settings.token_counter, offline=offline)
        return self._calibrate(_meter(counter, self.settings), store)

    def storing_meter(self, store: Store) -> Meter:
        """Return the meter for callers that may not use the network."""
        return self._calibrate(storing_meter(self.settings), store)

    def _calibrate(self, meter: Meter, store: Store) -> Meter:
        if self.multiplier_is_set:
            return meter
        request = self.request
        factor = find_factor(store, request.partition, request.model, meter.counter, request.now)
        return meter._replace(factor=meter.factor * (factor or 1.0))


def storing_meter(settings: Settings) -> Meter:
    """Return the meter for callers that may not use the network."""
    return _meter(storing_counter(settings.token_counter), settings)


def _meter(counter: TokenCounter, settings: Settings) -> Meter:
    return Meter.of(counter, settings.token_multiplier, settings.token_safety)


def prepare(
    config: Config,
    query: str,
    *,
    partition: str | None,
    budget: int | str | None,
    now: datetime | None,
    instance: str | None = None,
    model: str | None = None,
    format: str = "text",
    system: str | None = None,
    procedure: Pieces = (),
    knowledge: Pieces = (),
    episode: Sequence[str] = (),
    trace_id: str | None = None,
) -> Prepared:
    """Resolve the settings of a question once.

    :param budget: tokens for everything, or ``recommended``; ``None`` for the model's limit.
    :raises UsageError: an unknown model or format, or a budget that does not fit.
    """
    if now is not None:
        check_time("now", now)
    partition = partition or config.settings().partition
    model = model or config.settings(partition).model
    settings = config.settings(partition, model)
    system = system if system is not None else settings.system_prompt
    window = required_window(config, model, settings)
    reserve = config.reserve(model, settings)
    limit = settings.max_context_tokens or window
    request = ContextRequest(
        query=clean_text(query),
        partition=partition,
        instance=instance,
        model=model,
        budget=recommended_budget(model, budget, min(window - reserve, limit)),
        format=parse_format(format),
        trace_id=trace_id or str(uuid.uuid4()),
        now=now or datetime.now(UTC),
        system=system and clean_text(system),
        procedures=_pieces(_pairs(procedure)),
        knowledge=_pieces(_pairs(knowledge)),
        episodes=_pieces(("", text) for text in episode),
        recalled_role=settings.recalled_role,
    )
    is_set = config.lookup("token_multiplier", partition, model)[1] != "default"
    return Prepared(request, settings, window, reserve, is_set)


class BudgetPlan(NamedTuple):
    """A plan of a context's tokens, with those that ``--budget recommended`` uses for its model."""

    model: str | None
    budget: TokenBudget
    recommended: int | None


def plan_budget(
    config: Config,
    *,
    partition: str | None = None,
    model: str | None = None,
    maximum: int | None = None,
    reserve: int | None = None,
    system: int | None = None,
    procedure: int = 0,
    knowledge: int = 0,
    episodes: int = 0,
    current: int = 0,
) -> BudgetPlan:
    """Plan the tokens of a context, without any message.

    :param maximum: tokens of a context window to plan for, instead of the model's.
    :param system: tokens of the system prompt; ``None`` to count the configured one.
    :raises UsageError: the reserve leaves nothing, or the model is unknown.
    """
    settings = config.settings(partition, model)
    name = model or settings.model
    window = maximum if maximum is not None else required_window(config, name, settings)
    reserve = config.reserve(name, settings) if reserve is None else reserve
    if reserve >= window:
        raise UsageError(
            f"the reserve of {reserve:,} leaves nothing of {window:,} tokens",
            hint=f"lower --reserve or {reserve_setting(name)}",
        )
    token_budget = plan(
        window=window,
        reserve=reserve,
        limit=settings.max_context_tokens,
        budget=None,
        model=name,
        sections={
            Section.SYSTEM: _system_tokens(settings) if system is None else system,
            Section.PROCEDURE: procedure,
            Section.KNOWLEDGE: knowledge,
            Section.EPISODE: episodes,
            Section.CURRENT: current,
        },
        min_history=settings.min_history_tokens,
    )
    recommended = recommended_budget(name, "recommended", token_budget.available) if name else None
    return BudgetPlan(name, token_budget, recommended)


def _system_tokens(settings: Settings) -> int:
    """Count the tokens of the configured system prompt as ``context`` counts them."""
    if not (settings.system_prompt or "").strip():
        return 0
    prompt = Turn(Section.SYSTEM, "system", str(settings.system_prompt))
    return count_turns([prompt], "text", storing_meter(settings))


def _pieces(pairs: Iterable[tuple[str, str]]) -> tuple[Piece, ...]:
    """Return named texts, cleaned like stored ones, without blank ones, which leave no trace."""
    return tuple(Piece(clean_text(text), clean_text(name)) for name, text in pairs if text.strip())


def _pairs(pieces: Pieces) -> Iterable[tuple[str, str]]:
    return pieces.items() if isinstance(pieces, Mapping) else pieces
