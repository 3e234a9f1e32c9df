"""Count the tokens of a message in a provider's shape. Pure."""

import json
from typing import Any

from reservoir_cli.chat.message_shapes import ChatMessage, content_of, is_item
from reservoir_cli.tokens.counter import PER_MESSAGE, TokenCounter

ATTACHMENT_TOKENS = 1_600  # tokens of a picture, file or recording, if no setting says how many
#: Types of the parts that hold one, or refer to it.
_ATTACHMENTS = frozenset(
    "image image_url input_image output_image computer_screenshot image_generation_call "
    "audio audio_url input_audio output_audio video video_url input_video "
    "file input_file document document_url".split()
)
#: Keys of parts that hold one: Gemini's, and Bedrock's beside its source.
_HOLDING = ("inlineData", "inline_data", "fileData", "file_data")
_HOLDING_SOURCE = ("image", "video", "document")
_WRITTEN = ("text", "content")  # types of the source of a document that is plain text
_DEEPEST = 8  # parts are searched for attachments down to this depth; no API nests them deeper
#: Keys of a message that hold more text.
_MORE_TEXT = ("reasoning_content", "reasoning", "thinking", "refusal", "name", "tool_call_id")
#: Keys of a part with the arguments of a call, in which nothing is an attachment.
_ARGUMENTS = ("input", "arguments", "args")


def message_cost(
    message: ChatMessage, counter: TokenCounter, attachment_tokens: int = ATTACHMENT_TOKENS
) -> int:
    """Count a message's text, calls and name, attachments by a setting, and the rest as JSON."""
    parts, attachments = _parts(message)
    text = "\n".join(part for part in parts if part)
    tokens = counter.count(text) if text else 0
    return tokens + attachments * attachment_tokens + PER_MESSAGE


def _parts(message: ChatMessage) -> tuple[list[str], int]:
    if is_item(message):
        item, attachments = _without_attachments(message)
        return ([] if item is None else [_compact(item)]), attachments
    content, attachments = _without_attachments(content_of(message))
    texts = [_part_text(part) for part in content] if isinstance(content, list) else []
    if isinstance(content, str):
        texts.append(content)
    elif content is not None and not isinstance(content, list):
        texts.append(_compact(content))
    calls = [message.get("tool_calls"), message.get("function_call")]
    texts += [_compact(value) for value in calls if value]
    for value in map(message.get, _MORE_TEXT):
        if value:
            texts.append(value if isinstance(value, str) else _compact(value))
    images = message.get("images")  # of Ollama
    return texts, attachments + (len(images) if isinstance(images, list) else 0)


def _without_attachments(value: Any, depth: int = 0) -> tuple[Any, int]:
    if depth > _DEEPEST or not isinstance(value, dict | list):
        return value, 0
    if isinstance(value, list):
        items = [_without_attachments(item, depth + 1) for item in value]
        remaining = [item for item, count in items if item is not None or not count]
        return remaining, sum(count for _, count in items)
    if _is_attachment(value):
        return None, 1
    total, rest = 0, {}
    for key, item in value.items():
        remainder, count = (item, 0) if key in _ARGUMENTS else _without_attachments(item, depth + 1)
        total += count
        if remainder is not None or not count:
            rest[key] = remainder
    return rest, total


def _is_attachment(part: dict[Any, Any]) -> bool:
    if any(isinstance(part.get(key), dict) for key in _HOLDING):
        return True
    held = [part[key] for key in _HOLDING_SOURCE if isinstance(part.get(key), dict)]
    if any(isinstance(value.get("source"), dict) for value in held):
        return True
    kind, source = part.get("type"), part.get("source")
    if not isinstance(kind, str) or kind not in _ATTACHMENTS:
        return False
    return not (isinstance(source, dict) and source.get("type") in _WRITTEN)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type") in ("text", "input_text", "output_text"):
        text = part.get("text")
        if isinstance(text, str):
            return text
    return _compact(part)


def _compact(value: Any) -> str:
    # Some clients put objects of their own into messages.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
