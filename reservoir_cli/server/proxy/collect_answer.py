"""Collect a model's answer from the JSON values of its stream."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reservoir_cli.messages import Message, ToolCall, clean_text
from reservoir_cli.server.proxy.protocols import (
    CHAT,
    MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    RESPONSES,
)
from reservoir_cli.server.proxy.provider_histories import context_reference
from reservoir_cli.transfer.importers.foreign_values import obj


@dataclass
class _Call:
    """A tool call.

    :param initial: the arguments if no pieces of them follow.
    """

    id: str = ""
    name: str = ""
    initial: str = ""
    arguments: list[str] = field(default_factory=list)

    def parse(self) -> ToolCall:
        """Return the call as it is stored."""
        arguments = "".join(self.arguments) or self.initial
        return ToolCall(clean_text(self.id), clean_text(self.name), clean_text(arguments))


@dataclass
class Answer:
    """The part of an answer that was received so far, in pieces that are joined at the end.

    :param id: the provider's.
    :param complete: whether the model reported that it had finished.
    :param reference: by which a request can continue the answer, if the provider keeps a history.
    :param tokens: tokens of the request, as the provider reports them.
    :param cached: how many of them came from the provider's cache; ``None`` if not reported.
    """

    id: str = ""
    texts: dict[Any, list[str]] = field(default_factory=dict)
    calls: dict[Any, _Call] = field(default_factory=dict)
    complete: bool = False
    failed: bool = False
    reference: str | None = None
    tokens: int = 0
    cached: int | None = None

    def message(self) -> Message | None:
        """Return the answer as a message; ``None`` if it is empty."""
        text = clean_text("\n\n".join(filter(None, self._paragraphs()))).strip()
        calls = [
            ToolCall(
                *map(clean_text, (call.id, call.name, "".join(call.arguments) or call.initial))
            )
            for call in self.calls.values()
            if call.name
        ]
        return Message("assistant", text, tool_calls=tuple(calls)) if text or calls else None

    def _paragraphs(self) -> list[str]:
        """Return the texts; adjacent blocks, into which citations split a text, are joined."""
        paragraphs, last = list[str](), None
        for key, pieces in self.texts.items():
            text = "".join(pieces)
            if _is_adjacent(last, key):
                paragraphs[-1] += text
            else:
                paragraphs.append(text)
            last = key
        return paragraphs

    def add_text(self, key: Any, text: Any) -> None:
        """Append to one of the answer's texts."""
        if isinstance(text, str):
            self.texts.setdefault(_as_key(key), []).append(text)

    def set_text(self, key: Any, text: Any) -> None:
        """Replace one of the answer's texts."""
        self.texts[_as_key(key)] = [text if isinstance(text, str) else ""]

    def add_call(self, key: Any, id: Any, name: Any, arguments: Any) -> None:
        """Add to one of the answer's tool calls."""
        key = _as_key(key)
        call = self.calls.setdefault(key, _Call())
        if name and id and call.id and id != call.id:  # some providers number all calls 0
            self.calls[key, call.id] = self.calls.pop(key)
            call = self.calls[key] = _Call()
        call.id = call.id or (id if isinstance(id, str) else "")
        call.name = call.name or (name if isinstance(name, str) else "")
        if isinstance(arguments, (dict, list)):
            call.initial = json.dumps(arguments, ensure_ascii=False)
        elif isinstance(arguments, str):
            call.arguments.append(arguments)


def _as_key(number: Any) -> Any:
    """Return the number of a text or a call; providers may send anything in its place."""
    try:
        hash(number)
    except TypeError:
        return repr(number)
    return number


def _is_adjacent(last: Any, key: Any) -> bool:
    """Return whether a text follows another in the same message of an answer."""
    if isinstance(last, tuple) and isinstance(key, tuple):  # the numbers of message and text
        return last[0] == key[0] and _is_adjacent(last[1], key[1])
    return isinstance(last, int) and isinstance(key, int) and key == last + 1


def collector_for(path: str, answer: Answer) -> Callable[[Any], None] | None:
    """Return a function that adds a JSON value to an answer; ``None`` if a path has no answers."""
    collect = _COLLECTORS.get(path)
    return (lambda value: collect(answer, obj(value))) if collect else None


def _as_objects(value: Any) -> list[Mapping[str, Any]]:
    return [obj(item) for item in value] if isinstance(value, list) else []


def _collect_usage(answer: Answer, usage: Mapping[str, Any]) -> None:
    """Collect the reported token counts; Anthropic counts cached tokens apart from the others."""
    details = obj(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    if _as_count(details.get("cached_tokens")) is not None:
        tokens = _as_count(usage.get("prompt_tokens")) or _as_count(usage.get("input_tokens"))
        answer.tokens, answer.cached = tokens or 0, _as_count(details.get("cached_tokens"))
    elif _as_count(usage.get("cache_read_input_tokens")) is not None:
        keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        answer.tokens = sum(_as_count(usage.get(key)) or 0 for key in keys)
        answer.cached = _as_count(usage.get("cache_read_input_tokens"))


def _as_count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _collect_chat(answer: Answer, value: Mapping[str, Any]) -> None:
    answer.id = answer.id or str(value.get("id") or "")
    answer.failed |= value.get("error") is not None
    _collect_usage(answer, obj(value.get("usage")))
    for choice in _as_objects(value.get("choices")):
        if choice.get("index") not in (0, None):
            continue  # further choices are not part of the conversation
        message = obj(choice.get("delta") or choice.get("message"))
        content = message.get("content")
        for part in content if isinstance(content, list) else [{"text": content}]:
            answer.add_text(0, obj(part).get("text"))
        answer.add_text("refusal", message.get("refusal"))
        answer.add_text("audio", obj(message.get("audio")).get("transcript"))
        if function := obj(message.get("function_call")):  # the form before tool calls
            answer.add_call("", None, function.get("name"), function.get("arguments"))
        for number, call in enumerate(_as_objects(message.get("tool_calls"))):
            function = obj(call.get("function") or call.get("custom"))
            arguments = function.get("arguments", function.get("input"))
            key = call.get("index", number)
            answer.add_call(key, call.get("id"), function.get("name"), arguments)
        answer.complete |= choice.get("finish_reason") is not None


def _collect_messages(answer: Answer, value: Mapping[str, Any]) -> None:
    kind, index = value.get("type"), value.get("index")
    if kind == "message":
        answer.id, answer.complete = str(value.get("id") or ""), True
        _collect_usage(answer, obj(value.get("usage")))
        for number, block in enumerate(_as_objects(value.get("content"))):
            _collect_block(answer, number, block)
    elif kind == "message_start":
        started = obj(value.get("message"))
        answer.id = str(started.get("id") or "")
        _collect_usage(answer, obj(started.get("usage")))
    elif kind == "content_block_start":
        _collect_block(answer, index, obj(value.get("content_block")))
    elif kind == "content_block_delta":
        delta = obj(value.get("delta"))
        if delta.get("type") == "text_delta":
            answer.add_text(index, delta.get("text"))
        elif delta.get("type") == "input_json_delta":
            answer.add_call(index, None, None, delta.get("partial_json"))
    elif kind == "message_stop":
        answer.complete = True
    answer.failed |= kind == "error"


def _collect_block(answer: Answer, index: Any, block: Mapping[str, Any]) -> None:
    if block.get("type") == "text":
        answer.add_text(index, block.get("text"))
    elif block.get("type") == "tool_use":
        answer.add_call(index, block.get("id"), block.get("name"), block.get("input"))


def _collect_responses(answer: Answer, value: Mapping[str, Any]) -> None:
    kind = str(value.get("type") or "")
    if kind in ("response.output_text.delta", "response.refusal.delta"):
        key = value.get("output_index"), value.get("content_index")
        answer.add_text(key, value.get("delta"))
    elif kind in ("response.completed", "response.incomplete"):
        _collect_response(answer, obj(value.get("response")))
    elif kind == "response.output_item.done":
        _collect_output(answer, value.get("output_index"), obj(value.get("item")))
    elif kind in ("response.failed", "error"):
        answer.failed = True
    elif value.get("object") == "response":
        _collect_response(answer, value)


def _collect_response(answer: Answer, value: Mapping[str, Any]) -> None:
    answer.id = str(value.get("id") or "")
    answer.reference = answer.id or None
    answer.complete = value.get("status") in ("completed", "incomplete", None)
    _collect_usage(answer, obj(value.get("usage")))
    output = _as_objects(value.get("output"))
    if output:  # replaces all deltas, whose numbers some providers omit
        answer.texts.clear()
        answer.calls.clear()
    for number, item in enumerate(output):
        _collect_output(answer, number, item)


def _collect_output(answer: Answer, index: Any, item: Mapping[str, Any]) -> None:
    """Collect a whole item, replacing what its deltas contained."""
    if item.get("type") == "message":
        for number, part in enumerate(_as_objects(item.get("content"))):
            answer.set_text((index, number), part.get("text") or part.get("refusal"))
    elif item.get("type") in ("function_call", "custom_tool_call"):
        answer.calls.pop(_as_key(index), None)
        arguments = item.get("arguments", item.get("input"))
        answer.add_call(index, item.get("call_id"), item.get("name"), arguments)


def _collect_ollama(answer: Answer, value: Mapping[str, Any]) -> None:
    message = obj(value.get("message"))
    answer.add_text(0, message.get("content"))
    answer.add_text(0, value.get("response"))
    for call in _as_objects(message.get("tool_calls")):
        function = obj(call.get("function"))
        key = len(answer.calls)
        answer.add_call(key, call.get("id"), function.get("name"), function.get("arguments"))
    answer.complete |= value.get("done") is True
    answer.reference = context_reference(value)
    answer.failed |= value.get("error") is not None


_COLLECTORS: Mapping[str, Callable[[Answer, Mapping[str, Any]], None]] = {
    CHAT: _collect_chat,
    MESSAGES: _collect_messages,
    RESPONSES: _collect_responses,
    OLLAMA_CHAT: _collect_ollama,
    OLLAMA_GENERATE: _collect_ollama,
}
