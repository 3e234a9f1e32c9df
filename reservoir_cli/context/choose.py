"""Choose the messages that go into the window within the budget. Pure.

The newest and the pinned come first; ``fill_window`` fills the rest in the order of a setting.
"""

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from reservoir_cli.context import window_constants as constants
from reservoir_cli.context.candidate import Candidate, Dropped, Selection, Tier
from reservoir_cli.context.fill_window import fill_by_score, fill_by_tier
from reservoir_cli.context.layout import Exchanges, count_to_last_question, ids, is_system
from reservoir_cli.context.message_groups import (
    MessageGroup,
    group_tool_calls,
    join_short_exchanges,
    members_by_time,
    remove_foreign_calls,
)
from reservoir_cli.context.window_builder import Costs, WindowBuilder
from reservoir_cli.messages import Role, StoredMessage

NO_ROOM = "no room"
TOO_LARGE = "too large"
DUPLICATE = "duplicate"
QUESTION = "question"
UNLIKE = "below min_cosine"
AFTER_QUESTION = "after the question"
_PINNED = "pinned"  # the reason given for keeping pinned messages


class SelectionOptions(NamedTuple):
    """The settings that control the selection."""

    order: str = "score"
    min_history_messages: int = 2  # the newest that come first, in an eighth of the budget
    min_cosine: float = 0.0  # messages with a lower cosine are not recalled; 0 is off
    include_system: bool = False
    standing: bool = True  # try standing instructions sooner
    to_the_last: bool = False  # spend the last tokens even on candidates far below the rest


def select(
    pool: Sequence[Candidate],
    *,
    query: str,
    budget: int,
    costs: Costs,
    options: SelectionOptions,
    not_reached: int,
    passed: Set[int] = frozenset(),
) -> Selection:
    """Choose messages for a budget.

    :param pool: candidates with the messages that belong to them, in order of time.
    :param budget: tokens for recalled messages and history.
    :param not_reached: how many messages of the scope are not in the pool.
    :param passed: ages of messages that are not in the pool but do not end the run of the newest.
    """
    eligible = [
        remove_foreign_calls(candidate)
        for candidate in pool
        if is_printable(candidate.message, query, options)
    ]
    groups, dropped = group_tool_calls(eligible)
    dropped += [
        Dropped(candidate, QUESTION) for candidate in pool if is_question(candidate.message, query)
    ]
    exchanges = Exchanges.of([candidate.message for candidate in pool])
    by_age = {candidate.age: candidate for candidate in pool if candidate.age is not None}
    # Messages missing from the groups at this point do not end the run of the newest messages.
    grouped = _ages_of(member for group in groups for member in group.members)
    window = WindowBuilder(costs, exchanges, by_age, by_age.keys() - grouped | passed)
    joined, too_large = _separate_too_large(groups, window, budget)
    window.passed |= _ages_of(too_large)
    dropped += [Dropped(candidate, TOO_LARGE) for candidate in too_large]
    if options.min_cosine:
        joined, unlike = _separate_unlike(joined, options.min_cosine)
        dropped += [Dropped(candidate, UNLIKE) for candidate in unlike]
    groups = [group for exchange in joined for group in exchange]

    keep_newest(groups, window, budget, options.min_history_messages)
    keep_pins(groups, window, budget)
    if options.order == "tiers":
        fill_by_tier(joined, window, budget, query)
    else:
        spare = 0.0 if options.to_the_last else constants.LITTLE_LEFT * budget
        share = (
            constants.RUNNING_SHARE if budget >= constants.SMALL_BUDGET else constants.NEWEST_SHARE
        )
        window.most_running = share * budget
        fill_by_score(joined, window, budget, query, spare, options.standing)

    layout = window.lay_out()
    dropped += [Dropped(candidate, DUPLICATE) for candidate in layout.duplicates]
    accounted = ids([*layout.recalled, *layout.history]) | ids(drop.candidate for drop in dropped)
    dropped += [
        Dropped(candidate, NO_ROOM)
        for candidate in members_by_time(groups)
        if candidate.message.id not in accounted
    ]
    kept_as_pins = {number for number, reason in window.reasons.items() if reason == _PINNED}
    dropped = [
        drop._replace(candidate=mark_pin(drop.candidate)) if drop.candidate.pinned else drop
        for drop in dropped
    ]
    return Selection(
        tuple(mark_pin(candidate, kept_as_pins) for candidate in layout.recalled),
        tuple(mark_pin(candidate, kept_as_pins) for candidate in layout.history),
        tuple(drop for drop in dropped if not drop.candidate.filler),
        tuple(drop for drop in dropped if drop.candidate.filler),
        window.reasons,
        not_reached,
    )


def cut_after_last_question(selection: Selection) -> Selection:
    """Leave out the turns after the last question of history, which a provider requires."""
    history = selection.history
    end = count_to_last_question(history)
    cut = [Dropped(candidate, AFTER_QUESTION) for candidate in history[end:]]
    return selection._replace(
        history=history[:end],
        dropped=(*selection.dropped, *(drop for drop in cut if not drop.candidate.filler)),
        passed_over=(*selection.passed_over, *(drop for drop in cut if drop.candidate.filler)),
    )


def _separate_too_large(
    groups: Sequence[MessageGroup], window: WindowBuilder, budget: int
) -> tuple[list[list[MessageGroup]], tuple[Candidate, ...]]:
    """Return the groups that fit alone or with their exchange, and the messages of the others.

    A long message counts as fitting: its parts are tried when its turn comes.
    """
    fitting: list[list[MessageGroup]] = []
    too_large: list[MessageGroup] = []
    for exchange in join_short_exchanges(groups, window.exchanges):
        fits_alone = [
            group.is_long or window.could_add(group.members, budget) for group in exchange
        ]
        if all(fits_alone) or (
            len(exchange) > 1 and window.could_add(members_by_time(exchange), budget)
        ):
            fitting.append(exchange)
        else:
            for group, fits in zip(exchange, fits_alone, strict=True):
                if fits:
                    fitting.append([group])
                else:
                    too_large.append(group)
    return fitting, members_by_time(too_large)


def _separate_unlike(
    exchanges: Sequence[list[MessageGroup]], least: float
) -> tuple[list[list[MessageGroup]], tuple[Candidate, ...]]:
    """Return the exchanges without groups that are unlike the question, and their messages."""
    unlike = [group for exchange in exchanges for group in exchange if _is_unlike(group, least)]
    alike = [
        [group for group in exchange if not _is_unlike(group, least)] for exchange in exchanges
    ]
    return [exchange for exchange in alike if exchange], members_by_time(unlike)


def is_question(message: StoredMessage, query: str) -> bool:
    """Return whether a message repeats the question."""
    text = message.content.strip()
    return text != "" and text == query.strip()


def is_printable(message: StoredMessage, query: str, options: SelectionOptions) -> bool:
    """Return whether a message on its own may be printed if there is room."""
    if is_question(message, query):
        return False
    if message.role is Role.SYSTEM:
        return options.include_system
    if message.role is Role.TOOL:
        return True
    calls = message.role is Role.ASSISTANT and message.tool_calls
    return bool(message.content.strip() or calls)


def _is_unlike(group: MessageGroup, least: float) -> bool:
    return not any(
        member.tier is Tier.RECENT
        or member.pinned
        or not member.scores.embedded
        or member.scores.cosine >= least
        for member in group.members
    )


def _ages_of(candidates: Iterable[Candidate]) -> set[int]:
    return {candidate.age for candidate in candidates if candidate.age is not None}


def keep_newest(
    groups: Sequence[MessageGroup], window: WindowBuilder, budget: int, count: int
) -> None:
    """Keep the groups with the newest messages, up to the first that does not fit."""
    for group in _newest_groups(groups, count):
        if not window.add(group.members, int(budget * constants.NEWEST_SHARE), "newest"):
            break


def _newest_groups(groups: Sequence[MessageGroup], count: int) -> list[MessageGroup]:
    own_groups = [
        group for group in groups if group.age is not None and not is_system(group.members[0])
    ]
    chosen: list[MessageGroup] = []
    for group in sorted(own_groups, key=lambda group: group.age or 0):
        if sum(len(group.members) for group in chosen) >= count:
            break
        chosen.append(group)
    return chosen


def keep_pins(groups: Sequence[MessageGroup], window: WindowBuilder, budget: int) -> None:
    """Keep the groups with pinned messages that fit, the newest pin first."""
    pinned = [group for group in groups if any(member.pinned for member in group.members)]
    for group in sorted(pinned, key=lambda group: _sort_key(group.members)):
        window.add(group.members, int(budget * constants.PINNED_SHARE), _PINNED)


def mark_pin(candidate: Candidate, numbers: Set[int] | None = None) -> Candidate:
    """Give a pinned message the tier for pins, if it is one of those ids; ``None`` for all."""
    is_pin = candidate.pinned and (numbers is None or candidate.message.id in numbers)
    return candidate._replace(tier=Tier.PINNED) if is_pin else candidate


def _sort_key(members: Iterable[Candidate]) -> list[tuple[float, int]]:
    pins = (candidate.message for candidate in members if candidate.pinned)
    return sorted((-pin.pinned_at.timestamp(), -pin.id) for pin in pins if pin.pinned_at)
