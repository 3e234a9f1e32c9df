"""Messages, tokens and the use of the budget are counted by week, from Monday, in UTC."""

import json
from datetime import UTC, date, datetime

from reservoir_cli.cli.commands.stats import plot_weeks
from reservoir_cli.context.weekly_statistics import largest_tools, last_weeks, summarize_weeks
from reservoir_cli.messages import to_epoch_ms


def run(day: int, tokens: int, used: float = 0.5) -> dict[str, object]:
    at = to_epoch_ms(datetime(2026, 2, day, 23, 59, tzinfo=UTC))
    return {"at": at, "partition": "work", "input_tokens": tokens, "utilisation": used}


USED = {"rare_words": 8, "used_words": 2, "messages": 1, "used_messages": 1}
ROWS = summarize_weeks(
    [(date(2026, 1, 26), "codex", 2), (date(2026, 1, 26), "aider", 1)],
    [run(1, 10), run(9, 20, used=0.1), run(15, 30, used=0.2)],
    [run(9, 40)],
    [run(9, 40) | {"sections": json.dumps(USED)}],
)


def test_a_week_ends_on_sunday():
    first, second = ROWS
    assert first == {
        "week": "2026-01-26",
        "stored": {"codex": 2, "aider": 1},
        "contexts": 1,
        "recalls": 0,
        "context_tokens": 10,
        "recall_tokens": 0,
        "utilisation": 0.5,
        "used_share": None,
    }
    assert (second["week"], second["stored"]) == ("2026-02-09", {})
    assert (second["contexts"], second["context_tokens"], second["utilisation"]) == (2, 50, 0.15)
    assert (second["recalls"], second["recall_tokens"], second["used_share"]) == (1, 40, 0.25)


def test_weeks_without_data_are_between_others_but_not_before_them():
    weeks = ["2026-01-26", "2026-02-02", "2026-02-09"]
    assert [row["week"] for row in last_weeks(ROWS, 9)] == weeks
    assert [row["week"] for row in last_weeks(ROWS, 2)] == weeks[1:]
    assert last_weeks(ROWS, 2)[0]["utilisation"] is None
    assert last_weeks([], 9) == []


def test_a_plot_fits_its_width_with_the_use_of_recalls_and_without_it():
    for rows in (ROWS, ROWS[:1]):
        for width in (80, 100, 200):
            lines = [line.plain for line in plot_weeks(rows, width)]
            assert max(map(len, lines)) <= min(width, 100)
            assert ("recall used" in lines[0]) == (rows is ROWS)
    [line] = [line.plain for line in plot_weeks(ROWS, 80) if "2026-02-09" in line.plain]
    assert line.endswith("25%")


def test_the_smallest_tools_are_counted_together():
    rows = [{"stored": {"a": 5, "b": 3}}, {"stored": {"b": 4, "c": 2, "d": 1}}]
    assert largest_tools(rows, 4) == [("b", 7), ("a", 5), ("c", 2), ("d", 1)]
    assert largest_tools(rows, 3) == [("b", 7), ("a", 5), ("2 others", 3)]
    assert largest_tools([], 3) == []


def test_a_name_with_a_secret_is_masked():
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    [row] = summarize_weeks([(date(2026, 1, 26), key, 1)], [], [])
    assert key not in str(row)
