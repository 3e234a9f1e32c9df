"""Identify a message by its content, whichever program it came from.

The proxy, a client's own log and an import by hand know a message by different ids. They share
only the conversation's id and the message's content.
"""

import json
import re
from collections.abc import Iterator
from unicodedata import normalize

from reservoir_cli.messages import Message, StoredMessage, clean_text

#: The tags of blocks that clients insert into a user's message. This pattern and those below are
#: compiled when a text needs them: most commands compare no contents.
_TAG = (
    r"<(/?)(system-reminder|environment_context|environment_details|user_instructions|"
    r"permissions|session_context|local-command-caveat|codex_internal_context|goal_context|"
    r"recommended_plugins|task-notification|teammate-message|agent-message|"
    r"cross-session-message)\b[^<>]*>"
)
#: Several words in quotation marks, with those inside escaped.
_QUOTED = r'(?s)"((?=[^"]*\s)(?:[^"\\]|\\.)+)"'
#: The tags around words that were pasted into Claude Code.
_PASTE = r'\n?</?pasted_content id="[^"<>\n]{1,100}">\n?'


def plain(text: str) -> str:
    """Return a text without the blocks that clients insert."""
    return "".join(_outside_blocks(unwrap_pastes(clean_text(text)))).strip()


def unwrap_pastes(text: str) -> str:
    """Return a text without the tags around words that were pasted into Claude Code."""
    return re.sub(_PASTE, "\n", text).strip() if "<pasted_content id=" in text else text


def unquote(prompt: str) -> str:
    """Return a prompt without the quotation marks that ``opencode run`` puts around its words."""
    match = re.fullmatch(_QUOTED, prompt.strip())
    return match[1].replace('\\"', '"') if match else prompt


def _outside_blocks(text: str) -> Iterator[str]:
    """Yield the parts of a text outside of inserted blocks."""
    blocks: list[tuple[int, int]] = []
    next_ends: dict[str, int] = {}
    for tag in reversed(list(re.finditer(_TAG, text))):
        if tag[1]:
            next_ends[tag[2]] = tag.end()
        elif tag[2] in next_ends:
            blocks.append((tag.start(), next_ends[tag[2]]))
    position = 0
    for start, end in reversed(blocks):
        if start >= position:
            yield text[position:start]
            position = end
    yield text[position:]


def session_of(conversation: str) -> str:
    """Return the session of a conversation; sub-agents append a slash and an id of their own."""
    return conversation.partition("/")[0]


def parts_of(message: Message | StoredMessage) -> list[str]:
    """Return the content of a message in parts that ignore white space and Unicode's forms.

    Programs split a reply into messages differently, so only its parts can be compared.
    """
    role, text = str(message.role), normalize("NFC", plain(message.content))
    text = unquote(text) if role == "user" else text
    paragraphs = text.split("\n\n") if role == "assistant" else [text]
    lines = [" ".join(paragraph.split()) for paragraph in paragraphs]
    texts = [[role, line, message.tool_call_id] for line in lines if line or role == "tool"]
    calls = [
        ["call", call.id] if call.id else ["call", "", call.name, call.arguments]
        for call in message.tool_calls
    ]
    return [json.dumps(part) for part in [*texts, *calls]]
