"""What a model answers, collected from a copy of the stream."""

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


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """An answer as far as it has come.

    :param id: the provider's.
    :param complete: the model said that it has finished.
    :param tokens: of the request, as the provider reports them.
    :param cached: those of them that the provider had in its cache, if it says so.
    """

    id: str = ""
    texts: dict[Any, str] = field(default_factory=dict)
    calls: dict[Any, _Call] = field(default_factory=dict)
    complete: bool = False
    failed: bool = False
    tokens: int = 0
    cached: int | None = None

    def message(self) -> Message | None:
        """Return it as a message; ``None`` if nothing was said."""
        text = clean_text("\n\n".join(filter(None, self.texts.values()))).strip()
        calls = [
            ToolCall(call.id, call.name, call.arguments)
            for call in self.calls.values()
            if call.name
        ]
        return Message("assistant", text, tool_calls=tuple(calls)) if text or calls else None

    def add_text(self, key: Any, text: Any) -> None:
        """Go on with one of its texts."""
        if isinstance(text, str):
            self.texts[key] = self.texts.get(key, "") + text

    def add_call(self, key: Any, id: Any, name: Any, arguments: Any) -> None:
        """Go on with one of its calls of tools."""
        call = self.calls.setdefault(key, _Call())
        call.id = call.id or (id if isinstance(id, str) else "")
        call.name = call.name or (name if isinstance(name, str) else "")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call.arguments += arguments if isinstance(arguments, str) else ""


def taker(path: str, answer: Answer) -> Callable[[Any], None] | None:
    """Return what adds a JSON value of a stream to an answer; ``None`` if a path has none."""
    take = _TAKERS.get(path)
    return (lambda value: take(answer, _obj(value))) if take else None


def _obj(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _take_usage(answer: Answer, usage: Mapping[str, Any]) -> None:
    """Take what a provider reports; Anthropic does not count cached tokens among the others."""
    details = _obj(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    if _count(details.get("cached_tokens")) is not None:
        tokens = _count(usage.get("prompt_tokens")) or _count(usage.get("input_tokens"))
        answer.tokens, answer.cached = tokens or 0, _count(details.get("cached_tokens"))
    elif _count(usage.get("cache_read_input_tokens")) is not None:
        keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        answer.tokens = sum(_count(usage.get(key)) or 0 for key in keys)
        answer.cached = _count(usage.get("cache_read_input_tokens"))


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _chat(answer: Answer, value: Mapping[str, Any]) -> None:
    answer.id = answer.id or str(value.get("id") or "")
    answer.failed |= "error" in value
    _take_usage(answer, _obj(value.get("usage")))
    for choice in map(_obj, _list(value.get("choices"))):
        if choice.get("index", 0) != 0:
            continue  # the others are not part of the conversation
        said = _obj(choice.get("delta") or choice.get("message"))
        answer.add_text(0, said.get("content"))
        for number, call in enumerate(map(_obj, _list(said.get("tool_calls")))):
            function = _obj(call.get("function"))
            key = call.get("index", number)
            answer.add_call(key, call.get("id"), function.get("name"), function.get("arguments"))
        answer.complete |= choice.get("finish_reason") is not None


def _messages(answer: Answer, value: Mapping[str, Any]) -> None:
    kind, index = value.get("type"), value.get("index")
    if kind == "message":
        answer.id, answer.complete = str(value.get("id") or ""), True
        _take_usage(answer, _obj(value.get("usage")))
        for number, block in enumerate(map(_obj, _list(value.get("content")))):
            _block(answer, number, block, whole=True)
    elif kind == "message_start":
        started = _obj(value.get("message"))
        answer.id = str(started.get("id") or "")
        _take_usage(answer, _obj(started.get("usage")))
    elif kind == "content_block_start":
        _block(answer, index, _obj(value.get("content_block")), whole=False)
    elif kind == "content_block_delta":
        delta = _obj(value.get("delta"))
        if delta.get("type") == "text_delta":
            answer.add_text(index, delta.get("text"))
        elif delta.get("type") == "input_json_delta":
            answer.add_call(index, None, None, delta.get("partial_json"))
    elif kind == "message_stop":
        answer.complete = True
    answer.failed |= kind == "error"


def _block(answer: Answer, index: Any, block: Mapping[str, Any], *, whole: bool) -> None:
    if block.get("type") == "text":
        answer.add_text(index, block.get("text"))
    elif block.get("type") == "tool_use":
        arguments = block.get("input") if whole else None  # the deltas follow
        answer.add_call(index, block.get("id"), block.get("name"), arguments)


def _responses(answer: Answer, value: Mapping[str, Any]) -> None:
    kind = str(value.get("type") or "")
    if kind == "response.output_text.delta":
        key = value.get("item_id"), value.get("content_index")
        answer.add_text(key, value.get("delta"))
    elif kind in ("response.completed", "response.incomplete"):
        _response(answer, _obj(value.get("response")))
    elif kind == "response.output_item.done":
        _output(answer, value.get("output_index"), _obj(value.get("item")))
    elif kind in ("response.failed", "error"):
        answer.failed = True
    elif value.get("object") == "response":
        _response(answer, value)


def _response(answer: Answer, value: Mapping[str, Any]) -> None:
    answer.id = str(value.get("id") or "")
    answer.complete = value.get("status") in ("completed", "incomplete", None)
    _take_usage(answer, _obj(value.get("usage")))
    for number, item in enumerate(map(_obj, _list(value.get("output")))):
        _output(answer, number, item)


def _output(answer: Answer, index: Any, item: Mapping[str, Any]) -> None:
    """Take a whole item; what its deltas have said already is said once."""
    if item.get("type") == "message":
        for number, part in enumerate(map(_obj, _list(item.get("content")))):
            answer.texts[item.get("id"), number] = str(part.get("text") or "")
    elif item.get("type") in ("function_call", "custom_tool_call"):
        answer.calls.pop(index, None)
        arguments = item.get("arguments", item.get("input"))
        answer.add_call(index, item.get("call_id"), item.get("name"), arguments)


def _ollama(answer: Answer, value: Mapping[str, Any]) -> None:
    said = _obj(value.get("message"))
    answer.add_text(0, said.get("content"))
    answer.add_text(0, value.get("response"))
    for call in map(_obj, _list(said.get("tool_calls"))):
        function = _obj(call.get("function"))
        key = len(answer.calls)
        answer.add_call(key, call.get("id"), function.get("name"), function.get("arguments"))
    answer.complete |= value.get("done") is True
    answer.failed |= "error" in value


_TAKERS: Mapping[str, Callable[[Answer, Mapping[str, Any]], None]] = {
    CHAT: _chat,
    MESSAGES: _messages,
    RESPONSES: _responses,
    OLLAMA_CHAT: _ollama,
    OLLAMA_GENERATE: _ollama,
}
