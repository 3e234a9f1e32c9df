"""Groups of messages: calls with results, questions with replies. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reservoir_cli.chat.tool_calls import pair_calls
from reservoir_cli.context.candidate import Candidate, Dropped, Tier, discount
from reservoir_cli.context.layout import Exchanges, by_time
from reservoir_cli.context.standing_instructions import is_standing
from reservoir_cli.messages import Role

ORPHAN = "orphan result"
UNANSWERED = "unanswered call"

_TIERS = list(Tier)


class MessageGroup:
    """Messages that are kept or dropped together, oldest first, with their highest priority."""

    __slots__ = ("is_long", "members", "priority")

    def __init__(self, members: tuple[Candidate, ...]) -> None:
        self.members = members
        self.priority = max([member.scores.priority for member in members])
        self.is_long = len(members) == 1 and bool(members[0].parts)  # added part by part

    @property
    def is_standing(self) -> bool:
        """Whether a member is a standing instruction."""
        return any(is_standing(member.message) for member in self.members)

    def share(self, part: int = 0) -> float:
        """Return the share of its priority to rank it by: below 1 for parts of a message."""
        return discount(self.members[0], part) if self.is_long else 1.0

    @property
    def tier(self) -> int:
        """The rank of its best member's tier, 0 for recent."""
        return min(_TIERS.index(member.tier) for member in self.members)

    @property
    def age(self) -> int | None:
        """The age of its newest member in history's instance."""
        ages = [member.age for member in self.members if member.age is not None]
        return min(ages) if ages else None

    def by_score(self, share: float = 1.0) -> tuple[float, float, int]:
        """Return a key that sorts by priority, or a share of it for a part; ties newest first."""
        last = self.members[-1].message
        return (-self.priority * share, -last.created_at.timestamp(), -last.id)

    def by_tier(self, share: float = 1.0) -> tuple[float, ...]:
        """Return a key that sorts by tier: the recent tier newest first, others by priority."""
        priority, *newest = self.by_score(share)
        return (self.tier, *newest) if self.tier == 0 else (self.tier, priority, *newest)


def members_by_time(groups: Iterable[MessageGroup]) -> tuple[Candidate, ...]:
    """Return the members of all groups, oldest first."""
    return tuple(sorted([member for group in groups for member in group.members], key=by_time))


def merge_groups(exchange: Sequence[MessageGroup]) -> MessageGroup:
    """Return an exchange, oldest first, as one group."""
    if len(exchange) == 1:
        return exchange[0]
    return MessageGroup(tuple([member for group in exchange for member in group.members]))


def group_tool_calls(candidates: Sequence[Candidate]) -> tuple[list[MessageGroup], list[Dropped]]:
    """Join calls with their results; remove calls without results and results without calls."""
    pairs = pair_calls([candidate.message for candidate in candidates])
    results: dict[int, dict[int, Candidate]] = {}
    for index, (caller, call) in pairs.items():
        results.setdefault(caller, {})[call] = candidates[index]
    groups, dropped = [], []
    for index, candidate in enumerate(candidates):
        message = candidate.message
        if message.role is Role.TOOL:
            if index not in pairs:
                dropped.append(Dropped(candidate, ORPHAN))
            continue
        if not message.tool_calls:
            groups.append(MessageGroup((candidate,)))
            continue
        answered = results.get(index, {})
        if not answered and not message.content.strip():
            dropped.append(Dropped(candidate, UNANSWERED))
            continue
        if len(answered) < len(message.tool_calls):
            calls = tuple(message.tool_calls[call] for call in sorted(answered))
            candidate = candidate._replace(message=replace(message, tool_calls=calls))
        groups.append(MessageGroup((candidate, *sorted(answered.values(), key=by_time))))
    return groups, dropped


def join_answers(
    groups: Sequence[MessageGroup], exchanges: Exchanges
) -> Iterator[list[MessageGroup]]:
    """Join each question with its answer; other groups stay single."""
    by_first = {group.members[0].message.id: group for group in groups}
    joined = {
        question: by_first[answer]
        for question, answer in exchanges.answer_of.items()
        if question in by_first and answer in by_first
    }
    answers = {group.members[0].message.id for group in joined.values()}
    for number, group in by_first.items():
        if number not in answers:
            yield [group, joined[number]] if number in joined else [group]


def join_short_exchanges(
    groups: Sequence[MessageGroup], exchanges: Exchanges
) -> Iterator[list[MessageGroup]]:
    """Join each question with its answer, except for long messages, which are added in parts."""
    for exchange in join_answers(groups, exchanges):
        if exchange[0].is_long or exchange[-1].is_long:
            yield from ([group] for group in exchange)
        else:
            yield exchange


def remove_foreign_calls(candidate: Candidate) -> Candidate:
    """Remove tool calls from messages of other roles, as some imports have them."""
    message = candidate.message
    if message.role is Role.ASSISTANT or not message.tool_calls:
        return candidate
    return candidate._replace(message=replace(message, tool_calls=()))
