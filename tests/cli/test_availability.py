"""Counters and models in the settings: checked when they are set, optional when they are used."""

import json
from pathlib import Path

import pytest

SAID = {"role": "user", "content": "hello"}


@pytest.fixture
def file(cli):
    cli.home.mkdir(exist_ok=True)
    return cli.home / "reservoir.toml"


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ("token_counter=nonsense", 2, "unknown token counter"),
        ("token_counter=anthropic:", 2, "unknown token counter"),
        ("partitions.work.token_counter=tiktoken:nonsense", 2, "unknown tiktoken encoding"),
        ("models.gpt-4.token_counter=huggingface:/no/such.json", 5, "no tokenizer at /no/such"),
        ("model=gpt-99", 2, "unknown model 'gpt-99'"),
    ],
)
def test_an_unavailable_counter_or_model_cannot_be_set(cli, file, change, code, words):
    result = cli("config", "--set", "fill=true", "--set", change, code=code)
    assert words in result.err.splitlines()[0]
    assert result.err.splitlines()[1].startswith("hint: ")
    assert not file.exists()


def test_an_available_counter_or_model_can_be_set(cli):
    cli("config", "--set", "model=mine", "--set", "models.mine.context_window=9000")
    cli("config", "--set", "token_counter=anthropic:claude-opus-4")
    cli("config", "--set", "token_counter=ratio")
    assert cli("config", "--get", "model").out == "mine\n"


@pytest.mark.parametrize("counter", ["nonsense", "tiktoken:nonsense", "huggingface:/no/such.json"])
def test_ingest_works_without_the_counter(cli, file, counter):
    file.write_text(f'token_counter = "{counter}"\n', encoding="utf-8")
    result = cli("ingest", "--no-embed", stdin="by stdin")
    assert "warning: tokens are counted approximately: " in result.err
    rows = Path(cli.home / "rows.json")
    rows.write_text(json.dumps([SAID]), encoding="utf-8")
    result = cli("ingest", "--no-embed", str(rows), str(rows))
    assert result.err.count("warning: tokens are counted approximately: ") == 1
    assert {row["content"] for row in cli.rows("--all-partitions")} == {"by stdin", "hello"}
    assert all(row["tokens"] > 0 for row in cli.rows("--all-partitions"))
    code = 5 if counter.startswith("huggingface") else 2
    cli("context", "hello?", code=code)  # a budget needs the counter that was set
    checks = cli("doctor", "--json", code=1).document["checks"]
    (check,) = [row for row in checks if row["name"] == "token_counter"]
    assert (check["status"], bool(check["fix"])) == ("fault", True)


def test_doctor_names_the_counter_and_the_model_in_use(cli, file):
    checks = {row["name"]: row for row in cli("doctor", "--json").document["checks"]}
    assert checks["token_counter"]["detail"] == "approximate (default)"
    file.write_text('[partitions.work]\ntoken_counter = "huggingface:/no/such"\n', encoding="utf-8")
    checks = {row["name"]: row for row in cli("doctor", "--json", code=1).document["checks"]}
    assert checks["partitions.work.token_counter"]["status"] == "fault"
    assert checks["token_counter"]["status"] == "ok"
    file.write_text('model = "gpt-99"\n', encoding="utf-8")
    checks = {row["name"]: row for row in cli("doctor", "--json", code=1).document["checks"]}
    assert "gpt-99" in checks["language model"]["detail"]


def test_an_older_name_is_noted_when_it_is_set_and_not_listed(cli):
    result = cli("config", "--set", "similarity_threshold=0.9", "--set", "token_reserve=100")
    assert "similar_cosine, a plain cosine: 0.8 for 0.9" in result.err
    assert "token_reserve is now called reserve_tokens" in result.err
    assert cli("config", "--get", "similarity_threshold").out == "0.9\n"
    assert cli("config", "--get", "similar_cosine").out == "0.8\n"
    listed = {line.split("\t")[0] for line in cli("config").out.splitlines()}
    assert {"similar_cosine", "reserve_tokens"} <= listed
    assert not {"similarity_threshold", "token_reserve"} & listed
    assert "--output-reserve" not in cli("context", "--help").out


def test_both_options_of_the_reserve_work_and_the_newer_wins(cli):
    for command in (["budget", "--max", "9000"], ["context", "q", "--format", "json"]):
        result = cli(*command, "--reserve", "10", "--output-reserve", "20")
        assert "--output-reserve is ignored" in result.err
        old = cli(*command, "--output-reserve", "10")
        assert "ignored" not in old.err
        assert "10" in old.out
    assert result.document["budget"]["reserve"] == 10


def test_a_warning_of_the_settings_is_printed_by_every_kind_of_command(cli, file):
    file.write_text("reserve_tokens = 5\ntoken_reserve = 6\n", encoding="utf-8")
    for command in (["budget"], ["models"], ["view"], ["config"], ["context", "q"]):
        assert cli(*command).err.count("token_reserve is ignored: reserve_tokens is set, too") == 1


# The sum


@pytest.mark.parametrize(
    ("arguments", "left_out"),
    [
        (["--model", "gpt-4", "--knowledge", "5000"], {"borrowed": 1_024}),
        (["--model", "gpt-4", "--knowledge", "7000"], {"overflow": 856}),
        (["--max", "9000", "--reserve", "1000"], {}),
    ],
)
@pytest.mark.parametrize("limit", [None, 5_500])
def test_the_lines_of_a_budget_add_up(cli, file, arguments, left_out, limit):
    if limit:
        file.write_text(f"max_context_tokens = {limit}\n", encoding="utf-8")
    lines = cli("budget", *arguments).out.splitlines()
    values = {name: int(value.replace(",", "")) for name, value in map(str.split, lines[:-1])}
    available = values.pop("available")
    values.pop("recommended", None)
    before = sum(values.pop(name, 0) for name in ("window", "reserve", "withheld"))
    assert before == available
    assert available + sum(values.values()) == int(lines[-1])
    budget = cli("budget", *arguments, "--json").document
    assert budget["window"] - budget["reserve"] - budget["withheld"] == budget["available"]
    parts = sum(
        budget[name] for name in ("system", "procedure", "knowledge", "episodes", "current")
    )
    assert (
        budget["available"] - parts + budget["borrowed"] + budget["overflow"] == budget["history"]
    )
    assert limit or budget.items() >= left_out.items()
    assert budget["borrowed"] <= budget["reserve"] // 2


def test_a_budget_has_the_recommended_figure_and_the_prompt_that_is_set(cli, file):
    file.write_text('system_prompt = "Be brief."\n', encoding="utf-8")
    budget = cli("budget", "--model", "gpt-4o", "--json").document
    context = cli("context", "q", "--model", "gpt-4o", "--format", "json").document
    assert budget["recommended"] == 100_000
    assert budget["system"] == context["budget"]["system"] > 0
    assert cli("budget", "--system", "0", "--json").document["system"] == 0
    assert cli("budget", "--json").document["recommended"] is None


def test_an_overfull_window_counts_alike_everywhere(cli):
    cli.say("hello")
    result = cli("context", "q", "--budget", "20", "--system", "words " * 90, "--strict", code=6)
    assert "over budget" in result.err.splitlines()[-2]
    assert "warning: " in result.err
    stats = cli("stats", "--json").document
    assert stats["truncated_runs"] == 1
    (line,) = (cli.home / "reservoir.log").read_text(encoding="utf-8").splitlines()
    assert "truncated" in line
    assert "over budget" in line
    assert f"{stats['truncation_events']} left out or cut" in line


def test_an_overfull_window_of_an_empty_store_is_a_truncation(cli):
    cli("ingest", "--no-embed", "-p", "z", stdin="elsewhere")
    cli("context", "q", "--budget", "20", "--system", "words " * 90, "--strict", code=6)
    stats = cli("stats", "--json").document
    assert (stats["truncated_runs"], stats["truncation_events"]) == (1, 1)
