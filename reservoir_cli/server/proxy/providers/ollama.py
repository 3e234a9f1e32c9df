"""Ollama's own protocol."""

from collections.abc import Mapping
from typing import Any, ClassVar

from reservoir_cli.server.proxy.answer import Answer, as_count, as_objects
from reservoir_cli.server.proxy.provider_histories import context_reference
from reservoir_cli.server.proxy.providers.wire_protocol import Values, WireProtocol
from reservoir_cli.transfer.reading.foreign_values import obj

OLLAMA_CHAT, OLLAMA_GENERATE = "/api/chat", "/api/generate"


class Ollama(WireProtocol):
    """Chats, and completions of one prompt."""

    name = "ollama"
    lists: ClassVar[Mapping[str, str]] = {OLLAMA_CHAT: "messages", OLLAMA_GENERATE: "prompt"}
    limits: ClassVar[tuple[str, ...]] = ("max_tokens",)

    def error(self, status: int, problem: str) -> Any:
        return {"error": problem}

    def collect(self, answer: Answer, value: Values) -> None:
        message = obj(value.get("message"))
        answer.add_text(0, message.get("content"))
        answer.add_text(0, value.get("response"))
        for call in as_objects(message.get("tool_calls")):
            function = obj(call.get("function"))
            key = len(answer.calls)
            answer.add_call(key, call.get("id"), function.get("name"), function.get("arguments"))
        answer.has_more |= bool(message.get("thinking") or value.get("thinking"))
        answer.complete |= value.get("done") is True
        answer.written = as_count(value.get("eval_count"))
        answer.reference = context_reference(value)
        answer.failed |= value.get("error") is not None

    def window(self, values: Values) -> int | None:
        window = obj(values.get("options")).get("num_ctx")
        return window if type(window) is int and window > 0 else None

    def wants_one_token(self, values: Values) -> bool:
        """Return whether a request only checks a model; 0 means no limit, too."""
        return super().wants_one_token(values) or obj(values.get("options")).get("num_predict") == 1

    def completes_code(self, values: Values) -> bool:
        return values.get("raw") is True or bool(values.get("suffix"))
