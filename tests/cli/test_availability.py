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


def test_a_name_of_the_documents_is_accepted_and_not_listed(cli):
    assert cli("config", "--set", "token_reserve=100").err == ""
    for name in ("token_reserve", "reserve_tokens"):
        assert cli("config", "--get", name).out == "100\n"
    listed = {line.split("\t")[0] for line in cli("config").out.splitlines()}
    assert "reserve_tokens" in listed
    assert "token_reserve" not in listed


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
