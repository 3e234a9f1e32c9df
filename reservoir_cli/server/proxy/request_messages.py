"""Read the messages of a request, without the text that clients and the proxy add to them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reservoir_cli.chat.message_shapes import is_instruction
from reservoir_cli.context.render import context_frame
from reservoir_cli.messages import Message, ToolCall, call_from_dict
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import content_text
from reservoir_cli.transfer.reading.foreign_values import objects
from reservoir_cli.transfer.skip_duplicates import normalise

_SERVER_TOOLS = ("server_tool_use", "mcp_tool_use")  # blocks of tools that the provider runs
#: Open WebUI's documents before a question. It sends the question alone in the next request.
_DOCUMENTS = re.compile(
    r"(?s)### Task:\s+Respond to the user query using the provided context\b.*</context>(.+)"
)
_QUERY = re.compile(r"(?s)\s*<user_query>(.+?)</user_query>")


def read_element(element: Any) -> list[Message]:
    """Return the messages of one element of a request's list; none if it is not a message."""
    if not isinstance(element, dict):
        return []
    try:
        return [
            message
            for message in _read(element)
            if message.role == "tool"
            or (message.role != "system" and (message.content or message.tool_calls))
        ]
    except ValueError:
        return []


def _read(element: dict[str, Any]) -> Iterator[Message]:
    kind, role = element.get("type"), element.get("role")
    if kind in ("function_call", "custom_tool_call"):
        yield Message("assistant", "", tool_calls=(_response_call(element),))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield Message("tool", _text(element.get("output")), tool_call_id=_id(element, "call_id"))
    elif role in ("tool", "function"):
        yield Message(
            "tool", _text(element.get("content")), tool_call_id=_id(element, "tool_call_id")
        )
    elif role == "assistant" and (
        listed := element.get("tool_calls") or objects([element.get("function_call")])
    ):
        calls = [call_from_dict(call) for call in (listed if isinstance(listed, list) else ())]
        yield Message("assistant", _text(element.get("content")), tool_calls=tuple(calls))
    elif role in ("user", "assistant"):
        content = element.get("content")
        content = _reply_blocks(content) if role == "assistant" else content
        yield from map(_normalise, content_blocks.messages(role, content, None))


def _reply_blocks(content: Any) -> Any:
    """Return the blocks of a reply as one message, without tools that the provider runs."""
    if not isinstance(content, list):
        return content
    blocks, was_text = list[Any](), False
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        text = block.get("text") if kind in ("text", "output_text") else None
        if isinstance(text, str) and was_text:
            blocks[-1] = {"type": "text", "text": blocks[-1]["text"] + text}
        elif kind not in _SERVER_TOOLS and not str(kind).endswith("tool_result"):
            blocks.append(block)
        was_text = isinstance(text, str)
    return blocks


def _normalise(message: Message) -> Message:
    content = normalise(message.content)
    return replace(message, content=_question(content) if message.role == "user" else content)


def _question(content: str) -> str:
    if not (documents := _DOCUMENTS.match(content)):
        return content
    query = _QUERY.match(documents[1])
    return (query or documents)[1].strip() or content


def _text(content: Any) -> str:
    return normalise(content_text(content))


def _id(element: dict[str, Any], key: str) -> str | None:
    value = element.get(key)
    return value if isinstance(value, str) else None


def _response_call(element: dict[str, Any]) -> ToolCall:
    arguments = element.get("arguments", element.get("input", ""))
    return call_from_dict(
        {"id": element.get("call_id"), "name": element.get("name"), "arguments": arguments}
    )


def join_replies(messages: Iterable[Message]) -> Iterator[Message]:
    """Join adjacent assistant messages: some protocols list a reply's text and calls separately."""
    previous: Message | None = None
    for message in messages:
        if previous and previous.role == message.role == "assistant":
            content = "\n\n".join(filter(None, (previous.content, message.content)))
            calls = previous.tool_calls + message.tool_calls
            previous = Message("assistant", content, tool_calls=calls)
            continue
        if previous:
            yield previous
        previous = message
    if previous:
        yield previous


def is_system(element: Any) -> bool:
    """Return whether an element is an instruction; one may follow the newest question."""
    return isinstance(element, dict) and is_instruction(element)


def is_of_user(element: Any) -> bool:
    """Return whether an element belongs to a question: the user's, or instructions of hooks."""
    return is_system(element) or (isinstance(element, dict) and element.get("role") == "user")


def has_frame(element: Any) -> bool:
    """Return whether a context that Reservoir printed is in a text of a question's turn."""
    if not is_of_user(element):
        return False
    content = element.get("content")
    texts = (
        [content] if isinstance(content, str) else [block.get("text") for block in objects(content)]
    )
    return any(isinstance(text, str) and context_frame.unwrap(text).contexts for text in texts)


def text_of(content: Any) -> str:
    """Return the text of a message's content; ``""`` if it is malformed."""
    try:
        return content_text(content)
    except ValueError:
        return ""


def system_prompt(values: Mapping[str, Any]) -> str:
    """Return the instructions of a request, given its members."""
    contents = [values.get("system"), values.get("instructions")]
    contents += [item.get("content") for item in _first(values) if is_system(item)]
    return "\n".join(map(text_of, contents))


def first_texts(values: Mapping[str, Any]) -> list[str]:
    """Return each text of a request's first messages, given its members, without instructions."""
    contents = [item.get("content") for item in _first(values) if isinstance(item, dict)]
    parts = [content if isinstance(content, list) else [content] for content in contents]
    return [text_of([part] if isinstance(part, dict) else part) for each in parts for part in each]


def _first(values: Mapping[str, Any]) -> list[Any]:
    lists = (values.get(key) for key in ("messages", "input"))
    return [item for elements in lists if isinstance(elements, list) for item in elements[:3]]
