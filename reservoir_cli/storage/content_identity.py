"""Identify a message by its content, whichever program it came from.

The proxy, a client's own log and an import by hand know a message by different ids. They share
only the conversation's id and the message's content.
"""

import json
import re
from unicodedata import normalize

from reservoir_cli.messages import Message, StoredMessage, clean_text

#: The blocks that clients insert into a user's message.
_INSERTED = re.compile(
    r"<(system-reminder|environment_context|environment_details|user_instructions|"
    r"permissions|session_context|local-command-caveat)\b[^>]*>.*?</\1[^>]*>",
    re.DOTALL,
)


def plain(text: str) -> str:
    """Return a text without the blocks that clients insert."""
    return _INSERTED.sub("", clean_text(text)).strip()


def session_of(conversation: str) -> str:
    """Return the session of a conversation; sub-agents append a slash and an id of their own."""
    return conversation.partition("/")[0]


def parts_of(message: Message | StoredMessage) -> list[str]:
    """Return the content of a message in parts that ignore white space and Unicode's forms.

    Programs split a reply into messages differently, so only its parts can be compared.
    """
    role, text = str(message.role), normalize("NFC", plain(message.content))
    paragraphs = text.split("\n\n") if role == "assistant" else [text]
    lines = [" ".join(paragraph.split()) for paragraph in paragraphs]
    texts = [[role, line, message.tool_call_id] for line in lines if line or role == "tool"]
    calls = [
        ["call", call.id] if call.id else ["call", "", call.name, call.arguments]
        for call in message.tool_calls
    ]
    return [json.dumps(part) for part in [*texts, *calls]]
