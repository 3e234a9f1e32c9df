"""The plugin for ``llm``, alone and in a real ``llm`` with a model that calls its tools."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from reservoir_cli import Message, Reservoir, Scope, UsageError
from reservoir_cli.agents import llm_answers
from reservoir_cli.context.render.context_frame import unwrap

ANSWER = "We dropped Redis because it lost 214 jobs in a failover."
PATIENCE = 300
real_llm = pytest.mark.skipif(
    find_spec("llm") is None or not entry_points(group="llm", name="reservoir"),
    reason="llm and reservoir-cli are not installed in one environment: pip install llm",
)


@pytest.fixture
def store(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store an answer in the default partition, without a model."""
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    message = Message("user", ANSWER, created_at=datetime(2026, 2, 13, 12, tzinfo=UTC))
    with Reservoir.open() as reservoir:
        reservoir.ingest([message], partition="work", embed=False)
    return home


def test_a_fragment_holds_the_recalled_messages(store, capsys, monkeypatch):
    monkeypatch.setenv("RESERVOIR_PARTITION", "work")
    text = llm_answers.recall("why did we drop Redis?")
    assert f"[#1] quoted 2026-02-13, user: {ANSWER}" in text
    assert unwrap(f"{text}\n\nIs it so?").text == "Is it so?"  # when llm's log is imported
    assert llm_answers.recall("what is the capital of Mongolia?") == ""
    assert capsys.readouterr() == ("", "reservoir: nothing about this was found\n")


def test_the_working_directory_selects_the_partition(store, tmp_path, monkeypatch):
    (store / "reservoir.toml").write_text(f'[projects]\n"{tmp_path}" = "work"\n', encoding="utf-8")
    assert llm_answers.recall("why did we drop Redis?") == ""
    monkeypatch.chdir(tmp_path)
    assert ANSWER in llm_answers.recall("why did we drop Redis?")


def test_tools_answer_check_their_arguments_and_store_notes(store):
    stored = llm_answers.answer("remember", {"text": "The zeppelin is blue."})
    assert stored.splitlines()[0] == "Stored as [#2]."
    assert "The zeppelin is blue." in llm_answers.answer("recall", {"question": "which zeppelin?"})
    assert "[#2]" in llm_answers.answer("search", {"query": "zeppelin", "limit": 3})
    with pytest.raises(UsageError, match="limit"):
        llm_answers.answer("search", {"query": "zeppelin", "limit": "many"})
    with Reservoir.open() as reservoir:
        (note,) = reservoir.view(Scope("default"), count=0)
    assert (note.role.value, note.source) == ("assistant", "mcp")


class Provider(BaseHTTPRequestHandler):
    """A provider whose model calls the tool ``Reservoir_recall`` once, then answers."""

    requests: list[dict]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body)
        message: dict = {"role": "assistant", "content": "Done."}
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            arguments = json.dumps({"question": "why did we drop Redis?"})
            function = {"name": "Reservoir_recall", "arguments": arguments}
            message["content"] = None
            message["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        data = json.dumps({**answer, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[ThreadingHTTPServer]:
    handler = type("Handler", (Provider,), {"requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def llm(home: Path, *arguments: str, port: int = 0) -> str:
    """Run real ``llm`` in a temporary home."""
    folder = home / "llm"
    folder.mkdir(exist_ok=True)
    model = f'- model_id: m\n  model_name: m\n  api_base: "http://127.0.0.1:{port}/v1"\n'
    file = folder / "extra-openai-models.yaml"
    file.write_text(model + "  supports_tools: true\n  can_stream: false\n", encoding="utf-8")
    env = {**os.environ, "LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "x", "HOME": str(home)}
    result = subprocess.run(
        [sys.executable, "-m", "llm", *arguments],
        capture_output=True,
        env={**env, "RESERVOIR_PARTITION": "work"},
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


@real_llm
def test_llm_lists_the_loader_and_the_toolbox(store):
    assert "reservoir:" in llm(store, "fragments", "loaders")
    tools = llm(store, "tools", "list")
    for name in ("recall", "search", "remember"):
        assert f"Reservoir_{name}(" in tools


@real_llm
def test_a_fragment_goes_to_the_model_before_the_prompt(store, provider):
    question = "reservoir:why did we drop Redis?"
    assert llm(store, "-m", "m", "-f", question, "Is it so?", port=provider.server_port)
    (request,) = provider.RequestHandlerClass.requests
    content = request["messages"][-1]["content"]
    assert ANSWER in content
    assert unwrap(content).text == "Is it so?"


@real_llm
def test_a_model_calls_the_tools(store, provider):
    out = llm(store, "-m", "m", "-T", "Reservoir", "Why no Redis?", port=provider.server_port)
    assert out == "Done.\n"
    offered, answered = provider.RequestHandlerClass.requests
    assert len(offered["tools"]) == 3
    assert answered["messages"][-1]["role"] == "tool"
    assert ANSWER in answered["messages"][-1]["content"]


@real_llm
def test_starting_llm_imports_one_module_only(store):
    script = """
import sys
import llm
llm.plugins.load_plugins()
llm.get_tools(), llm.get_fragment_loaders()
print(*sorted(name for name in sys.modules if name.startswith("reservoir_cli")))
"""
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [
        *("reservoir_cli", "reservoir_cli.agents", "reservoir_cli.agents.llm_plugin")
    ]
