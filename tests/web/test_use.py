"""The view of token usage and of the size of the store."""

import re
from datetime import UTC, datetime, timedelta

from page_server import START

from reservoir_cli.context.run_statistics import answer_record
from reservoir_cli.messages import Message, Scope
from reservoir_cli.server.web.usage import DAYS, TOOLS, bars, summarize


def test_the_view_has_the_figures_of_stats(memory, client):
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


def test_the_view_has_cached_tokens(memory, client):
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


def test_the_chart_has_a_scale_and_separates_recalls_from_contexts(memory, client):
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


def test_a_median_is_named_so(memory, client):
    memory.runs.record(memory.context("redis?", partition="work", budget=300))
    html = client.get("/ui/usage").text
    for name in ("tokens", "milliseconds", "budget used"):
        assert f"<dt>{name}, median</dt>" in html


def test_without_runs_no_chart_is_drawn():
    assert bars([]) == []


def test_viewing_a_context_window_is_not_counted(memory, client):
    client.get("/ui/context?q=redis&p=work")
    assert memory.stats()["runs"] == 0


def test_charts_by_week_name_tools_tokens_and_the_use_of_the_budget(memory, client):
    sources = ["<i>tool</i>", *"abcdefgh"]
    memory.ingest(
        [
            Message("user", f"text {n}", START, source=source, source_id=str(n))
            for n, source in enumerate(sources)
        ],
        partition="work",
        embed=False,
    )
    window = memory.context("redis?", partition="work", budget=300, now=START + timedelta(days=7))
    memory.runs.record(window)
    memory.runs.record_recall(window.request, window)
    stored, tokens, used = summarize(memory).charts
    assert [week.week for week in stored.weeks] == ["2026-01-05", "2026-01-12"]
    assert sum(part.size for part in stored.weeks[0].parts) == 1
    assert len(stored.legend) == TOOLS
    assert stored.legend[-1][0].endswith(" others")
    assert sum(int(count) for _, count in stored.legend) == 6 + len(sources)
    assert [name for name, _ in tokens.legend] == ["contexts", "recalls"]
    assert tokens.weeks[1].figures == f"contexts {window.used}, recalls {window.used}"
    assert used.weeks[1].figures == f"{round(100 * window.used / 300)}%"
    html = client.get("/ui/usage").text
    assert html.count('<figure class="days chart">') == 4
    assert "<i>tool" not in html
    # Parts differ in more than their colour.
    assert set(re.findall(r'fill="url\(#hatch-(\w+)\)"', html)) >= {"1", "2", "3", "4"}
