"""``budget``, ``models`` and ``stats`` on the command line."""

import re
import sqlite3
from datetime import UTC, date, datetime, timedelta

import pytest
from contract import AVAILABLE
from each import each

#: Documented figures of models: window, reserve, recommended budget.
TABLE = {
    "gpt-3.5-turbo": (4_096, 1_024, None),
    "gpt-4": (8_192, 2_048, None),
    "gpt-4-turbo": (128_000, 8_000, None),
    "gpt-4o": (128_000, 8_000, 100_000),
    "gpt-4o-mini": (128_000, 8_000, None),
    "llama3.1:8b": (32_768, 2_048, None),
    "llama3.1:70b": (32_768, 2_048, None),
    "mistral:7b": (32_768, 2_048, None),
    "codellama": (16_384, 1_024, None),
    "claude-sonnet-4-6": (200_000, 8_192, 150_000),
    "claude-opus-4": (200_000, 8_192, 150_000),
    "llama3:70b": (8_192, 2_048, 6_000),
}


# budget


@each(("model", "available"), AVAILABLE.items())
def test_budget_ends_with_the_known_figure_of_a_model(cli, model, available):
    shown = cli("budget", "--model", model).out.splitlines()
    assert shown[-1] == str(available)


def test_budget_ends_with_138308_for_the_known_sum(cli):
    result = cli(
        *("budget", "--max", "150000", "--system", "1200", "--procedure", "300"),
        *("--knowledge", "1500", "--episodes", "400", "--current", "100"),
        *("--reserve", "8192"),
    )
    assert result.out.splitlines()[-1] == "138308"
    assert result.err == ""


def test_budget_shows_the_formula_line_by_line(cli):
    lines = cli("budget", "--model", "gpt-4", "--system", "44", "--current", "100").out.splitlines()
    cells = dict(line.split() for line in lines[:-1])
    assert list(cells) == [
        *("window", "reserve", "available", "system", "procedure", "knowledge", "episodes"),
        "current",
    ]
    assert (cells["window"], cells["reserve"], cells["available"]) == ("8,192", "-2,048", "6,144")
    assert (cells["system"], cells["current"]) == ("-44", "-100")
    assert lines[-1] == "6000"


def test_budget_reports_minimum_history_taken_from_the_reserve(cli):
    result = cli("budget", "--model", "gpt-4", "--knowledge", "5000")
    assert result.out.splitlines()[-1] == str(1_144 + 1_024)
    assert "warning: " in result.err
    assert "1,024 of them from the reserve" in result.err


def test_budget_as_json_holds_the_same_numbers(cli):
    budget = cli("budget", "--model", "gpt-4", "--system", "144", "--json").document
    assert budget["schema_version"] == 1
    assert (budget["window"], budget["reserve"], budget["available"]) == (8_192, 2_048, 6_144)
    assert (budget["system"], budget["history"], budget["model"]) == (144, 6_000, "gpt-4")


def test_budget_uses_the_settings(cli):
    cli("config", "--set", "models.gpt-4.reserve_tokens=192")
    assert cli("budget", "--model", "gpt-4").out.splitlines()[-1] == "8000"
    cli("config", "--set", "models.gpt-4.max_context_tokens=500")
    assert cli("budget", "--model", "gpt-4").out.splitlines()[-1] == "500"
    assert cli("budget", "--model", "gpt-4o").out.splitlines()[-1] == "120000"


def test_budget_without_a_model_is_the_default_window_less_4_096(cli):
    assert cli("budget").out.splitlines()[-1] == str(100_000 - 4_096)


@each(
    "arguments",
    [
        ["--reserve", "8192"],  # leaves nothing
        ["--max", "0"],
        ["--system", "-1"],
        ["--current", "few"],
    ],
)
def test_budget_refuses_impossible_values(cli, arguments):
    cli("budget", "--model", "gpt-4", *arguments, code=2)


@pytest.mark.parametrize("command", ["budget", "context"])
def test_an_unknown_model_is_exit_2_with_similar_names_and_the_command_that_adds_it(cli, command):
    question = ["q"] if command == "context" else []
    result = cli(command, *question, "--model", "gpt-4x", code=2)
    assert result.out == ""
    assert "gpt-4" in result.err.splitlines()[1]
    assert "reservoir config set models.gpt-4x.context_window=N" in result.err


@each("separator", [",", "_"])
def test_tokens_may_have_separators_of_thousands(cli, separator):
    options = {"--max": "150,000", "--reserve": "8,192", "--knowledge": "1,000"}

    def show(separated_by):
        words = [(name, value.replace(",", separated_by)) for name, value in options.items()]
        return cli("budget", *(word for pair in words for word in pair)).out

    assert show(separator) == show("")


@each(
    ("value", "fault"),
    [
        ("many", "'many' is not a whole number"),
        ("8,5", "'8,5' is not a whole number"),
        ("0", "0 is less than 1"),
    ],
)
def test_a_wrong_number_of_tokens_is_named(cli, value, fault):
    error = cli("budget", "--max", value, code=2).err
    assert error.startswith(f"error: invalid value for '--max': {fault}\n")


def test_gpt_4_1_is_not_gpt_4(cli):
    assert cli("budget", "--model", "gpt-4.1").out.splitlines()[-1] != "6144"


# models


def test_models_lists_the_documented_figures(cli):
    rows = {row["name"]: row for row in cli("models", "--json").document["models"]}
    for name, (window, reserve, recommended) in TABLE.items():
        row = rows[name]
        assert (row["context_window"], row["reserve"]) == (window, reserve), name
        assert (row["recommended"], row["available"]) == (recommended, window - reserve), name
        assert row["origin"] == "table"


def test_models_marks_what_the_settings_add_or_change(cli):
    cli("config", "--set", "models.mine.context_window=5000")
    cli("config", "--set", "models.gpt-4.reserve_tokens=192")
    rows = {row["name"]: row for row in cli("models", "--json").document["models"]}
    assert rows["mine"] == {
        "name": "mine",
        "context_window": 5_000,
        "reserve": 4_096,
        "available": 904,
        "recommended": None,
        "origin": "file",
    }
    assert (rows["gpt-4"]["reserve"], rows["gpt-4"]["origin"]) == (192, "file")


def test_models_in_a_pipe_are_tab_separated_rows(cli):
    lines = cli("models").out.splitlines()
    assert any(line.split("\t")[:3] == ["gpt-4", "8,192", "2,048"] for line in lines)
    assert len({line.count("\t") for line in lines}) == 1


# stats


def test_stats_of_an_empty_store_are_zeros_and_create_no_file(cli):
    stats = cli("stats", "--json").document
    assert (stats["runs"], stats["truncated_runs"], stats["truncation_events"]) == (0, 0, 0)
    assert stats["store"]["messages"] == 0
    assert not cli.db.exists()


@pytest.fixture
def used(cli):
    """Return a home with three runs: two for gpt-4, one with a budget that was too small."""
    cli.store(*({"content": f"note {number} of many words and more"} for number in range(30)))
    cli("context", "one", "--model", "gpt-4")
    cli("context", "two", "--model", "gpt-4")
    cli("context", "three", "--budget", "100")
    return cli


def test_stats_count_runs_and_their_tokens_since_a_time(used):
    stats = used("stats", "--json").document
    assert stats["schema_version"] == 1
    assert stats["runs"] == 3
    assert stats["truncated_runs"] == 1
    assert stats["truncation_events"] > 1
    assert stats["models"] == {"gpt-4": 2, "": 1}
    assert sum(stats["days"].values()) == 3
    assert stats["store"]["messages"] == 30
    for name in ("input_tokens", "reserve_used", "utilisation", "ms"):
        assert stats[name]["median"] <= stats[name]["p95"]
    assert 0 < stats["utilisation"]["p95"] <= 1
    assert used("stats", "--since", "7d", "--json").document["runs"] == 3
    assert used("stats", "--since", "2100-01-01", "--json").document["runs"] == 0


def test_stats_can_be_limited_to_a_partition(cli):
    for partition in ("work", "work", "home"):
        cli.say("Why Redis?", "-p", partition)
        cli("context", "redis", "-p", partition)
    whole, work = (cli("stats", *scope, "--json").document for scope in ([], ["-p", "work"]))
    assert (whole["runs"], work["runs"]) == (3, 2)
    held = work["store"]
    assert (whole["store"]["messages"], held["messages"], held["pending"]) == (3, 2, 2)
    assert held.keys() == whole["store"].keys()
    nowhere = cli("stats", "-p", "wrok")
    assert "note: nothing in wrok; 2 messages in work (-p work)\n" in nowhere.err


def test_stats_count_the_conversations_that_conversations_lists(cli):
    """A conversation counts without a title, and where its messages are."""
    rows = [("work", "one"), ("work", "one"), ("work", "two"), ("home", "one"), ("home", None)]
    cli.store(
        *(
            {
                "content": "hello",
                "partition": partition,
                "instance": partition,
                "conversation_id": conversation,
            }
            for partition, conversation in rows
        )
    )
    for scope, count in (([], 3), (["-p", "work"], 2)):
        everywhere = scope or ["--all-partitions"]
        listed = cli("conversations", *everywhere, "--json").document["conversations"]
        held = cli("stats", *scope, "--json").document["store"]
        assert held["conversations"] == len(listed) == count


def test_stats_show_a_bar_for_each_model_and_a_sparkline(used):
    shown = dict(line.split("\t", 1) for line in used("stats").out.splitlines())
    assert shown["contexts built"] == "3"
    assert shown["model gpt-4"].count("█") == 2 * shown["without a model"].count("█")
    (days,) = (value for name, value in shown.items() if "days" in name)
    assert len(days) == 30
    assert days.endswith("█")


def test_a_plot_has_a_line_for_each_week_and_fits_80_columns_without_colour(used):
    used.store(
        *(
            {
                "content": f"from tool {number}",
                "source": f"tool {number}" + " with a long name" * (number == 5),
                "created_at": (datetime.now(UTC) - timedelta(days=number)).isoformat(),
            }
            for number in range(1, 15)
        )
    )
    shown = used("stats", "--plot", "--since", "60d").out
    assert "\x1b" not in shown
    heading, *weeks, messages, tokens = shown.splitlines()
    assert [*heading.split()] == [
        *("week", "of", "messages", "stored", "tokens", "in", "contexts", "budget", "used")
    ]
    assert max(map(len, shown.splitlines())) <= 80
    dates = [week.split()[0] for week in weeks]
    assert all(date.fromisoformat(day).weekday() == 0 for day in dates)
    assert weeks[-1].count("█") > 0
    assert re.search(r"\b\d+ others \d+$", messages)
    assert "contexts that were asked for" in tokens
    rows = used("stats", "--plot", "--json").document["by_week"]
    assert sum(sum(row["stored"].values()) for row in rows) == 44
    assert sum(row["contexts"] for row in rows) == 3


@pytest.mark.parametrize(
    ("weeks", "more"), [(16, ""), (17, "1 earlier week"), (19, "3 earlier weeks")]
)
def test_a_plot_says_how_many_earlier_weeks_it_leaves_out(cli, weeks, more):
    moments = [datetime.now(UTC) - timedelta(weeks=week) for week in range(weeks)]
    cli.store(*({"content": "hello", "created_at": moment.isoformat()} for moment in moments))
    shown = cli("stats", "--plot").out.splitlines()
    notes = [line.partition(" not shown (--json")[0] for line in shown if "not shown" in line]
    assert notes == [more] * bool(more)
    assert len(shown) < 24


def test_a_plot_of_an_empty_store_is_a_note(cli):
    result = cli("stats", "--plot")
    assert (result.out, result.err.count("nothing is stored yet")) == ("", 1)


def test_run_records_hold_no_text_of_questions_or_messages(cli):
    cli.say("the heliotrope")
    cli("context", "heliotrope", "--system", "heliotrope", "--knowledge", "heliotrope=heliotrope")
    connection = sqlite3.connect(cli.db)
    rows = connection.execute("SELECT * FROM context_runs").fetchall()
    connection.close()
    assert len(rows) == 1
    assert "heliotrope" not in str(rows)


def test_a_run_while_others_write_is_not_recorded_and_a_note_says_so(locked):
    result = locked("context", "what?", "--budget", "300")
    assert "said before" in result.out
    assert "not recorded" in result.err
