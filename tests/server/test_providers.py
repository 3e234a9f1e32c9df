"""Paths of every provider lead to its upstream; a request of a known form is enriched."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proxied
import pytest
from dialogue import ANSWER, HELLO, OLDER, QUESTION, chat, completion, texts
from proxied import Served
from upstream import Upstream

from reservoir_cli.server.proxy.endpoint import url_of
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.server.proxy.providers.openai_responses import RESPONSES
from reservoir_cli.server.proxy.providers.registry import route_of
from reservoir_cli.server.proxy.scoped_paths import parse_path
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.upstreams import Upstream as UpstreamSetting

#: Paths, the upstream that each leads to by default, and the form of its requests.
PATHS: dict[str, tuple[str, str | None]] = {
    "/openai/deployments/my-gpt/chat/completions": ("azure", CHAT),
    "/openai/deployments/v1/chat/completions": ("azure", CHAT),
    "/openai/v1/chat/completions": ("azure", CHAT),
    "/openai/v1/responses": ("azure", RESPONSES),
    "/openai/responses": ("azure", RESPONSES),
    "/openai/deployments/my-gpt/embeddings": ("azure", None),
    "/openai/models": ("azure", None),
    "/v1beta/openai/chat/completions": ("gemini", CHAT),
    "/v1beta/models/gemini-3-pro:generateContent": ("gemini", None),
    "/v1beta/models/gemini-3-pro:streamGenerateContent": ("gemini", None),
    "/v1/models/gemini-3-pro:generateContent": ("gemini", None),
    "/v1alpha/cachedContents": ("gemini", None),
    "/v1/models": ("openai", None),
    "/v1/models/gpt-6": ("openai", None),
    "/api/chat": ("ollama", "/api/chat"),
    "/v1/messages": ("anthropic", "/v1/messages"),
    "/v1/messages/batches": ("anthropic", None),
}


@pytest.fixture
def everyone(store_path: Path, provider: Upstream) -> Iterator[Served]:
    """Run a server with a provider behind each of its upstreams."""
    names = (*upstreams.DEFAULTS, "azure")
    with proxied.serving(store_path, {n: f"{provider.url}/{n}-base" for n in names}) as server:
        yield server


@pytest.mark.usefixtures("older")
def test_every_path_leads_to_its_upstream_and_known_forms_are_enriched(everyone, provider, client):
    provider.reply = completion()
    for path, (name, shape) in PATHS.items():
        key = "input" if shape == RESPONSES else "messages"
        body: dict[str, Any] = {"model": "m", key: [HELLO], "contents": [{"parts": []}]}
        for scope in ("", "/default/x"):
            answer = client.post(f"{everyone.root}{scope}{path}?a=1", json=body)
            assert answer.status_code == 200, path
            sent = provider.requests[-1]
            assert sent.path == f"/{name}-base{path}?a=1"
            assert (OLDER in sent.body.decode()) == (shape is not None), path
            assert (json.loads(sent.body) == body) == (shape is None), path


def test_the_exchange_with_azure_is_stored(everyone, provider, client):
    provider.reply = completion()
    path = "/openai/deployments/my-gpt/chat/completions?api-version=2026-01-01"
    client.post(everyone.root + path, json=chat(HELLO))
    assert texts(everyone, 1) == [f"user: {QUESTION}", f"assistant: {ANSWER}"]


def test_azure_needs_a_url_and_says_which(served, provider, client):
    answer = client.post(f"{served.root}/openai/v1/responses", json=chat(HELLO))
    assert answer.status_code == 404
    assert "reservoir config set upstreams.azure.url=" in answer.json()["error"]["message"]
    assert provider.requests == []


def test_an_unreachable_gemini_is_an_error_in_its_form(store_path, client):
    with proxied.serving(store_path, {"gemini": "http://127.0.0.1:9"}) as server:
        path = "/v1beta/models/gemini-3-pro:generateContent"
        answer = client.post(server.root + path, json={"contents": []})
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert (error["code"], error["status"]) == (502, "UNAVAILABLE")
    assert "upstreams.gemini.url" in error["message"]


def test_a_path_with_a_scope_is_told_from_one_of_azure():
    for path, (partition, rest) in {
        "/openai/chat/v1/models": ("openai", "/v1/models"),
        "/openai/v1/models": (None, "/openai/v1/models"),
        "/openai/deployments/v1/chat/completions": (
            None,
            "/openai/deployments/v1/chat/completions",
        ),
        "/work/desk/openai/v1/models": ("work", "/openai/v1/models"),
        "/work/desk/v1beta/models": ("work", "/v1beta/models"),
        "/partition/work/instance/desk/v1beta/models": ("work", "/v1beta/models"),
    }.items():
        target = parse_path(path)
        assert target, path
        assert (target.partition, target.path) == (partition, rest), path
    for path in ("/v2/models", "/openai", "/openai/"):
        assert parse_path(path) is None, path


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("https://x.openai.azure.com", "/openai/v1/responses", "/openai/v1/responses"),
        ("https://x.openai.azure.com/openai", "/openai/v1/responses", "/openai/v1/responses"),
        ("https://x.openai.azure.com/openai/v1", "/openai/v1/models", "/openai/v1/models"),
        ("https://x.openai.azure.com/openai/v1", "/v1/models", "/openai/v1/models"),
        ("https://g/v1beta/openai", "/v1/chat/completions", "/v1beta/openai/chat/completions"),
        (
            "https://g/v1beta",
            "/v1beta/models/m:generateContent",
            "/v1beta/models/m:generateContent",
        ),
    ],
)
def test_a_base_url_may_contain_the_beginning_of_a_path(url, path, expected):
    route = route_of(path, {})
    host = "/".join(url.split("/")[:3])
    upstream = UpstreamSetting(route.upstream, route.speaks, url)
    assert url_of(upstream, path, b"").removeprefix(host) == expected
