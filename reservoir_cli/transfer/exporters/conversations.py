"""Conversations as other formats know them: with results behind their calls.

In them a call without a result is refused, and so is a result without its call, as where one of
the two was forgotten or not asked for. Either is then told in words, as the user's: what a tool
said has no higher rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.messages import Conversation, Role, Scope, StoredMessage, call_text, plain_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import ThreadName

#: The name of the messages in which a model thinks; see ``importers.blocks``.
_THINKING = "thinking"


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation, or what an instance has outside of conversations, in order of time.

    :param about: what an import told of it.
    """

    name: ThreadName
    about: Conversation | None
    messages: Sequence[StoredMessage]

    def masked(self, mask: Redactor) -> "Thread":
        """Return the conversation as it may be printed."""
        partition, instance, number = self.name
        return replace(
            self,
            name=(partition, instance, number and mask.id(partition, number)),
            about=self.about and mask.conversation(partition, self.about),
            messages=mask.messages(self.messages),
        )

    def without_thinking(self) -> "Thread":
        """Return what was said aloud: no program sends thoughts back to a model."""
        said = [
            each
            for each in self.messages
            if not (each.role is Role.SYSTEM and each.name == _THINKING)
        ]
        return replace(self, messages=said)


def threads(store: Store, found: Mapping[ThreadName, Sequence[int]]) -> Iterator[Thread]:
    """Read threads one after the other.

    :param found: ids of the messages of each.
    """
    for name, ids in found.items():
        partition, instance, number = name
        about = store.known_conversations([name]).get(name) if number else None
        messages = store.by_id(ids, Scope(partition, instance))
        if messages:  # they may have been forgotten meanwhile
            yield Thread(name, about, messages)


def request_turns(thread: Thread) -> list[Turn]:
    """Return the turns of a thread as a request: what comes before the first question is quoted."""
    messages = thread.messages
    asked = (place for place, each in enumerate(messages) if _is_question(each))
    first = next(asked, len(messages))
    lead = [each for each in messages[:first] if plain_text(each).strip()]
    said = [
        _turn(each, each.role.value, each.content) if each.role is Role.SYSTEM else _told(each)
        for each in lead
    ]
    return said + turns(replace(thread, messages=messages[first:]))


def turns(thread: Thread) -> list[Turn]:
    """Return the turns of a thread, each call's results right behind it.

    A result that is there twice is said once.
    """
    callers, results = _answers(thread.messages)
    answers = {(each.tool_call_id, each.content) for each in results.values()}
    made: list[Turn] = []
    for each in thread.messages:
        if each.id in callers:
            continue  # it stands behind its call
        if each.role is Role.TOOL:
            if (each.tool_call_id, each.content) not in answers:
                made.append(_told(each))
            continue
        answered = [call for call in each.tool_calls if (each.id, call.id) in results]
        open_calls = [call_text(call) for call in each.tool_calls if call not in answered]
        content = "\n".join(filter(None, [each.content, *open_calls]))
        if content.strip() or answered:
            turn = _turn(each, each.role.value, content)
            made.append(replace(turn, tool_calls=tuple(answered)))
        made += [
            replace(_turn(result, Role.TOOL.value, result.content), tool_call_id=call.id)
            for call in answered
            for result in [results[each.id, call.id]]
        ]
    return made


def _answers(
    messages: Sequence[StoredMessage],
) -> tuple[dict[int, int], dict[tuple[int, str], StoredMessage]]:
    """Map each result to its caller, and each caller to its results."""
    latest: dict[str, int] = {}
    callers: dict[int, int] = {}
    results: dict[tuple[int, str], StoredMessage] = {}
    for each in messages:
        for call in each.tool_calls:
            latest[call.id] = each.id
        asked = each.tool_call_id
        if each.role is Role.TOOL and asked in latest:
            caller = latest.pop(asked)
            callers[each.id] = caller
            results[caller, asked] = each
    return callers, results


def _is_question(message: StoredMessage) -> bool:
    return message.role is Role.USER and bool(message.content.strip())


def _told(message: StoredMessage) -> Turn:
    """Quote a message that has no place of its own."""
    return _turn(message, Role.USER.value, f"{message.role}: {plain_text(message)}")


def _turn(message: StoredMessage, role: str, content: str) -> Turn:
    return Turn(Section.HISTORY, role, content, name=message.name)
