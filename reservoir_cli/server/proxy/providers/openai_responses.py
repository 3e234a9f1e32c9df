"""OpenAI's Responses, which Codex speaks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from reservoir_cli.server.proxy.answer import Answer, as_objects
from reservoir_cli.server.proxy.providers.openai_chat import OpenAIChat, collect_usage
from reservoir_cli.server.proxy.providers.wire_protocol import Values
from reservoir_cli.transfer.reading.foreign_values import obj

RESPONSES = "/v1/responses"


class OpenAIResponses(OpenAIChat):
    """Responses; the errors are those of chat completions."""

    lists: ClassVar[Mapping[str, str]] = {RESPONSES: "input"}
    limits: ClassVar[tuple[str, ...]] = ("max_output_tokens",)

    def collect(self, answer: Answer, value: Values) -> None:
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


def _collect_response(answer: Answer, value: Values) -> None:
    answer.id = str(value.get("id") or "")
    answer.reference = answer.id or None
    answer.complete = value.get("status") in ("completed", "incomplete", None)
    collect_usage(answer, obj(value.get("usage")), "input_tokens", "output_tokens")
    output = as_objects(value.get("output"))
    if output:  # replaces all deltas, whose numbers some providers omit
        answer.texts.clear()
        answer.calls.clear()
    for number, item in enumerate(output):
        _collect_output(answer, number, item)


def _collect_output(answer: Answer, index: Any, item: Values) -> None:
    """Collect a whole item, replacing what its deltas contained."""
    if item.get("type") == "message":
        for number, part in enumerate(as_objects(item.get("content"))):
            answer.set_text((index, number), part.get("text") or part.get("refusal"))
    elif item.get("type") in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments", item.get("input"))
        answer.set_call(index, item.get("call_id"), item.get("name"), arguments)
    elif item.get("type") != "reasoning":  # whose tokens are reported apart
        answer.has_more = True
