"""What a message says, whichever program it came from: the identity that all sources share.

The proxy, a client's own log and an import by hand know a message by different ids. What they
share is the id of the conversation, and what was said.
"""

import json
import re

from reservoir_cli.messages import Message, StoredMessage, clean_text

#: What clients write into a user's message, and no user has said.
_NOT_SAID = re.compile(
    r"<(system-reminder|environment_context|environment_details|user_instructions|"
    r"permissions|session_context|local-command-caveat)\b[^>]*>.*?</\1[^>]*>",
    re.DOTALL,
)


def plain(text: str) -> str:
    """Return a text without what clients add to it."""
    return _NOT_SAID.sub("", clean_text(text)).strip()


def session_of(conversation: str) -> str:
    """Return the session of a conversation: helpers of an agent have one of their own below it."""
    return conversation.partition("/")[0]


def parts_of(message: Message | StoredMessage) -> list[str]:
    """Return what a message says in parts: programs split a reply into messages in several ways.

    White space does not count.
    """
    role, text = str(message.role), plain(message.content)
    paragraphs = text.split("\n\n") if role == "assistant" else [text]
    words = [" ".join(paragraph.split()) for paragraph in paragraphs]
    said = [[role, word, message.tool_call_id] for word in words if word or role == "tool"]
    calls = [
        ["call", call.id] if call.id else ["call", "", call.name, call.arguments]
        for call in message.tool_calls
    ]
    return [json.dumps(part) for part in [*said, *calls]]
