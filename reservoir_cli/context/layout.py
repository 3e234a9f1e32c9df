"""Lay out the kept messages of a window: as turns of history, as recalled lines, or not at all.

Only the unbroken run of the newest messages becomes turns. No answer is printed under another
question: history holds whole exchanges only, each reply after its own question with no other
question between; incomplete exchanges are recalled. A recalled reply follows its own question or
``…``, and a recalled question is followed by its answer or by the number of the answer that was
left out. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from reservoir_cli.chat.tool_calls import pair_calls
from reservoir_cli.context.candidate import Candidate
from reservoir_cli.messages import Role, StoredMessage


class Exchanges(NamedTuple):
    """Questions with all messages in reply to them, by message id.

    An exchange has the id of its question; a reply to no question is an exchange of its own.
    """

    exchange_of: Mapping[int, int]
    answer_of: Mapping[int, int]  # for a question, its last reply that calls no tool
    call_of: Mapping[int, tuple[int, int]]  # of a tool result, its caller and the index of the call
    copy_of: Mapping[int, int]  # for an exchange, the first one with the same question and replies

    @classmethod
    def of(cls, messages: Sequence[StoredMessage]) -> "Exchanges":
        """Find the exchanges among messages in order of time."""
        calls = pair_calls(messages)
        callers = {caller for caller, _ in calls.values()}
        questions: dict[tuple[str, str], int] = {}
        exchange_of: dict[int, int] = {}
        answer_of: dict[int, int] = {}
        for index, message in enumerate(messages):
            trace = (message.instance, message.trace_id)
            exchange = number = message.id
            if message.role is Role.USER:
                questions[trace] = number
            elif message.role is Role.ASSISTANT and trace in questions:
                exchange = questions[trace]
                if index not in callers and message.content.strip():
                    answer_of[exchange] = number
            elif index in calls:
                exchange = exchange_of[messages[calls[index][0]].id]
            exchange_of[number] = exchange
        call_of = {
            messages[index].id: (messages[caller].id, number)
            for index, (caller, number) in calls.items()
        }
        with_tools = {exchange_of[messages[index].id] for index in (*calls, *callers)}
        return cls(exchange_of, answer_of, call_of, _find_copies(messages, exchange_of, with_tools))


def _find_copies(
    messages: Iterable[StoredMessage], exchange_of: Mapping[int, int], with_tools: set[int]
) -> dict[int, int]:
    """Map each exchange to the first with equal texts; one with tool calls equals only itself."""
    texts_of: dict[int, list[str]] = {}
    for message in messages:
        if text := message.content.strip():
            texts_of.setdefault(exchange_of[message.id], []).extend((message.role, text))
    first: dict[tuple[str, ...], int] = {}
    return {
        exchange: exchange if exchange in with_tools else first.setdefault(tuple(texts), exchange)
        for exchange, texts in texts_of.items()
    }


class Layout(NamedTuple):
    """How kept messages are printed: as recalled lines, as turns, or not at all."""

    recalled: tuple[Candidate, ...]
    history: tuple[Candidate, ...]
    duplicates: tuple[Candidate, ...]


def lay_out(
    candidates: Mapping[int, Candidate], run: Sequence[Candidate], exchanges: Exchanges
) -> Layout:
    """Lay out kept messages; of exchanges with equal texts, only the first kept is printed.

    :param run: the unbroken run of the newest messages among them, newest first.
    """

    def order(candidate: Candidate) -> tuple[float, int, int]:
        number = candidate.message.id
        caller, call = exchanges.call_of.get(number, (number, -1))
        return (*by_time(candidates[caller]), call)

    in_history = _find_whole_exchanges(run, exchanges)
    history = sorted((candidates[number] for number in in_history), key=order)
    copies = exchanges.copy_of
    printed_exchanges = {}
    for number in in_history:
        exchange = exchanges.exchange_of[number]
        printed_exchanges[copies.get(exchange, exchange)] = 0
    recalled: list[Candidate] = []
    duplicates: list[Candidate] = []
    for number, candidate in candidates.items():
        if number in in_history:
            continue
        exchange = exchanges.exchange_of[number]
        first = printed_exchanges.setdefault(copies.get(exchange, exchange), exchange)
        (recalled if first == exchange else duplicates).append(candidate)
    recalled.sort(key=by_time)
    return Layout(_mark_gaps(recalled, exchanges), tuple(history), tuple(duplicates))


def find_run(
    candidates: Mapping[int, Candidate], by_age: Mapping[int, Candidate], passed: Set[int]
) -> list[Candidate]:
    """Return the unbroken run of the newest messages, newest first.

    :param by_age: all messages of history's instance that may be kept, by age.
    :param passed: ages of messages that do not end the run although they are not printed.
    """
    run: list[Candidate] = []
    age = 0
    while True:
        candidate = by_age.get(age)
        printed = candidates.get(candidate.message.id) if candidate else None
        if printed and printed.spans is not None:
            return run
        if printed and not is_system(printed):
            run.append(printed)
        elif not printed and age not in passed:
            return run
        age += 1


def _find_whole_exchanges(run: Sequence[Candidate], exchanges: Exchanges) -> set[int]:
    """Return the messages of exchanges that the run holds whole, with no other question between."""
    members: dict[int, set[int]] = {}
    questions: set[int] = set()
    broken: set[int] = set()
    question: int | None = None
    for candidate in reversed(run):
        exchange = exchanges.exchange_of[candidate.message.id]
        members.setdefault(exchange, set()).add(candidate.message.id)
        if _is_question(candidate):
            question = exchange
            questions.add(exchange)
        elif exchange != question and candidate.message.role is not Role.TOOL:
            broken.add(exchange)
    whole: set[int] = set()
    for exchange in questions - broken:
        if exchanges.answer_of.get(exchange, exchange) in members[exchange]:
            whole |= members[exchange]
    return whole


def _mark_gaps(recalled: Sequence[Candidate], exchanges: Exchanges) -> tuple[Candidate, ...]:
    """Mark recalled messages so that no answer appears under another question."""
    printed_ids = ids(recalled)
    question: int | None = None
    marked = []
    for candidate in recalled:
        number = candidate.message.id
        exchange = exchanges.exchange_of[number]
        if _is_question(candidate):
            question = exchange
            answer = exchanges.answer_of.get(number)
            if answer is not None and answer not in printed_ids:
                candidate = candidate._replace(left_out=answer)
        elif not is_system(candidate) and question not in (None, exchange):
            candidate, question = candidate._replace(after_gap=True), None
        marked.append(candidate)
    return tuple(marked)


def by_time(candidate: Candidate) -> tuple[float, int]:
    """Return a key that sorts candidates by time, then id."""
    return candidate.message.created_at.timestamp(), candidate.message.id


def count_to_last_question(history: Sequence[Candidate]) -> int:
    """Return how many turns of history there are up to its last question, with which it may end."""
    return max((at for at, turn in enumerate(history, 1) if _is_question(turn)), default=0)


def ids(candidates: Iterable[Candidate]) -> set[int]:
    """Return the ids of candidates."""
    return {candidate.message.id for candidate in candidates}


def is_system(candidate: Candidate) -> bool:
    """Return whether a message is an old system prompt, which is never used as an instruction."""
    return candidate.message.role is Role.SYSTEM


def _is_question(candidate: Candidate) -> bool:
    return candidate.message.role is Role.USER
