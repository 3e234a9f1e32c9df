"""Token counts that providers report reach doctor and the estimates of contexts."""

import json
from contextlib import closing

import plain_http
import proxied
import pytest
from dialogue import chat, user
from upstream import Reply

from reservoir_cli.context.counter_factors import ENOUGH
from reservoir_cli.maintenance.doctor import examine
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.tokens import ApproximateCounter

MODEL = "claude-opus-4-7"
ANSWER = "The ferry leaves the northern pier at twenty past seven, and at nine on Sundays. " * 3


def counted(tokens: int) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}}
    usage = {"prompt_tokens": 9, "completion_tokens": tokens}
    body = {"id": "c", "choices": [choice | {"finish_reason": "stop"}], "usage": usage}
    return Reply([json.dumps(body).encode()], "application/json", framing="length")


@pytest.mark.parametrize("agent", ["some/1", "claude-cli/2.1"])
def test_answers_calibrate_estimates_also_where_sync_stores_them(
    store_path, provider, tmp_path, monkeypatch, agent
):
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[sources.claude-code]\npath = "{tmp_path.as_posix()}"\n', "utf-8")
    monkeypatch.setenv("RESERVOIR_CONFIG", str(settings))
    with Reservoir.open(store_path) as reservoir:
        reservoir.ingest([Message("user", ANSWER)], embed=False)
    provider.reply = counted(2 * ApproximateCounter().count(ANSWER))

    def estimate(model: str | None) -> int:
        with Reservoir.open(store_path) as reservoir:
            return reservoir.context("When does the ferry leave?", model=model, budget=9_000).used

    def ask(times: int) -> str:
        with proxied.serving(store_path, {"openai": provider.url}) as served:
            for number in range(times):
                body, headers = chat(user(f"when, {number}?"), model=MODEL), {"user-agent": agent}
                plain_http.post(f"{served.root}{CHAT}", json=body, headers=headers)
            served.settle(times)
        progress = check_source = lambda *_: None
        with closing(examine(store_path, settings, progress, check_source=check_source)) as checks:
            return next(check.detail for check in checks if check.name == "token_counts")

    assert "by 19 answers" in ask(ENOUGH - 1)
    assert estimate(MODEL) == estimate(None)
    assert "its counts are multiplied by that" in ask(1)
    assert estimate(MODEL) == pytest.approx(2 * estimate(None), rel=0.1)
    with Reservoir.open(store_path) as reservoir:
        is_stored = bool(reservoir.view(Scope("default", "proxy"), 0))
    assert is_stored == (agent == "some/1")


def test_checks_that_are_left_early_close_the_store(store_path, tmp_path):
    with Reservoir.open(store_path) as reservoir:
        reservoir.ingest([Message("user", ANSWER)], embed=False)
    settings, log = tmp_path / "settings.toml", store_path.with_name(f"{store_path.name}-wal")
    settings.write_text("", "utf-8")
    progress = check_source = lambda *_: None
    checks = examine(store_path, settings, progress, check_source=check_source)
    assert any(check.name == "vectors" for check in checks)
    assert log.exists()
    checks.close()
    assert not log.exists()
