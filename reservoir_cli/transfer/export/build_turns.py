"""Convert stored conversations into turns that other formats accept.

Results follow their calls; unpaired ones are quoted, as the user's: a tool has no higher rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reservoir_cli.chat.tool_calls import pair_calls
from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.messages import (
    THINKING,
    Conversation,
    ConversationName,
    Role,
    Scope,
    StoredMessage,
    call_text,
    plain_text,
    title_of,
)
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.store import Store


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation, or an instance's messages outside conversations, in order of time."""

    name: ConversationName
    about: Conversation | None
    messages: Sequence[StoredMessage]

    @property
    def title(self) -> str | None:
        """The title of a conversation, or else its first question, shortened."""
        if self.about is None:
            return None
        questions = (row.content for row in self.messages if row.role is Role.USER)
        return self.about.title or next(filter(None, map(title_of, questions)), None)

    def masked(self, mask: Redactor) -> "StoredConversation":
        """Return the conversation with its secrets redacted."""
        partition, instance, conversation_id = self.name
        return replace(
            self,
            name=(partition, instance, conversation_id and mask.id(partition, conversation_id)),
            about=self.about and mask.conversation(partition, self.about),
            messages=mask.messages(self.messages),
        )

    def without_thinking(self) -> "StoredConversation":
        """Return the conversation without thinking, which no program sends back to a model."""
        messages = [
            message
            for message in self.messages
            if not (message.role is Role.SYSTEM and message.name == THINKING)
        ]
        return replace(self, messages=messages)


def read_conversations(
    store: Store, ids_by_conversation: Mapping[ConversationName, Sequence[int]]
) -> Iterator[StoredConversation]:
    """Read conversations one at a time, by the ids of their messages."""
    for name, ids in ids_by_conversation.items():
        partition, instance, conversation_id = name
        about = store.known_conversations([name]).get(name) if conversation_id else None
        messages = store.by_id(ids, Scope(partition, instance))
        if messages:  # they may have been forgotten in the meantime
            yield StoredConversation(name, about, messages)


def build_turns(conversation: StoredConversation) -> list[Turn]:
    """Return the turns of a conversation; messages before the first question are quoted."""
    messages = conversation.messages
    questions = (
        index
        for index, message in enumerate(messages)
        if message.role is Role.USER and message.content.strip()
    )
    first = next(questions, len(messages))
    leading = [message for message in messages[:first] if plain_text(message).strip()]
    quoted = [
        _make_turn(message, message.role.value, message.content)
        if message.role is Role.SYSTEM
        else _quote(message)
        for message in leading
    ]
    return quoted + _answered_turns(messages[first:])


def count_quoted(conversation: StoredConversation) -> int:
    """Count the messages that :func:`build_turns` quotes in a turn of the user."""
    texts = [message for message in conversation.messages if plain_text(message).strip()]
    own = sum(message.role is Role.USER for message in texts)
    return sum(turn.role == Role.USER for turn in build_turns(conversation)) - own


def _answered_turns(messages: Sequence[StoredMessage]) -> list[Turn]:
    """Return the turns of messages, with the result of each call right after it."""
    pairs = pair_calls(messages)
    results = {
        (messages[caller].id, messages[caller].tool_calls[number].id): messages[index]
        for index, (caller, number) in pairs.items()
    }
    answers = {(message.tool_call_id, message.content) for message in results.values()}
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        if index in pairs:
            continue  # added after its call
        if message.role is Role.TOOL:
            if (message.tool_call_id, message.content) not in answers:
                turns.append(_quote(message))
            continue
        answered_calls = [call for call in message.tool_calls if (message.id, call.id) in results]
        open_calls = [call_text(call) for call in message.tool_calls if call not in answered_calls]
        content = "\n".join(filter(None, [message.content, *open_calls]))
        if content.strip() or answered_calls:
            turn = _make_turn(message, message.role.value, content)
            turns.append(turn._replace(tool_calls=tuple(answered_calls)))
        turns += [
            _make_turn(result, Role.TOOL.value, result.content)._replace(tool_call_id=call.id)
            for call in answered_calls
            for result in [results[message.id, call.id]]
        ]
    return turns


def _quote(message: StoredMessage) -> Turn:
    return _make_turn(message, Role.USER.value, f"{message.role}: {plain_text(message)}")


def _make_turn(message: StoredMessage, role: str, content: str) -> Turn:
    return Turn(Section.HISTORY, role, content, name=message.name)
