"""``reservoir context``: sections, exit codes, --explain, settings."""

import json
import re
import stat
import sys
from pathlib import Path

import pytest

RESERVOIR = Path(sys.executable).with_name("reservoir")


@pytest.fixture
def talk(cli):
    cli.store(
        *(
            {"role": role, "content": f"{role} {number} says some words", "trace_id": f"{number}"}
            for number in range(30)
            for role in ("user", "assistant")
        )
    )
    return cli


# Sections


@pytest.mark.parametrize("budget", [(), ("--budget", "4096")])
def test_no_budget_is_named_that_the_model_cannot_read(talk, budget):
    arguments = ("context", "user 3 says", "--model", "gpt-3.5-turbo", *budget)
    result = talk(*arguments, "--system", "word " * 9500)
    assert "they are printed whole" in result.err
    assert "the best match, #" in result.err
    assert "--budget" not in result.err


def test_a_budget_that_the_model_can_read_is_named(talk):
    arguments = ("context", "user 3 says", "--model", "gpt-3.5-turbo", "--system", "word " * 500)
    result = talk(*arguments, "--budget", "300")
    assert result.err.count("--budget") == 1
    for named in re.findall(r"--budget ([\d,]+)", result.err):
        talk(*arguments, "--budget", named.replace(",", ""))


def test_sections_come_from_arguments_and_from_files(cli, tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_text("FROM A FILE\n")
    shown = cli(
        *("context", "q", "--system", f"@{file}", "--procedure", "greet=@@home"),
        *("--knowledge", f"k=@{file}", "--episode", "2026-01-01: a day"),
    ).out
    context, end = shown.rsplit("\n[/Reservoir ", 1)
    assert end.endswith("]\n\nuser: q\n")
    assert context == (
        "[Reservoir context]\nFROM A FILE\n\n[Procedure: greet]\n@home\n\n"
        "[Retrieved Knowledge]\nSource: k\nFROM A FILE\n\n"
        "[Past Conversation Context]\n2026-01-01: a day"
    )


@pytest.mark.parametrize(
    ("option", "value", "printed"),
    [
        ("--system", "-", "\nBe brief.\n"),
        ("--episode", "-", "[Past Conversation Context]\nBe brief.\n"),
        ("--procedure", "greet=-", "[Procedure: greet]\nBe brief.\n"),
        ("--knowledge", "k=-", "Source: k\nBe brief.\n"),
    ],
)
def test_a_section_comes_from_stdin(cli, option, value, printed):
    assert printed in cli("context", "q", option, value, stdin="Be brief.\n").out


@pytest.mark.parametrize("words", [["-"], [], ["q", "--knowledge", "k=-"]])
def test_only_one_section_or_the_question_comes_from_stdin(cli, words):
    error = cli("context", *words, "--system", "-", stdin="q", code=2).err
    assert error == "error: stdin can be read only once\nhint: use - only once\n"


def test_a_question_that_begins_with_an_at_sign_is_not_a_file(cli):
    assert cli("context", "@nobody").out.endswith("]\n\nuser: @nobody\n")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--procedure", "no text"], id="a procedure without a text"),
        pytest.param(["--knowledge", "=text"], id="a source without a name"),
        pytest.param(["--system", "@/nobody/there"], id="a file that is not there"),
        pytest.param(["--budget", "0"], id="no budget"),
        pytest.param(["--budget", "recommended"], id="§2 recommended without a model"),
        pytest.param(["--budget", "8193", "--model", "gpt-4"], id="§2 above the window"),
        pytest.param(["--threshold", "1.5"], id="a threshold above 1"),
        pytest.param(["--order", "random"], id="an unknown order"),
        pytest.param(["--profile", "medium"], id="an unknown profile"),
        pytest.param(["--recall-scope", "all"], id="an unknown scope"),
    ],
)
def test_invalid_options_are_exit_2_and_print_nothing(cli, arguments):
    result = cli("context", "q", *arguments, code=2)
    assert result.out == ""
    assert result.err.startswith(("error: ", "Usage: "))


@pytest.mark.parametrize(
    ("given", "fault"), [("=text", "has no name"), (" ", "has no name"), ("n", "'n' has no text")]
)
def test_a_piece_without_a_name_or_text_is_named(cli, given, fault):
    error = cli("context", "q", "--procedure", given, code=2).err
    assert error.startswith(f"error: --procedure {fault}\n")


def test_a_threshold_that_is_no_number_is_refused_as_it_was_typed(cli):
    error, hint = cli("context", "q", "--threshold", "nan", code=2).err.splitlines()
    assert error == "error: --threshold cannot be nan"
    assert hint == "hint: it must be from 0 to 1"


# Truncation and --strict

LONG = "word " * 600


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["q", "--budget", "60"], id="§2 a drop for lack of room"),
        pytest.param(
            ["q", "--knowledge", f"a={LONG}", "--knowledge", f"b={LONG * 7}"],
            id="§1 a piece of knowledge left out",
        ),
        pytest.param(["q", *["--episode", LONG] * 3], id="§1 an episode left out"),
        pytest.param([LONG, "--budget", "100"], id="§2 an oversized question"),
    ],
)
def test_strict_is_exit_6_after_a_truncation_and_still_prints_the_context(talk, arguments):
    lax = talk("context", *arguments)
    strict = talk("context", *arguments, "--strict", code=6)
    assert strict.out == lax.out != ""
    assert re.search(
        r"^note: --strict: [1-9]\d* left out or cut for lack of room", strict.err, re.M
    )
    log = (talk.home / "reservoir.log").read_text().splitlines()
    assert len(log) == 2
    assert all("truncated" in line for line in log)


def test_strict_is_exit_0_when_only_filling_stopped(cli):
    cli.store(*({"content": f"note {number} of some words"} for number in range(60)))
    result = cli("context", "q", "--budget", "150", "--recent", "2", "--similar", "2", "--strict")
    assert "note 59" in result.out
    assert not (cli.home / "reservoir.log").exists()


def test_an_oversized_question_is_printed_whole_without_history_and_with_a_warning(talk):
    result = talk("context", LONG, "--budget", "100")
    assert result.out.endswith(f"]\n\nuser: {LONG}\n")
    assert "warning: " in result.err


def test_the_first_piece_of_knowledge_stays_with_a_warning(cli):
    result = cli("context", "q", "--knowledge", f"a={LONG * 7}", "--knowledge", "b=B")
    assert LONG.strip() in result.out
    assert "Source: b" not in result.out
    assert "warning: " in result.err


def test_the_log_is_private(talk):
    talk("context", "q", "--budget", "60")
    mode = (talk.home / "reservoir.log").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


# --explain


@pytest.mark.parametrize("fill", ["--fill", "--no-fill"])
def test_explain_lists_every_candidate_in_the_document(talk, fill):
    arguments = ("context", "q", "--format", "json", "--explain", "--recent", "5", "--similar", "4")
    document = talk(*arguments, "--model", "gpt-4", fill).document
    explained = {row["id"]: row for row in document["explain"]}
    kept = {row["id"] for row in document["messages"] if row["id"]}
    dropped = {row["id"]: row["reason"] for row in document["dropped"]}
    assert kept | dropped.keys() <= explained.keys()
    assert {number for number, row in explained.items() if row["outcome"] == "kept"} == kept
    for number, row in explained.items():
        assert {"similarity", "recency", "priority", "tokens", "tier", "reason"} <= row.keys()
        assert row["reason"]
        assert number not in dropped or row["reason"] == dropped[number]


def test_explain_prints_a_table_on_stderr_and_does_not_change_stdout(talk):
    plain = talk("context", "q", "--budget", "300")
    explained = talk("context", "q", "--budget", "300", "--explain", "all")
    assert explained.out == plain.out
    rows = [line for line in explained.err.splitlines() if "2026-05-09" in line]
    document = talk("context", "q", "--budget", "300", "--format", "json", "--explain").document
    assert len(rows) == len(document["explain"])
    assert {line.split()[0] for line in rows} == {str(row["id"]) for row in document["explain"]}


def test_an_explanation_names_the_local_day_as_the_context_does(cli):
    cli("ingest", "--no-embed", "--at", "2026-05-09T23:30:00Z", stdin="Redis lost our jobs")
    shown = cli("context", "Redis", "--budget", "500", "--explain", env={"TZ": "CET-1"})
    assert "2026-05-10" in shown.err
    assert "2026-05-09" not in shown.err


def test_explain_prints_ten_nearest_misses_and_last_what_was_taken(talk):
    result = talk("context", "q", "--budget", "300", "--explain", "--recent", "25", "--fill")
    rows = [line for line in result.err.splitlines() if "2026-05-09" in line]
    document = talk(
        "context", "q", "--budget", "300", "--explain", "--recent", "25", "--format", "json"
    ).document
    kept = {str(row["id"]) for row in document["explain"] if row["outcome"] == "kept"}
    assert {line.split()[0] for line in rows[10:]} == kept
    assert not {line.split()[0] for line in rows[:10]} & kept
    assert sum("best match" in line for line in rows) <= 1
    assert re.search(r"\d+ candidates more left out \(--explain all\)", result.err)


def test_all_is_a_word_of_the_question_unless_it_ends_the_options(talk):
    asked = talk("context", "--explain", "all", "ports", "--format", "json").document
    assert asked["query"] == "all ports"
    asked = talk("context", "ports", "--explain", "all", "--format", "json").document
    assert asked["query"] == "ports"


def test_without_explain_the_document_has_no_explanation(talk):
    assert "explain" not in talk("context", "q", "--format", "json").document


# Settings


def kept(cli, *arguments, **options):
    document = cli("context", "", "--format", "json", *arguments, **options).document
    return [row["id"] for row in document["messages"]]


def origins(cli, **options):
    rows = cli("config", "--list", "--json", **options).document["settings"]
    return {row["key"]: (row["value"], row["origin"]) for row in rows}


def test_a_setting_of_a_partition_changes_the_next_context_of_that_partition_only(cli):
    for partition in ("coding", "research"):
        place = {"partition": partition, "instance": partition}
        cli.store(
            *(
                {"content": f"note {number} in {partition}", "source_id": f"{partition}{number}"}
                | place
                for number in range(40)
            )
        )
    arguments = ("--model", "codellama", "--similar", "0")
    assert len(kept(cli, "-p", "research", *arguments)) == 15
    used = {
        name: cli("context", "q", "-p", name, "--format", "json", *arguments).document["budget"][
            "used"
        ]
        for name in ("coding", "research")
    }
    cli("config", "--set", "partitions.research.recent_context_size=30")
    cli("config", "--set", "partitions.coding.token_multiplier=1.3")
    assert len(kept(cli, "-p", "research", *arguments)) == 30
    assert len(kept(cli, "-p", "coding", *arguments)) == 15
    document = cli("context", "q", "-p", "coding", "--format", "json", *arguments).document
    assert document["budget"]["used"] == pytest.approx(1.3 * used["coding"], abs=20)
    listed = origins(cli)
    assert listed["partitions.research.recent_context_size"] == (30, "partition")
    assert listed["partitions.coding.token_multiplier"] == (1.3, "partition")
    assert listed["recent_context_size"] == (15, "default")


def test_a_variable_overrides_the_file_and_the_list_shows_it(talk):
    talk("config", "--set", "recent_context_size=4")
    env = {"RESERVOIR_RECENT_CONTEXT_SIZE": "2"}
    arguments = ("--model", "gpt-4", "--similar", "0")
    assert len(kept(talk, *arguments)) == 4
    assert len(kept(talk, *arguments, env=env)) == 2
    assert len(kept(talk, *arguments, "--recent", "6", env=env)) == 6
    assert origins(talk)["recent_context_size"] == (4, "file")
    assert origins(talk, env=env)["recent_context_size"] == (2, "environment")


def test_a_setting_of_a_model_changes_contexts_for_that_model_only(talk):
    talk("config", "--set", "models.gpt-4-turbo.semantic_context_size=50")
    listed = origins(talk)
    assert listed["models.gpt-4-turbo.semantic_context_size"] == (50, "model")
    arguments = ("context", "q", "--format", "json", "--recent", "0", "--floor", "0")
    documents = {
        model: talk(*arguments, "--model", model).document for model in ("gpt-4-turbo", "gpt-4o")
    }
    counts = {
        name: sum(row["id"] is not None for row in document["messages"])
        for name, document in documents.items()
    }
    assert counts["gpt-4-turbo"] >= 50 > counts["gpt-4o"] >= 30


def test_the_model_and_the_profile_of_the_settings_name_their_origins(cli):
    cli("config", "--set", "model=gpt-4")
    cli("config", "--set", "models.gpt-4.recent_context_size=3")
    listed = origins(cli)
    assert listed["recent_context_size"] == (3, "model")
    assert listed["semantic_context_size"] == (5, "profile")
    assert listed["model"] == ("gpt-4", "file")


def test_an_unquoted_header_of_a_model_names_that_model(cli):
    cli.home.mkdir(parents=True)
    file = cli.home / "reservoir.toml"
    file.write_text("[models.gpt-3.5-turbo]\nreserve_tokens = 96\n")
    assert cli("budget", "--model", "gpt-3.5-turbo").out.splitlines()[-1] == "4000"


# What does not change


def test_a_read_only_store_gives_the_same_context(talk, as_owner):
    arguments = ("context", "words?", "--budget", "300")
    writable = talk(*arguments)
    talk.db.chmod(0o400)
    mode = talk.home.stat().st_mode
    talk.home.chmod(0o500)
    try:
        read_only = talk(*arguments, command=(*as_owner, str(RESERVOIR)))
    finally:
        talk.home.chmod(mode)
        talk.db.chmod(0o600)
    assert read_only.out == writable.out


def test_repeated_contexts_are_identical(talk):
    arguments = ("context", "words?", "--budget", "300", "--format", "openai")
    assert len({json.dumps(talk(*arguments).document) for _ in range(2)}) == 1
