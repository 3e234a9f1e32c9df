"""``budget``, ``models``, ``stats`` and ``trim``."""

import json

import pytest

LIST = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "an old question " * 300},
    {"role": "assistant", "content": "an old answer " * 300},
    {"role": "user", "content": "a new question"},
    {"role": "assistant", "content": "working on it"},
]


def test_the_last_line_of_the_budget_is_what_is_left(cli):
    result = cli(
        *("budget", "--max", "150000", "--system", "1200", "--procedure", "300"),
        *("--knowledge", "1500", "--episodes", "400", "--current", "100"),
        *("--reserve", "8192"),
    )
    assert result.out.splitlines()[-1] == "138308"


@pytest.mark.parametrize(("model", "available"), [("gpt-3.5-turbo", "3072"), ("gpt-4", "6144")])
def test_the_budget_of_a_model_is_its_window_less_its_reserve(cli, model, available):
    assert cli("budget", "--model", model).out.splitlines()[-1] == available


def test_the_budget_of_an_unknown_model_is_wrong_usage(cli):
    assert "gpt-4o" in cli("budget", "--model", "gpt-4oo", code=2).err


def test_models_are_listed_with_their_context_budget(cli):
    cli("config", "--set", "models.my-own.context_window=2000")
    document = cli("models", "--json").document
    assert document["schema_version"] == 1
    known = {model["name"]: model for model in document["models"]}
    fields = {"name", "context_window", "reserve", "available", "recommended", "origin"}
    assert all(set(model) >= fields for model in document["models"])
    assert known["gpt-4o"]["available"] == 120_000
    assert known["gpt-4o"]["recommended"] == 100_000
    assert known["my-own"]["context_window"] == 2000
    assert known["my-own"]["origin"] != known["gpt-4o"]["origin"]


def test_models_are_filtered_by_their_names(cli):
    names = [
        model["name"] for model in cli("models", "Claude", "haiku", "--json").document["models"]
    ]
    assert len(names) > 1
    assert all("claude" in name and "haiku" in name for name in names)
    assert cli("models", "nosuch").out == ""
    assert cli("models", "nosuch", "--json").document["models"] == []


def test_stats_count_the_contexts_that_were_built(cli):
    assert cli("stats", "--json").document["runs"] == 0
    cli.say("hello")
    cli("context", "hello?")
    cli("context", "what?")
    document = cli("stats", "--json").document
    assert (document["schema_version"], document["runs"]) == (1, 2)
    assert cli("stats").out


def test_trim_drops_old_messages_and_keeps_head_and_turn(cli, tmp_path):
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(LIST), encoding="utf-8")
    result = cli("trim", str(file), "--iteration", "3", "--budget", "500")
    assert result.document == [LIST[0], *LIST[3:]]


@pytest.mark.parametrize(
    "arguments", [["--iteration", "1", "--budget", "1000"], ["--iteration", "3"]]
)
def test_trim_returns_a_short_list_unchanged(cli, arguments):
    assert cli("trim", *arguments, stdin=json.dumps(LIST)).document == LIST
    assert cli("trim", "-", *arguments, stdin=json.dumps(LIST)).document == LIST


@pytest.mark.parametrize("text", ["", "{torn", '"words"', "[1, 2]"])
def test_trim_of_anything_but_a_list_of_messages_is_a_one_line_error(cli, text):
    result = cli.shell(f"printf %s '{text}' | reservoir trim --iteration 2; echo $?")
    assert result.out in ("1\n", "2\n")
    assert result.err.startswith("error: ")
    assert "unexpected" not in result.err


def test_summarize_says_that_no_message_is_in_a_conversation(cli):
    cli.say("hello")  # it needs no model
    notes = cli("summarize").err.splitlines()
    assert notes == [
        "note: no message of default is in a conversation",
        "0 conversations summarised",
    ]


def test_summarize_says_that_all_summaries_are_up_to_date(cli_with_model):
    cli_with_model.store({"content": "We fly to Tokyo on 2 May.", "conversation_id": "c1"})
    cli_with_model("embed")
    assert cli_with_model("summarize").out
    notes = cli_with_model("summarize", env={"RESERVOIR_EMBEDDING_MODEL": "nobody/absent"}).err
    assert "have summaries already" in notes


def test_summarize_says_where_messages_are(samples):
    result = samples("summarize", "-p", "nosuch")
    assert result.out == ""
    assert "note: nothing in nosuch; " in result.err
    assert "nothing in" not in samples("summarize", "-p", "home", "--dry-run").err


@pytest.mark.model
def test_a_conversation_whose_local_day_does_not_exist_has_the_day_of_utc(cli_with_model):
    last = {"content": "the last word", "created_at": "9999-12-31T23:00:00Z"}
    cli_with_model.store({**last, "conversation_id": "c1"})
    zone = {"TZ": "UTC-9"}  # east of Greenwich
    (row,) = cli_with_model("summarize", "--dry-run", "--json", env=zone).document["summaries"]
    assert row["date"] == "9999-12-31"
