"""A fake model provider for real clients: it calls a tool once, then answers.

It speaks the protocols of Anthropic, OpenAI (both), Ollama and Gemini, on 127.0.0.1 only.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "It lost jobs."
Event = dict[str, Any]
#: A tool call: the tool's name, its arguments as JSON, and its namespace if it has one.
Tool = dict[str, str]
#: Arguments of calls to tools that some clients have.
CALLS = {
    "look": {"question": "what happened to Redis?"},
    "Bash": {"command": "echo $((6*7))", "description": "count"},
    "bash": {"command": "echo $((6*7))", "description": "count"},
    "exec_command": {"cmd": "echo $((6*7))"},
    "shell_command": {"command": "echo $((6*7))"},
}


class FakeProvider(ThreadingHTTPServer):
    """A server that records its requests, parsed in ``bodies`` and as bytes in ``raw``.

    ``answers`` are the bodies of its replies, in the order in which they were sent. ``call`` is the
    tool of ours that it calls, with the arguments.
    """

    call: tuple[str, Event] = ("recall", {"question": "what happened to Redis?"})

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[Any] = []
        self.raw: list[bytes] = []
        self.answers: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running() -> Iterator[FakeProvider]:
    """Serve until the block ends."""
    with FakeProvider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: FakeProvider

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [], "models": []}))

    def do_HEAD(self) -> None:
        self._send("text/plain", "")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        self.server.bodies.append(body)
        self.server.raw.append(raw)
        path = self.path.split("?")[0]
        tool = None if was_answered(body) else tool_of(body, *self.server.call)
        kind, text = self._answer(body, path, tool)
        self.server.answers.append(text.encode())
        self._send(kind, text)

    def _answer(self, body: Any, path: str, tool: Tool | None) -> tuple[str, str]:
        """Return the content type and the text of a reply."""
        stream = bool(body.get("stream", path.endswith("/api/chat")))
        if path.endswith("/api/chat"):
            lines = [json.dumps(line) for line in _ollama(body, tool)]
            whole = "".join(f"{line}\n" for line in lines) if stream else lines[0]
            return ("application/x-ndjson" if stream else "application/json"), whole
        for end, events in _PROTOCOLS.items():
            if path.endswith(end):
                listed = list(events(body, tool))
                if stream or end.startswith(":"):
                    return "text/event-stream", "".join(map(_event, listed))
                return "application/json", json.dumps(_WHOLE[end](listed))
        return "application/json", json.dumps({"input_tokens": 10})

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def tool_of(body: Any, wanted: str, arguments: Event) -> Tool | None:
    """Return a call of our tool by the client's name for it, or of a tool in :data:`CALLS`."""
    fallback: Tool | None = None
    for tool in body.get("tools") or []:
        for inner in tool.get("functionDeclarations") or tool.get("tools") or [tool]:
            name = str(inner.get("name") or inner.get("function", {}).get("name"))
            if name == wanted or name.endswith(f"_{wanted}"):
                space = {"namespace": str(tool["name"])} if tool.get("type") == "namespace" else {}
                return {"name": name, "arguments": json.dumps(arguments), **space}
            if name in CALLS:
                fallback = {"name": name, "arguments": json.dumps(CALLS[name])}
    return fallback


def was_answered(body: Any) -> bool:
    """Return whether a request holds the result of our tool call."""
    text = json.dumps(body)
    kinds = ('"tool_result"', '"function_call_output"', '"role": "tool"', '"functionResponse"')
    return any(kind in text for kind in kinds)


def _event(event: Event | str) -> str:
    if isinstance(event, str):
        return f"data: {event}\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


def _anthropic(body: Any, tool: Tool | None) -> Iterable[Event | str]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model")}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    block: Event = {"type": "text", "text": ""}
    delta: Event = {"type": "text_delta", "text": ANSWER}
    if tool:
        block = {"type": "tool_use", "id": "call_1", "name": tool["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": tool["arguments"]}
    reason = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 4}}
    yield {"type": "message_stop"}


def _responses(body: Any, tool: Tool | None) -> Iterable[Event | str]:
    response: Event = {"id": "resp_1", "object": "response", "status": "in_progress"}
    response |= {"created_at": 1, "model": body.get("model"), "output": []}
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    item: Event = {"type": "message", "id": "msg_1", "role": "assistant", "content": [text]}
    if tool:
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", **tool}
    item["status"] = "completed"
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    result = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": result}


def _chat(body: Any, tool: Tool | None) -> Iterable[Event | str]:
    delta: Event = {"role": "assistant", "content": ANSWER}
    if tool:
        function = {"name": tool["name"], "arguments": tool["arguments"]}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    for part, reason in ((delta, None), ({}, "tool_calls" if tool else "stop")):
        choice = {"index": 0, "delta": part, "finish_reason": reason}
        chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1}
        yield json.dumps({**chunk, "model": body.get("model"), "choices": [choice]})
    yield "[DONE]"


def _gemini(_body: Any, tool: Tool | None) -> Iterable[Event | str]:
    part: Event = {"text": ANSWER}
    if tool:
        part = {"functionCall": {"name": tool["name"], "args": json.loads(tool["arguments"])}}
    content = {"role": "model", "parts": [part]}
    yield json.dumps({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]})


def _ollama(body: Any, tool: Tool | None) -> Iterable[Event]:
    message: Event = {"role": "assistant", "content": "" if tool else ANSWER}
    if tool:
        function = {"name": tool["name"], "arguments": json.loads(tool["arguments"])}
        message["tool_calls"] = [{"function": function}]
    common = {"model": body.get("model"), "created_at": "2026-05-09T12:00:00Z"}
    result = {"done": True, "done_reason": "stop", "eval_count": 1, "prompt_eval_count": 1}
    if not body.get("stream", True):
        yield {**common, "message": message, **result}
        return
    yield {**common, "message": message, "done": False}
    yield {**common, "message": {"role": "assistant", "content": ""}, **result}


def _whole_message(events: list[Any]) -> Event:
    message: Event = events[0]["message"]
    block, delta = events[1]["content_block"], events[2]["delta"]
    if block["type"] == "text":
        block = {**block, "text": delta["text"]}
    else:
        block = {**block, "input": json.loads(delta["partial_json"])}
    return {**message, "content": [block], **events[4]["delta"]}


def _whole_completion(events: list[Any]) -> Event:
    first, last = (json.loads(event) for event in events[:2])
    message = {"role": "assistant", **first["choices"][0]["delta"]}
    choice = {"index": 0, "message": message, **last["choices"][0], "delta": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**first, "object": "chat.completion", "choices": [choice], "usage": usage}


_WHOLE = {
    "/messages": _whole_message,
    "/responses": lambda events: events[-1]["response"],
    "/chat/completions": _whole_completion,
}
_PROTOCOLS = {
    "/messages": _anthropic,
    "/responses": _responses,
    "/chat/completions": _chat,
    ":streamGenerateContent": _gemini,
}
