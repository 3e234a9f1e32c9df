"""Trim the message list of a tool loop, which an agent sends again with each iteration.

Only messages between the first one and the current turn are cut, oldest first: a question with
all that answers it, and in the first and the current exchange a step, a call with its results.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from numbers import Integral, Real

from reservoir_cli.chat.message_cost import ATTACHMENT_TOKENS, message_cost
from reservoir_cli.chat.message_shapes import (
    ChatMessage,
    answered_ids,
    call_ids,
    has_calls,
    is_instruction,
    is_item,
    is_question,
    is_result,
)
from reservoir_cli.errors import UsageError, wrong_type
from reservoir_cli.tokens.counter import TokenCounter
from reservoir_cli.tokens.estimates import ApproximateCounter


def trim_history(
    messages: list[ChatMessage],
    *,
    turn_start: int | None = None,
    iteration: int,
    budget: int,
    counter: TokenCounter | None = None,
    multiplier: float = 1.0,
    attachment_tokens: int = ATTACHMENT_TOKENS,
) -> list[ChatMessage]:
    """Return the list of messages that an iteration of a tool loop should send.

    The first message, the current turn, and system and developer messages are kept. If anything is
    cut, old exchanges with a result without its call, or a call without a result, are cut as well.

    :param messages: chat messages in OpenAI's, Anthropic's, Ollama's, Gemini's or Bedrock's shape,
        or items of OpenAI's Responses API; never changed.
    :param turn_start: index of the current turn's first message; it and all after it stay. By
        default, the turn begins at the last question.
    :param iteration: 1 for the first request of the turn, which is never trimmed.
    :param budget: tokens for the messages between the first message and the turn; 0 or less
        switches trimming off.
    :param counter: counts the tokens; approximately by default.
    :param multiplier: factor applied to every count.
    :param attachment_tokens: tokens of each picture, file or recording, whatever its size.
    :returns: the same list object if nothing is cut, else a new one.
    :raises UsageError: an argument has a wrong type.
    """
    _check_messages(messages)
    if turn_start is None:
        turn_start = find_turn_start(messages)
    _check_numbers(Integral, "an integer", turn_start=turn_start)
    _check_numbers(
        Real,
        "a number",
        iteration=iteration,
        budget=budget,
        multiplier=multiplier,
        attachment_tokens=attachment_tokens,
    )
    if budget <= 0 or iteration <= 1 or turn_start <= 1:
        return messages
    counter = counter or ApproximateCounter()
    start = min(int(turn_start), len(messages))
    costs = {
        index: message_cost(messages[index], counter, attachment_tokens)
        for index in range(1, start)
    }
    if round(sum(costs.values()) * multiplier, 6) <= budget:
        return messages
    left_out = _choose_cut(_OldMessages(messages, start).units(), costs, budget, multiplier)
    if not left_out:
        return messages
    return [message for index, message in enumerate(messages) if index not in left_out]


def find_turn_start(messages: Sequence[ChatMessage]) -> int:
    """Return the index of the last user message without tool results; 0 if there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if is_question(messages[index]):
            return index
    return 0


def _check_messages(messages: object) -> None:
    if (
        not isinstance(messages, Sequence)
        or isinstance(messages, str | bytes)
        or not all(isinstance(message, Mapping) for message in messages)
    ):
        raise wrong_type("messages", "a list of chat messages, each a dict", messages)


def _check_numbers(kind: type, expected: str, **numbers: object) -> None:
    for name, number in numbers.items():
        if not isinstance(number, kind):
            raise wrong_type(name, expected, number)
        if number != number:  # NaN, which is no more than a budget, and no less
            raise UsageError(f"{name} must be {expected}, not NaN")


@dataclass(slots=True)
class _Unit:
    """Old messages that are cut together, by their places in the list."""

    indices: list[int]
    stays: bool = False  # whether the head or the turn needs them
    refused: bool = False  # whether no provider accepts them at all, or not at the beginning
    last: bool = False


def _choose_cut(
    units: list[_Unit], costs: dict[int, int], budget: float, multiplier: float
) -> set[int]:
    total, left_out = sum(costs.values()), set[int]()
    for unit in sorted(units, key=lambda unit: unit.last):
        if round(total * multiplier, 6) <= budget:
            break
        if not unit.stays:
            left_out.update(unit.indices)
            total -= sum(costs[index] for index in unit.indices)
    if left_out:  # a list that is changed must be valid, so it begins behind all that is refused
        refused = [number for number, unit in enumerate(units) if unit.refused and not unit.stays]
        for unit in units[: refused[-1] + 1] if refused else []:
            left_out.update([] if unit.stays or unit.last else unit.indices)
    return left_out


class _OldMessages:
    def __init__(self, messages: Sequence[ChatMessage], start: int) -> None:
        self._messages, self._start = messages, start
        self._old = [
            index for index in range(1, start) if not is_instruction(messages[index])
        ]  # instructions are never cut
        self._questions = [index for index in self._old if is_question(messages[index])]
        turn = [
            index for index in range(start, len(messages)) if not is_instruction(messages[index])
        ]
        self._turn_start = turn[0] if turn else None
        #: The question that the turn goes on to answer, if it does not begin with one.
        self._open_question: int | None = None
        if self._questions and not (turn and is_question(messages[turn[0]])):
            self._open_question = self._questions[-1]
        self._at_the_end = start == len(messages)
        #: The last result of each call.
        self._answered = {
            key: index for index, message in enumerate(messages) for key in answered_ids(message)
        }

    def units(self) -> list[_Unit]:
        starts = self._unit_starts()
        units: list[_Unit] = []
        for index in self._old:
            if not units or index in starts or units[-1].indices[-1] == self._open_question:
                units.append(_Unit([]))
            units[-1].indices.append(index)
        return self._mark(self._join_pairs(units))

    def _unit_starts(self) -> set[int]:
        first = self._questions[0] if self._questions else self._start
        after = self._start if self._open_question is None else self._open_question
        stepwise = [index for index in self._old if index < first or index > after]
        return set(self._questions) | {
            index
            for previous, index in pairwise(stepwise)
            if previous < after < index
            or self._begins_step(self._messages[previous], self._messages[index])
        }

    @staticmethod
    def _begins_step(previous: ChatMessage, message: ChatMessage) -> bool:
        if is_result(message):
            return False
        if is_result(previous) or is_question(previous) or is_question(message):
            return True
        return is_instruction(previous) or not (is_item(previous) or is_item(message))

    def _join_pairs(self, units: list[_Unit]) -> list[_Unit]:
        unit_of = {index: number for number, unit in enumerate(units) for index in unit.indices}
        last_joined = list(range(len(units)))
        for call, result in self._pairs():
            if call in unit_of and result in unit_of:
                number = unit_of[call]
                last_joined[number] = max(last_joined[number], unit_of[result])
        joined: list[_Unit] = []
        end = -1
        for number, unit in enumerate(units):
            if number <= end:
                joined[-1].indices += unit.indices
            else:
                joined.append(unit)
            end = max(end, last_joined[number])
        return joined

    def _mark(self, units: list[_Unit]) -> list[_Unit]:
        needed = {call for call, result in self._pairs() if result >= self._start}
        needed |= {result for call, result in self._pairs() if call == 0}
        needed |= self._steps_cut_apart()
        needed |= self._last_results(range(self._start, len(self._messages)))
        invalid = self._invalid()
        first = self._questions[0] if self._questions else self._start
        headless = is_instruction(self._messages[0])
        for unit in reversed(units):  # what a unit needs stands before it
            is_open = self._open_question in unit.indices
            unit.last = is_open and self._at_the_end
            unit.stays = (is_open and not unit.last) or not needed.isdisjoint(unit.indices)
            if unit.stays:
                needed |= self._last_results(unit.indices)
            unit.refused = (headless and unit.indices[0] < first) or not invalid.isdisjoint(
                unit.indices
            )
        return units

    def _steps_cut_apart(self) -> set[int]:
        """Return old messages in the middle of a step that the head begins or the turn ends."""
        if not self._old:
            return set()
        first, last = self._old[0], self._old[-1]
        sides = [(0, first, first)]
        if self._turn_start is not None:
            sides.append((last, self._turn_start, last))
        return {
            old
            for previous, index, old in sides
            if not self._begins_step(self._messages[previous], self._messages[index])
        }

    def _last_results(self, indices: Iterable[int]) -> set[int]:
        """Return the last results of calls, by id; of a repeated call, it may be an older one."""
        ids = {key for index in indices for key in call_ids(self._messages[index])}
        return {self._answered[key] for key in ids if key in self._answered}

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the indices of each call and its result; a reused id is a new call.

        A result without an id answers the last message that calls.
        """
        calls: dict[str, int] = {}
        last: int | None = None
        for index, message in enumerate(self._messages):
            calls |= dict.fromkeys(call_ids(message), index)
            last = index if has_calls(message) else last
            answered = answered_ids(message)
            yield from ((calls[key], index) for key in answered if key in calls)
            if last is not None and not answered and is_result(message):
                yield last, index

    def _invalid(self) -> set[int]:
        """Return unpaired calls and results; a result without an id answers the oldest call."""
        declared, unanswered, invalid = set[str](), dict[str, int](), set[int]()
        for index, message in enumerate(self._messages):
            answered = answered_ids(message)
            if not answered and is_result(message):
                answered = [*islice(unanswered, 1)]
            if not declared.issuperset(answered):
                invalid.add(index)
            for key in answered:
                unanswered.pop(key, None)
            for key in call_ids(message):
                if key in unanswered:
                    invalid.add(unanswered.pop(key))
                declared.add(key)
                unanswered[key] = index
        return invalid | set(unanswered.values())
