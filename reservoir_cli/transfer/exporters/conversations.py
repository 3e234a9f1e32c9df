"""Convert stored conversations into turns that other formats accept.

Results must follow their calls, and neither may be missing, as when one of the two was forgotten or
not selected. Unpaired calls and results are quoted as text, a result as the user's: what a tool
returned has no higher rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.messages import Conversation, Role, Scope, StoredMessage, call_text, plain_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import ThreadName

#: The name of messages with a model's thinking; see ``importers.content_blocks``.
_THINKING = "thinking"


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation, or an instance's messages outside conversations, in order of time.

    :param about: the metadata that an import stored.
    """

    name: ThreadName
    about: Conversation | None
    messages: Sequence[StoredMessage]

    def masked(self, mask: Redactor) -> "Thread":
        """Return the conversation with its secrets redacted."""
        partition, instance, number = self.name
        return replace(
            self,
            name=(partition, instance, number and mask.id(partition, number)),
            about=self.about and mask.conversation(partition, self.about),
            messages=mask.messages(self.messages),
        )

    def without_thinking(self) -> "Thread":
        """Return the conversation without thinking, which no program sends back to a model."""
        said = [
            each
            for each in self.messages
            if not (each.role is Role.SYSTEM and each.name == _THINKING)
        ]
        return replace(self, messages=said)


def threads(store: Store, found: Mapping[ThreadName, Sequence[int]]) -> Iterator[Thread]:
    """Read conversations one at a time.

    :param found: the ids of the messages of each conversation.
    """
    for name, ids in found.items():
        partition, instance, number = name
        about = store.known_conversations([name]).get(name) if number else None
        messages = store.by_id(ids, Scope(partition, instance))
        if messages:  # they may have been forgotten in the meantime
            yield Thread(name, about, messages)


def request_turns(thread: Thread) -> list[Turn]:
    """Return the turns of a request; messages before the first question are quoted."""
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
    """Return the turns of a conversation, with the result of each call right after it.

    Repeated results are omitted.
    """
    callers, results = _answers(thread.messages)
    answers = {(each.tool_call_id, each.content) for each in results.values()}
    made: list[Turn] = []
    for each in thread.messages:
        if each.id in callers:
            continue  # added after its call
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
    """Pair calls with results.

    :returns: the id of the calling message by the id of the result, and the result by the ids of
        the calling message and the call.
    """
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
    """Quote a message that cannot be a turn of its own."""
    return _turn(message, Role.USER.value, f"{message.role}: {plain_text(message)}")


def _turn(message: StoredMessage, role: str, content: str) -> Turn:
    return Turn(Section.HISTORY, role, content, name=message.name)
