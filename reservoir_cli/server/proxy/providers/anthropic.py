"""Anthropic's messages, which Claude Code speaks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from reservoir_cli.server.proxy.answer import Answer, as_count, as_objects
from reservoir_cli.server.proxy.providers.wire_protocol import Values, WireProtocol
from reservoir_cli.transfer.reading.foreign_values import obj

MESSAGES, COUNT_TOKENS = "/v1/messages", "/v1/messages/count_tokens"
#: Requests with this header are of this protocol, whatever their path.
VERSION_HEADER = "anthropic-version"
#: Counts of the request's tokens, which add up.
_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Anthropic(WireProtocol):
    """Messages."""

    name = "anthropic"
    lists: ClassVar[Mapping[str, str]] = dict.fromkeys((MESSAGES, COUNT_TOKENS), "messages")
    limits: ClassVar[tuple[str, ...]] = ("max_tokens",)

    def is_counting(self, path: str) -> bool:
        return path == COUNT_TOKENS

    def error(self, status: int, problem: str) -> Any:
        return {"type": "error", "error": {"type": "api_error", "message": problem}}

    def collect(self, answer: Answer, value: Values) -> None:
        kind, index = value.get("type"), value.get("index")
        if kind == "message":
            answer.id, answer.complete = str(value.get("id") or ""), True
            _collect_usage(answer, obj(value.get("usage")))
            for number, block in enumerate(as_objects(value.get("content"))):
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
        elif kind == "message_delta":
            _collect_usage(answer, obj(value.get("usage")))
        answer.complete |= kind == "message_stop"
        answer.failed |= kind == "error"


def _collect_block(answer: Answer, index: Any, block: Values) -> None:
    if block.get("type") == "text":
        answer.add_text(index, block.get("text"))
    elif block.get("type") == "tool_use":
        answer.add_call(index, block.get("id"), block.get("name"), block.get("input"))
    else:  # such as thinking
        answer.has_more = True


def _collect_usage(answer: Answer, usage: Values) -> None:
    """Collect the reported token counts, where cached tokens are counted apart from the others."""
    written = as_count(usage.get("output_tokens"))
    answer.written = answer.written if written is None else written
    cached = as_count(usage.get("cache_read_input_tokens"))
    if cached is not None:
        answer.tokens, answer.cached = sum(as_count(usage.get(key)) or 0 for key in _USAGE), cached
