"""The view of token usage and of the size of the store."""

from datetime import UTC, datetime

from reservoir_cli.messages import Scope
from reservoir_cli.server.web.usage_chart import DAYS, bars, summarize


def test_the_view_has_the_figures_of_stats(memory, client) -> None:
    assert "No context was built yet" in client.get("/ui/use").text
    for day, budget in ((1, 300), (1, 60), (3, 300)):
        now = datetime(2026, 2, day, 12, tzinfo=UTC)
        memory.runs.record(memory.context("redis?", partition="work", budget=budget, now=now))
    stats = memory.stats()
    assert [row["day"] for row in stats["by_day"]] == ["2026-02-01", "2026-02-03"]
    assert sum(row["runs"] for row in stats["by_day"]) == stats["runs"] == 3
    assert sum(row["truncated_runs"] for row in stats["by_day"]) == stats["truncated_runs"]
    use = summarize(memory)
    assert len(use.bars) == DAYS
    assert [bar.height for bar in use.bars[-3:]] == [1.0, 0.0, 0.5]
    html = client.get("/ui/use").text
    assert "2026-02-03: 1 contexts" in html
    assert "<dt>contexts built</dt><dd>3</dd>" in html
    assert "<dt>messages</dt><dd>6</dd>" in html


def test_the_view_has_cached_tokens(memory, client) -> None:
    assert "proxied answers" not in client.get("/ui/use").text
    memory.runs.record_answer(Scope("work", "i"), "m", 4_000, 3_000)
    memory.runs.record_answer(Scope("work", "i"), "m", 2**40, -1)
    counted = memory.stats()["answers"]
    assert counted["request_tokens"] == 4_000 + 2**31 - 1
    assert counted["cached_tokens"] == 3_000
    html = client.get("/ui/use").text
    assert "<dt>proxied answers</dt><dd>2</dd>" in html
    assert "<small>of 2,147,487,647 tokens</small>" in html
    assert "No context was built yet" in html


def test_without_runs_no_chart_is_drawn() -> None:
    assert bars([]) == []


def test_viewing_a_context_window_is_not_counted(memory, client) -> None:
    client.get("/ui/window?q=redis&p=work")
    assert memory.stats()["runs"] == 0
