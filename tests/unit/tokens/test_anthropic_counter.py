"""The counter that asks the provider, with a local server."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from reservoir_cli import Message, ModelUnavailableError, Reservoir
from reservoir_cli.tokens import load_counter

SETTINGS = {
    "token_counter": "anthropic:claude-sonnet-4-6",
    "embedding_model": "nobody/absent-model",
}


class Endpoint:
    """Count a token for every four characters of text, and record requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.times, self.more = 1.0, 0


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            endpoint.asked.append({"path": self.path, **body})
            endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = json.dumps(
                {"input_tokens": round(endpoint.times * count(body)) + endpoint.more}
            ).encode()
            self.send_response(endpoint.status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield endpoint
        server.shutdown()
        thread.join()


def count(body: dict[str, Any]) -> int:
    texts = [block.get("text", "") for message in body["messages"] for block in message["content"]]
    return sum(map(len, [body.get("system", ""), *texts])) // 4


def test_a_context_uses_the_counts_of_the_provider(endpoint, tmp_path):
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS) as reservoir:
        reservoir.ingest([Message("user", f"word {n} " * 20) for n in range(40)], embed=False)
        window = reservoir.context("word?", budget=600, format="anthropic", system="Be brief.")
        assert window.used <= 600
        assert window.selection.history
        body = window.to()
        assert isinstance(body, dict)
        fixed = sum(window.budget.sections.values())
        assert window.used == max(fixed, count(body))
    last = endpoint.asked[-1]
    assert last["path"] == "/v1/messages/count_tokens"
    assert last["model"] == "claude-sonnet-4-6"
    assert last["messages"] == body["messages"]
    assert "max_tokens" not in last
    assert endpoint.headers[-1]["x-api-key"] == "a key"


def test_messages_are_stored_without_a_request(endpoint, tmp_path):
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS) as reservoir:
        [stored] = reservoir.ingest([Message("user", "only this")], embed=False)
    assert stored.tokens == load_counter("approximate").count("only this")
    assert endpoint.asked == []


def test_messages_are_stored_without_a_key_and_offline(tmp_path):
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS, offline=True) as reservoir:
        [stored] = reservoir.ingest([Message("user", "only this")], embed=False)
    assert stored.counter.startswith("approximate ")


def test_it_is_refused_offline(endpoint):
    with pytest.raises(ModelUnavailableError, match="--offline"):
        load_counter("anthropic:claude-sonnet-4-6", offline=True)
    assert endpoint.asked == []


def test_it_is_refused_without_a_key(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelUnavailableError, match="key"):
        load_counter("anthropic:claude-sonnet-4-6")


@pytest.mark.parametrize("status", [401, 500])
def test_a_provider_that_does_not_count_is_an_error(endpoint, tmp_path, status):
    endpoint.status = status
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS) as reservoir:
        reservoir.ingest([Message("user", "secret words")], embed=False)
        with pytest.raises(ModelUnavailableError, match=str(status)) as caught:
            reservoir.context("words?", budget=300)
    assert "secret" not in str(caught.value)


def test_a_provider_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    counter = load_counter("anthropic:claude-sonnet-4-6")
    with pytest.raises(ModelUnavailableError, match="no count"):
        counter.count_request({"messages": []})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "url", ["nonsense", "http://a b", "file:///none", "http://127.0.0.1:99999"]
)
def test_an_address_that_is_none_is_an_error(monkeypatch, url):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    counter = load_counter("anthropic:claude-sonnet-4-6")
    with pytest.raises(ModelUnavailableError, match="no count"):
        counter.count_request({"messages": []})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "answer",
    [
        "no status line",
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        'HTTP/1.1 200 OK\r\n\r\n{"input_tokens": 1e999}',
        "HTTP/1.1 200 OK\r\n\r\n[]",
    ],
)
def test_a_broken_answer_is_an_error(monkeypatch, answer):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    counter = load_counter("anthropic:claude-sonnet-4-6")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")

        def reply() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as request:
                while request.readline().strip():
                    pass
                request.read1(1 << 16)
                connection.sendall(answer.encode())

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(ModelUnavailableError, match="no count"):
            counter.count_request({"messages": []})  # type: ignore[attr-defined]
        thread.join()


@pytest.mark.parametrize("times", [0.4, 0.7, 1.0, 1.6, 3.0])
@pytest.mark.parametrize("budget", [1_000, 4_000])
def test_three_requests_fill_the_budget_to_within_5_percent(endpoint, tmp_path, times, budget):
    endpoint.times = times
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS) as reservoir:
        size = budget // 1_000
        messages = [Message("user", f"word {n} " * (1 + n % 4) * size) for n in range(600)]
        reservoir.ingest(messages, embed=False)
        window = reservoir.context("word?", budget=budget, format="anthropic")
    assert len(endpoint.asked) <= 3
    assert 0.95 * budget <= window.used <= budget


def test_a_provider_whose_counts_always_exceed_the_budget_is_reported(endpoint, tmp_path):
    endpoint.more = 10_000
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS) as reservoir:
        reservoir.ingest([Message("user", "a word")], embed=False)
        window = reservoir.context("word?", budget=600, format="anthropic")
        document = window.to("json")
    assert len(endpoint.asked) <= 3
    assert any("more than the budget" in note for note in window.notes)
    assert isinstance(document, dict)
    assert document["truncated"]
    assert f"{window.used - 600:,} over budget" in window.summary()


def test_sections_without_a_message_are_counted_here(endpoint, tmp_path):
    with Reservoir.open(tmp_path / "a.db", settings=SETTINGS) as reservoir:
        window = reservoir.context("", budget=600, system="Be brief.")
    assert endpoint.asked == []
    assert window.used == sum(window.budget.sections.values())
    assert not window.truncated
