"""The view of token usage and of the size of the store."""

import re
from datetime import UTC, datetime

from reservoir_cli.context.run_statistics import answer_record
from reservoir_cli.messages import Scope
from reservoir_cli.server.limits import DAYS
from reservoir_cli.server.web.usage import bars, summarize


def test_the_view_has_the_figures_of_stats(memory, client) -> None:
    assert "No context was built yet" in client.get("/ui/usage").text
    for day, budget in ((1, 300), (1, 60), (3, 300)):
        now = datetime(2026, 2, day, 12, tzinfo=UTC)
        memory.runs.record(memory.context("redis?", partition="work", budget=budget, now=now))
    stats = memory.stats()
    assert [row["day"] for row in stats["by_day"]] == ["2026-02-01", "2026-02-03"]
    assert sum(row["runs"] for row in stats["by_day"]) == stats["runs"] == 3
    assert sum(row["truncated_runs"] for row in stats["by_day"]) == stats["truncated_runs"]
    use = summarize(memory)
    assert len(use.bars) == DAYS
    assert [sum(part.size for part in bar.parts) for bar in use.bars[-3:]] == [1.0, 0.0, 0.5]
    assert use.busiest == 2
    html = client.get("/ui/usage").text
    assert "2026-02-03: 1 contexts" in html
    assert "<dt>contexts built</dt><dd>3</dd>" in html
    assert "<dt>messages</dt><dd>6</dd>" in html


def test_the_view_has_cached_tokens(memory, client) -> None:
    assert "proxied answers" not in client.get("/ui/usage").text
    memory.runs.add([answer_record(Scope("work", "i"), "m", 4_000, 3_000)])
    memory.runs.add([answer_record(Scope("work", "i"), "m", 2**40, -1)])
    counted = memory.stats()["answers"]
    assert counted["request_tokens"] == 4_000 + 2**31 - 1
    assert counted["cached_tokens"] == 3_000
    html = client.get("/ui/usage").text
    assert "<dt>proxied answers</dt><dd>2</dd>" in html
    assert "<small>of 2,147,487,647 tokens</small>" in html
    assert "No context was built yet" in html


def test_the_chart_has_a_scale_and_separates_recalls_from_contexts(memory, client) -> None:
    now = datetime(2026, 2, 3, 12, tzinfo=UTC)
    window = memory.context("redis?", partition="work", budget=60, now=now)
    memory.runs.record(window)
    for _ in range(3):
        memory.runs.record_recall(window.request, window)
    use = summarize(memory)
    parts = {part.name: part.size for part in use.bars[-1].parts}
    assert parts == {"runs": 0.0, "short": 0.25, "recalls": 0.75}
    html = client.get("/ui/usage").text
    assert "<span>4 a day</span>" in html
    drawn = r'<rect class="(short|recalls)" x="590" y="([\d.]+)" width="9" height="([\d.]+)"'
    heights = re.findall(drawn, html)
    assert heights == [("short", "75.00", "25.00"), ("recalls", "0.00", "75.00")]


def test_a_median_is_named_so(memory, client) -> None:
    memory.runs.record(memory.context("redis?", partition="work", budget=300))
    html = client.get("/ui/usage").text
    for name in ("tokens", "milliseconds", "budget used"):
        assert f"<dt>{name}, median</dt>" in html


def test_without_runs_no_chart_is_drawn() -> None:
    assert bars([]) == []


def test_viewing_a_context_window_is_not_counted(memory, client) -> None:
    client.get("/ui/context?q=redis&p=work")
    assert memory.stats()["runs"] == 0
