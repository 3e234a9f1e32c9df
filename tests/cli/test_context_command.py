import re

import pytest
from contract import BUDGET, DOCUMENT, PLACED, ROW, SCORES
from each import each

from reservoir_cli.context.build_context import NOTHING_FITS
from reservoir_cli.settings.models import find_model

QUESTION = "why did we drop Redis?"
SUMMARY = re.compile(
    r"≈?[\d,]+ of [\d,]+ tokens \(\d+%\) · \d+ recent · \d+ recalled · \d+ dropped"
    r" · reserve [\d,]+( · [\w.:-]+)?"
)


@pytest.fixture
def talk(cli):
    rows = []
    for number in range(30):
        rows += [
            {"role": "user", "content": f"question {number} about Redis?", "trace_id": f"{number}"},
            {"role": "assistant", "content": f"answer {number}: it lost jobs " * 5},
        ]
        rows[-1]["trace_id"] = f"{number}"
    cli.store(*rows)
    return cli


def alone(text: str) -> bool:
    """Return whether a text is the question alone, with an empty frame."""
    frame = re.escape("[Reservoir context]\n[/Reservoir ") + r"[a-z]{7}\]"
    return bool(re.fullmatch(rf"{frame}\n\nuser: {re.escape(QUESTION)}\n", text))


def test_an_empty_store_gives_the_question(cli):
    result = cli("context", QUESTION)
    assert alone(result.out)
    note, summary = result.err.splitlines()
    assert note == "note: nothing is stored yet: reservoir init, or reservoir ingest FILE"
    assert SUMMARY.fullmatch(summary)
    assert not cli.db.exists()


def test_the_question_comes_last_and_history_before_it(talk):
    shown = talk("context", QUESTION).out
    assert shown.endswith(f"\n\nuser: {QUESTION}\n")
    assert "assistant: answer 29: it lost jobs" in shown


def test_the_last_line_on_stderr_reports_the_tokens_used(talk):
    result = talk("context", QUESTION, "--model", "gpt-3.5-turbo")
    summary = result.err.splitlines()[-1]
    assert SUMMARY.fullmatch(summary)
    assert " of 3,072 tokens " in summary
    assert summary.endswith(" · reserve 1,024 · gpt-3.5-turbo")


def test_an_empty_question_gives_recent_history_and_no_current_message(talk):
    document = talk("context", "", "--format", "json").document
    assert {row["section"] for row in document["messages"]} <= {"recalled", "history"}
    assert document["messages"][-1]["content"].startswith("answer 29")
    body = talk("context", "", "--format", "openai").document
    assert body["messages"][-1]["role"] == "user"


def test_without_a_question_a_note_says_that_only_messages_that_fit_are_printed(cli):
    cli.store({"content": "short"}, {"content": "long " * 200})
    everything = cli("context", "").err
    assert "note: there is no question: the newest messages are printed" in everything
    fitting = cli("context", "", "--budget", "60", "--excerpts", "off")
    assert "short" in fitting.out
    assert "note: there is no question: the newest messages that fit are printed" in fitting.err


@pytest.mark.parametrize("form", ["text", "openai"])
def test_without_a_question_an_error_names_the_budget_that_nothing_fits(cli, form):
    cli.store({"content": "long " * 200})
    arguments = ("context", "", "--budget", "60", "--excerpts", "off", "--format", form)
    error, hint = cli(*arguments, code=2).err.splitlines()
    assert error.endswith("no history that ends with one fits in 60 tokens")
    assert hint.startswith("hint: raise --budget, or give a question: ")


def test_a_question_from_stdin_loses_only_its_line_end(cli):
    assert cli("context", stdin="two\nlines\n").out.endswith("]\n\nuser: two\nlines\n")


def test_the_output_stays_within_the_budget_and_the_summary_counts_each_section(talk):
    sizes = []
    for budget in (40, 60, 150, 300, 900, 1500):
        result = talk("context", QUESTION, "--budget", str(budget), "--format", "json")
        spent, messages = result.document["budget"], result.document["messages"]
        assert spent["available"] == budget
        assert spent["used"] <= budget
        assert spent["used"] == spent["history_used"] + spent["current"]
        assert spent["history_used"] <= spent["history_available"]
        assert messages[-1]["content"] == QUESTION
        sections = [row["section"] for row in messages]
        counts = f"{sections.count('history')} recent · {sections.count('recalled')} recalled"
        assert f" · {counts} · " in result.err
        sizes.append(sum(len(row["content"]) for row in messages))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2] < sizes[-1]


def test_a_megabyte_does_not_break_a_small_budget(cli):
    cli.say("lorem ipsum Redis " * 60_000)
    cli.say("Redis lost jobs", "--role", "assistant", "--trace-id", "other")
    result = cli("context", QUESTION, "--budget", "300", "--format", "json")
    document = result.document
    assert document["budget"]["used"] <= 300
    assert document["messages"][-1]["content"] == QUESTION
    assert "Redis lost jobs" in [row["content"] for row in document["messages"]]
    assert document["excerpts"] == 1
    [excerpt] = [row for row in document["messages"] if row["id"] == 1]
    assert len(excerpt["content"]) < 2_000


def test_an_instance_never_shows_messages_of_another(cli):
    cli.say("Redis lost our jobs", "-i", "backend")
    cli.say("Redis in the garden", "-i", "garden")
    cli.say("Redis of the other partition", "-p", "other")
    shown = cli("context", QUESTION, "-i", "garden", "--budget", "500").out
    assert "garden" in shown
    assert "our jobs" not in shown
    whole = cli("context", QUESTION, "--budget", "500").out
    assert "garden" in whole
    assert "our jobs" in whole
    assert "other partition" not in whole


def test_an_instance_without_messages_says_where_they_are(cli):
    cli.say("Redis lost our jobs", "-i", "backend")
    result = cli("context", QUESTION, "-i", "nowhere")
    assert alone(result.out)
    assert any(
        line.startswith(
            "note: nothing in default/nowhere; 1 message in default/backend (-i backend"
        )
        for line in result.err.splitlines()
    )


def test_history_of_an_empty_default_instance_comes_from_the_newest_instance_with_a_note(cli):
    cli.say("Redis lost our jobs", "-i", "backend")
    result = cli("context", QUESTION)
    history, _, question = result.out.partition("\n[/Reservoir ")
    assert history == "[Reservoir context]\nuser: Redis lost our jobs"
    assert question.endswith(f"]\n\nuser: {QUESTION}\n")
    assert "default/backend" in result.err


# Models


def test_an_unknown_model_is_exit_2_with_similar_names_and_the_command_that_adds_it(cli):
    result = cli("context", QUESTION, "--model", "gpt-4oo", code=2)
    assert result.out == ""
    error, hint = result.err.splitlines()
    assert "gpt-4oo" in error
    assert "gpt-4o" in hint.replace("gpt-4oo", "")
    assert "config set models.gpt-4oo.context_window=N" in hint


def test_a_model_that_was_added_is_known(cli):
    cli("config", "--set", "models.my-own.context_window=2000")
    cli("config", "--set", "models.my-own.reserve_tokens=500")
    document = cli("context", QUESTION, "--model", "my-own", "--format", "json").document
    assert (document["budget"]["window"], document["budget"]["reserve"]) == (2000, 500)
    assert document["budget"]["available"] == 1500


def test_the_option_model_overrides_the_setting(cli):
    cli("config", "--set", "model=gpt-4")
    assert cli("context", QUESTION, "--format", "json").document["budget"]["available"] == 6144
    other = cli("context", QUESTION, "--format", "json", "--model", "gpt-4o").document
    known = find_model("gpt-4o")
    assert other["budget"]["available"] == known.context_window - known.reserve == 120_000


def test_a_budget_above_the_window_of_the_model_is_wrong_usage(cli):
    result = cli("context", QUESTION, "--model", "gpt-4", "--budget", "9000", code=2)
    assert "8,192" in result.err


def test_a_budget_above_window_less_reserve_is_used_with_a_warning(cli):
    result = cli("context", QUESTION, "--model", "gpt-4", "--budget", "8000", "--format", "json")
    assert result.document["budget"]["available"] == 8000
    assert "warning: " in result.err


# Formats


def test_openai_ends_with_the_question_and_leaves_an_unknown_model_out(talk):
    result = talk("context", QUESTION, "--format", "openai")
    body = result.document
    assert list(body) == ["messages"]
    assert body["messages"][-1] == {"role": "user", "content": QUESTION}
    assert {message["role"] for message in body["messages"]} <= {
        "system",
        "user",
        "assistant",
        "tool",
    }
    assert all(message["content"] for message in body["messages"])
    assert "model" in result.err.splitlines()[-2]


def test_an_unknown_format_lists_the_known_ones(cli):
    result = cli("context", QUESTION, "--format", "yaml", code=2)
    for form in ("text", "json", "openai"):
        assert form in result.err


# Saving


def test_save_stores_the_question_with_the_trace_of_the_document(cli):
    cli.say("Redis lost our jobs")
    document = cli("context", QUESTION, "--save", "--format", "json").document
    assert [row["content"] for row in document["messages"]] == ["Redis lost our jobs", QUESTION]
    saved = cli.rows()[-1]
    assert (saved["role"], saved["content"]) == ("user", QUESTION)
    assert saved["trace_id"] == document["trace_id"]


def test_without_save_nothing_is_stored(cli):
    cli.say("Redis lost our jobs")
    cli("context", QUESTION)
    assert len(cli.rows()) == 1


def test_a_given_trace_is_the_one_that_is_saved(cli):
    document = cli("context", QUESTION, "--save", "--trace-id", "t-9", "--format", "json").document
    assert document["trace_id"] == "t-9"
    assert cli.rows()[0]["trace_id"] == "t-9"


def test_a_saved_question_is_stored_in_its_scope(cli):
    cli("context", QUESTION, "--save", "-p", "work", "-i", "backend")
    (saved,) = cli.rows("-p", "work", "-i", "backend")
    assert saved["content"] == QUESTION


@each("option", ["-p", "-i", "--trace-id"])
def test_a_question_that_cannot_be_saved_is_refused_before_anything_is_printed(cli, option):
    refused = cli("context", QUESTION, "--save", option, "\x1b[31m", code=2)
    assert not refused.out
    assert "a name cannot contain control characters" in refused.err


def test_an_empty_question_is_not_saved(cli):
    cli("context", "", "--save", code=2)
    assert not cli.rows()


def test_a_repeated_question_does_not_recall_itself(cli):
    cli("context", QUESTION, "--save")
    assert alone(cli("context", QUESTION).out)


# The whole document, with the model


@pytest.mark.model
def test_the_document_is_complete_and_its_priorities_follow_the_formula(samples):
    result = samples("context", QUESTION, "-p", "work", "--budget", "300", "--format", "json")
    document = result.document
    assert tuple(document) == DOCUMENT
    assert tuple(document["budget"]) == BUDGET
    assert document["schema_version"] == 1
    assert document["query"] == QUESTION
    budget = document["budget"]
    assert budget["available"] == 300
    assert budget["used"] <= 300
    assert budget["utilisation"] == pytest.approx(budget["used"] / 300, abs=1e-3)
    *stored, current = document["messages"]
    assert stored
    assert (current["role"], current["content"], current["section"]) == (
        *("user", QUESTION),
        "current",
    )
    assert current["tier"] is None
    for row in stored:
        assert set(row) == {*ROW, *PLACED}
        assert row["section"] in ("recalled", "history")
        assert row["tier"] in ("recent", "similar", "synapse", "older")
        assert all(isinstance(row[score], int | float) for score in SCORES)
        priority = 0.7 * row["similarity"] + 0.3 * row["recency"]
        assert row["priority"] == pytest.approx(priority, abs=1e-6)
    for candidate in document["dropped"]:
        assert set(candidate) >= {"id", "tier", "tokens", "priority", "reason"}
        assert candidate["reason"]
    assert not {row["id"] for row in stored} & {
        candidate["id"] for candidate in document["dropped"]
    }
    assert any("Redis" in row["content"] for row in stored)


@pytest.mark.model
def test_with_embeddings_an_instance_never_shows_messages_of_another(samples):
    rows = samples.rows("-p", "work")
    first = rows[0]["instance"]
    document = samples(
        *("context", QUESTION, "-p", "work", "-i", first, "--budget", "4000", "--format", "json")
    ).document
    shown = document["messages"][:-1]
    assert shown
    assert {row["instance"] for row in shown} == {first}
    assert len({row["instance"] for row in rows}) > 1


@pytest.mark.model
def test_embed_embeds_every_pending_message_once(cli_with_model):
    cli = cli_with_model
    cli.store({"content": "one"}, {"content": "two"})
    result = cli("embed", "--json")
    assert result.document["schema_version"] == 1
    assert result.document["embedded"] == 2
    assert result.document["engine"] == "compiled"
    assert result.document["weights"] == "package"
    assert result.document["reason"]
    assert result.err == "embedded 2 messages, compiled engine, weights from the package\n"
    second = cli("embed", "--json", env={"RESERVOIR_EMBEDDING_MODEL": "nobody/absent-model"})
    assert second.document["embedded"] == 0  # nothing is pending, so no model is needed
    assert second.document["engine"] is None
    assert second.document["model"] == result.document["model"]
    assert (
        cli("embed", "--json").document["engine"] == "compiled"
    )  # nor is it needed to find that out


@pytest.mark.model
def test_with_an_unwritable_cache_the_reference_engine_runs_with_a_note(cli):
    del cli.env["RESERVOIR_EMBEDDING_MODEL"]
    cli.say("one")
    (cli.home / "cache").mkdir()
    (cli.home / "cache" / "models").write_text("a file is in the way")
    result = cli("embed", "--json")
    assert (result.document["embedded"], result.document["engine"]) == (1, "reference")
    assert result.document["reason"] == "the cache folder cannot be written"
    assert "which is slower: the cache folder cannot be written" in result.err
    assert "compiling" not in result.err


def test_an_unrelated_question_gives_the_nearest_with_a_note(talk):
    result = talk("context", "what is the capital of Mongolia", "--budget", "4000")
    assert "note: nothing stored fits this question well; these are the nearest" in result.err
    assert result.out.splitlines()[1:3] == ["[Recalled Messages]", NOTHING_FITS]
    assert "answer 29" in result.out
    always = talk("context", "what is the capital of Mongolia", "--budget", "4000", "--floor", "0")
    assert "fits this question" not in always.err + always.out
    talk("context", QUESTION, "--floor", "3", code=2)
