"""OpenAI's chat completions, which most other providers speak too."""

from collections.abc import Mapping
from typing import Any, ClassVar

from reservoir_cli.server.proxy.answer import Answer, as_count, as_objects
from reservoir_cli.server.proxy.providers.wire_protocol import Values, WireProtocol
from reservoir_cli.transfer.reading.foreign_values import obj

CHAT = "/v1/chat/completions"
#: Parts of an answer beside its text; providers count thinking that they do not report apart.
_MORE = ("reasoning", "reasoning_content", "audio", "refusal")
#: Counts of tokens that are written and not sent: thinking, and predictions that were wrong.
_UNSEEN = ("reasoning_tokens", "rejected_prediction_tokens")


class OpenAIChat(WireProtocol):
    """Chat completions."""

    name = "openai"
    lists: ClassVar[Mapping[str, str]] = {CHAT: "messages"}
    limits: ClassVar[tuple[str, ...]] = ("max_tokens", "max_completion_tokens")

    def error(self, status: int, problem: str) -> Any:
        error = {"message": problem, "type": "upstream_error", "param": None, "code": None}
        return {"error": error}

    def collect(self, answer: Answer, value: Values) -> None:
        answer.id = answer.id or str(value.get("id") or "")
        answer.failed |= value.get("error") is not None
        collect_usage(answer, obj(value.get("usage")), "prompt_tokens", "completion_tokens")
        for choice in as_objects(value.get("choices")):
            if choice.get("index") in (0, None):  # others are not part of the conversation
                _collect_choice(answer, choice)
            else:
                answer.has_more = True


def _collect_choice(answer: Answer, choice: Values) -> None:
    message = obj(choice.get("delta") or choice.get("message"))
    answer.has_more |= any(message.get(key) for key in _MORE)
    content = message.get("content")
    for part in content if isinstance(content, list) else [{"text": content}]:
        answer.add_text(0, obj(part).get("text"))
    answer.add_text("refusal", message.get("refusal"))
    answer.add_text("audio", obj(message.get("audio")).get("transcript"))
    if function := obj(message.get("function_call")):  # the form before tool calls
        answer.add_call("", None, function.get("name"), function.get("arguments"))
    for number, call in enumerate(as_objects(message.get("tool_calls"))):
        function = obj(call.get("function") or call.get("custom"))
        arguments = function.get("arguments", function.get("input"))
        key = call.get("index", number)
        answer.add_call(key, call.get("id"), function.get("name"), arguments)
    answer.complete |= choice.get("finish_reason") is not None


def collect_usage(answer: Answer, usage: Values, key: str, written: str) -> None:
    """Collect the tokens of the request and of the answer; cached and unseen ones are parts."""
    if (count := as_count(usage.get(written))) is not None:
        details = obj(usage.get(f"{written}_details"))
        answer.written = max(0, count - sum(as_count(details.get(key)) or 0 for key in _UNSEEN))
    cached = as_count(obj(usage.get(f"{key}_details")).get("cached_tokens"))
    if cached is not None:
        answer.tokens, answer.cached = as_count(usage.get(key)) or 0, cached
