"""Every setting, in every command that uses it, from every source that can set it.

Each case checks one rule: a command prints the same for a value from any source, whatever the
sources of lower precedence contain, and something else for another value.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import forked
import pytest
import tomli_w
from builders import context

from reservoir_cli.context.candidate import Tier
from reservoir_cli.messages import Message, ToolCall
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.settings.setting import Value

ORIGINS = ("flag", "environment", "partition", "model", "file")
ASK = ("context", "which port has the database?", "-p", "p", "--trace-id", "t", "--format", "json")
FILL = (*ASK, "--budget", "700")
TIGHT = (*ASK, "-i", "q", "--recall-scope", "partition", "--budget", "450")
LONG = ("--system", "of these words there are many " * 800)
TURN = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png,x"}]},
    *(
        {"role": "user", "content": f"{number}: слова старого вопроса, some old words"}
        for number in range(99)
    ),
    {"role": "user", "content": "now"},
]
TRIM = ("trim", "--iteration", "3", "-p", "p")


@dataclass(frozen=True)
class Case:
    """A setting and a command that uses it.

    :param first: a value; with ``other`` the command must print something else.
    :param flag: the option for the setting.
    :param also: other lines of the settings file.
    :param model: the model option of the command; its table may hold the setting.
    """

    setting: str
    command: tuple[str, ...]
    first: Value
    other: Value
    flag: str | None = None
    also: Mapping[str, Any] | None = None
    model: str | None = None

    def __str__(self) -> str:
        return f"{self.command[0]}-{self.setting}"

    @property
    def origins(self) -> list[str]:
        setting = SETTINGS[self.setting]
        may = {
            "flag": self.flag is not None,
            "environment": True,
            "partition": setting.in_partitions,
            "model": setting.in_models and self.model is not None,
            "file": True,
        }
        return [origin for origin in ORIGINS if may[origin]]


CASES = [
    Case("partition", ("context", "which?", "--format", "json", "--trace-id", "t"), "p", "z", "-p"),
    Case("model", ASK, "gpt-4", "gpt-4o", "--model"),
    Case("profile", ASK, "small", "large", "--profile", model="codellama"),
    Case("recent_context_size", ASK, 2, 9, "--recent", model="gpt-4"),
    Case("semantic_context_size", ASK, 2, 9, "--similar", {"recent_context_size": 1}, "gpt-4"),
    Case("similarity_weight", FILL, 0.1, 0.9),
    Case("recency_weight", FILL, 0.0, 1.0),
    Case("similarity", FILL, "cosine", "hybrid"),
    Case("recency", FILL, "age", "rank"),
    Case("recency_half_life", FILL, "1h", "9000d", also={"recency": "age"}),
    Case("session_gap", FILL, "1m", "300d"),
    Case("min_history_messages", TIGHT, 9, 0, also={"recency_weight": 0.0}),
    Case("recall_floor", FILL, 0.0, 1.4, "--floor"),
    Case("follow", FILL, False, True, also={"session_gap": "9000d"}),
    Case("standing_instructions", (*ASK, "-i", "p", "--budget", "200"), True, False),
    Case("enough", (*ASK, "--fill"), True, False, also={"recent_context_size": 1}),
    Case("recall_scope", (*FILL, "-i", "q"), "partition", "instance", "--recall-scope"),
    Case("order", FILL, "tiers", "score", "--order"),
    Case("include_system", (*ASK, "--fill"), True, False),
    Case("fill", ASK, True, False),
    Case("recalled_role", (*ASK[:-1], "openai", "--budget", "300"), "system", "user"),
    Case("redact", (*ASK, "--fill"), "mask", "off"),
    Case("system_prompt", ASK, "Be brief.", "Be long and thorough.", "--system"),
    Case("max_knowledge_tokens", (*ASK, "--knowledge", "a=one", "--knowledge", "b=two"), 9, 900),
    Case("max_episode_tokens", (*ASK, "--episode", "one", "--episode", "two"), 9, 900),
    Case("max_tool_result_tokens", (*ASK, "--fill"), 60, 2_000),
    Case("min_history_tokens", (*ASK, "--model", "gpt-4", *LONG), 1, 4_000),
    Case("max_working_memory_tokens", ASK, 5_000, 9_000),
    Case("max_context_tokens", ASK, 500, 900, model="gpt-4"),
    Case("reserve_tokens", ASK, 100, 900, "--reserve", model="gpt-4"),
    Case("token_counter", ASK, "ratio", "approximate", model="gpt-4"),
    Case("token_multiplier", ASK, 3.0, 1.5, model="gpt-4"),
    Case("token_safety", ASK, 3.0, 1.5),
    Case("model", ("budget",), "gpt-4", "gpt-4o", "--model"),
    Case("partition", ("budget",), "p", "z", "-p", {"partitions": {"p": {"reserve_tokens": 9}}}),
    Case("max_working_memory_tokens", ("budget", "-p", "p"), 5_000, 9_000),
    Case("max_context_tokens", ("budget", "-p", "p"), 500, 900, model="gpt-4"),
    Case("reserve_tokens", ("budget", "-p", "p"), 100, 900, "--reserve", model="gpt-4"),
    Case(
        "min_history_tokens", ("budget", "-p", "p", "--max", "9000", "--current", "4500"), 1, 4000
    ),
    Case("system_prompt", ("budget", "-p", "p"), "Be brief.", "Be long and thorough, too."),
    *(
        Case(
            setting, ("budget", "-p", "p"), first, other, None, {"system_prompt": "hm " * 99}, model
        )
        for setting, first, other, model in (
            ("token_counter", "ratio", "approximate", "gpt-4"),
            ("token_multiplier", 3.0, 1.5, "gpt-4"),
            ("token_safety", 3.0, 1.5, None),
        )
    ),
    Case("max_context_tokens", ("models", "--json", "-p", "p"), 500, 900, model="gpt-4"),
    Case("reserve_tokens", ("models", "--json", "-p", "p"), 100, 900, model="gpt-4"),
    Case("trim_budget_tokens", TRIM, 700, 1_000, "--budget"),
    *(
        Case(setting, TRIM, first, other, None, {"trim_budget_tokens": 900}, "gpt-4")
        for setting, first, other in (
            ("token_counter", "ratio", "approximate"),
            ("token_multiplier", 3.0, 1.5),
        )
    ),
    Case("attachment_tokens", TRIM, 1, 9_000, None, {"trim_budget_tokens": 5_000}),
    Case("token_counter", ("ingest", "--no-embed", "--json", "-p", "p"), "ratio", "approximate"),
    Case("redact", ("ingest", "--no-embed", "--json", "-p", "p"), "remove", "off"),
    Case("redact", ("view", "0", "--json", "-p", "p"), "mask", "off"),
    Case("redact", ("search", "key", "--json", "-p", "p"), "mask", "off"),
    Case("redact", ("export", "-p", "p"), "mask", "off"),
    Case("partition", ("view", "0", "--json"), "p", "z", "-p"),
    Case("partition", ("search", "port", "--json"), "p", "z", "-p"),
    Case("partition", ("ingest", "--no-embed", "--json"), "p", "z", "-p"),
    Case("database", ("view", "0", "--json", "-p", "p"), "home/reservoir.db", "home/other.db"),
    Case("similarity", ("search", "port", "--json", "-p", "p"), "cosine", "hybrid"),
    Case("session_gap", ("search", "port", "--json", "-p", "p"), "1m", "300d"),
    Case("retention_days", ("forget", "--expired", "-p", "p", "--dry-run"), 1, 36_000),
    Case("embedding_model", ("embed",), "nobody/one", "nobody/other"),
]
#: Settings that need embeddings: tried in Python.
BY_MEANING = {
    "similar_cosine": (-0.5, 0.9),
    "min_cosine": (0.9, 0.0),
    "synapse_depth": (0, 3),
    "excerpts": ("off", "auto"),
    "excerpt_over": (10, 100_000),
}

#: Tried in test_links.py and test_summarize.py, which create links and summaries.
ELSEWHERE = {"link_cosine", "episodes", "recall"}


def test_every_setting_is_tried():
    assert {case.setting for case in CASES} | {*BY_MEANING, *ELSEWHERE} == set(SETTINGS)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store of two instances and a tool call, and an empty store."""
    folder = tmp_path_factory.mktemp("made")
    start = datetime(2026, 5, 9, 12, tzinfo=UTC)
    words = ("the database has port 5432?", "no, port 6432", "what of lunch?", "soup and bread")

    def at(number: float) -> datetime:
        return start + timedelta(minutes=97 * number)

    messages = [
        Message(("user", "assistant")[number % 2], f"{words[number % 4]} {number}", at(number))
        for number in range(36)
    ]
    call = ToolCall("c1", "read", "{}")
    messages += [
        Message("user", "Always name the port, and no lunch.", at(3.5)),
        Message("system", "old port prompt", at(36)),
        Message("user", "read the log of the port", at(37)),
        Message("assistant", "", at(38), tool_calls=(call,)),
        Message("tool", "a line of the log\n" * 90, at(39), tool_call_id="c1"),
        Message("user", "the key is AKIAIOSFODNN7EXAMPLQ, port 22", at(40)),
    ]
    with Reservoir.open(folder / "reservoir.db") as reservoir:
        reservoir.ingest(messages, partition="p", instance="p", embed=False)
        reservoir.ingest(messages[:8], partition="p", instance="q", embed=False)
        reservoir.ingest(messages[:2], partition="z", instance="z", embed=False)
    with Reservoir.open(folder / "other.db") as reservoir:
        reservoir.ingest(messages[:1], partition="p", instance="p", embed=False)
    return folder


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_command_uses_the_source_of_highest_precedence(stores, tmp_path, case):
    expected = _printed(stores, tmp_path, case, {"file": case.first})
    other = _printed(stores, tmp_path, case, {"file": case.other})
    assert expected != other
    for rank, origin in enumerate(case.origins[:-1]):  # the last is the file
        below = dict.fromkeys(case.origins[rank + 1 :], case.other)
        assert _printed(stores, tmp_path, case, {origin: case.first, **below}) == expected, origin


def _printed(stores: Path, folder: Path, case: Case, values: Mapping[str, Value]) -> Any:
    """Return the output of a command without what differs between runs."""
    shutil.rmtree(folder / "world", ignore_errors=True)
    home = folder / "world" / "home"
    shutil.copytree(stores, home)
    text = tomli_w.dumps(_document(case, values))
    (home / "reservoir.toml").write_text(text, encoding="utf-8")
    env = {"RESERVOIR_HOME": str(home), "HF_HUB_OFFLINE": "1", "TZ": "UTC", "HOME": str(home)}
    if case.setting != "embedding_model":
        env["RESERVOIR_EMBEDDING_MODEL"] = "nobody/absent-model"
    if "environment" in values:
        env[f"RESERVOIR_{case.setting.upper()}"] = SETTINGS[case.setting].format(
            values["environment"]
        )
    words = [*case.command]
    if case.model and case.command[0] != "models":
        words += ["--model", case.model]
    if "flag" in values:
        words += [str(case.flag), str(values["flag"])]
    stdin = json.dumps(TURN) if case.command[0] == "trim" else "a key AKIAIOSFODNN7EXAMPLQ of mine"
    result = forked.run(*words, stdin=stdin.encode(), env=env, folder=folder / "world")
    assert result.code == (5 if case.command[0] == "embed" else 0), result
    if case.command[0] in ("embed", "forget", "budget"):
        return result.out, result.err
    if case.command[0] == "export":
        return result.out
    document = _lasting(result.document)
    if case.command[0] == "models":
        return [row for row in document["models"] if row["name"] == case.model]
    return document


def _document(case: Case, values: Mapping[str, Value]) -> dict[str, Any]:
    """Return the text of a settings file."""
    document: dict[str, Any] = deepcopy(dict(case.also or {}))
    tables: dict[str, Sequence[str]] = {
        "file": (),
        "partition": ("partitions", "p"),
        "model": ("models", str(case.model)),
    }
    for origin, table in tables.items():
        if origin in values:
            place = document
            for name in table:
                place = place.setdefault(name, {})
            place[case.setting] = values[origin]
    return document


def _lasting(value: Any) -> Any:
    """Return a document without ids, times and durations; scores are rounded, since ages grow."""
    if isinstance(value, dict):
        volatile = {"id", "created_at", "timings_ms", "trace_id", "source_id", "origin"}
        return {key: _lasting(item) for key, item in value.items() if key not in volatile}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value


@pytest.mark.parametrize("setting", [*BY_MEANING, "link_cosine"])
def test_a_setting_for_embeddings_works_from_every_source(
    tmp_path, home, monkeypatch, fake_embedder, setting
):
    first, other = BY_MEANING.get(setting, (-1.0, 1.0))
    halves = lambda text: [(0, len(text) // 2), (len(text) // 2, len(text))]  # noqa: E731
    monkeypatch.setattr(fake_embedder, "passages", halves)

    def result_with(values: Mapping[str, Value]) -> Any:
        file = tmp_path / "settings.toml"
        case = Case(setting, (), first, other)
        file.write_text(tomli_w.dumps(_document(case, values)), encoding="utf-8")
        monkeypatch.delenv(f"RESERVOIR_{setting.upper()}", raising=False)
        if "environment" in values:
            monkeypatch.setenv(f"RESERVOIR_{setting.upper()}", str(values["environment"]))
        store = tmp_path / "store.db"
        store.unlink(missing_ok=True)
        flags = {setting: values["flag"]} if "flag" in values else {}
        arguments = {"config_file": file, "settings": flags, "embedder": fake_embedder}
        with Reservoir.open(store, **arguments) as reservoir:
            messages = [Message("user", f"word {number}") for number in range(40)]
            if setting.startswith("excerpt"):
                messages += [Message("user", "one long line\n\n" * 500)]
            reservoir.ingest(messages, partition="p", instance="p")
            if setting == "link_cosine":
                return [
                    len(hit.linked) for hit in reservoir.search("word", partition="p", link=True)
                ]
            ask = {
                "partition": "p",
                "recent_context_size": 2,
                "semantic_context_size": 9,
                "budget": 1_500,
            }
            window = context(reservoir, "word 3?", fill=setting == "min_cosine", **ask)
            return [(entry.message.content, entry.tier, entry.spans) for entry in window.kept], Tier

    origins = ["flag", "environment", "partition", "file"]
    expected = result_with({"file": first})
    assert expected != result_with({"file": other})
    for rank, origin in enumerate(origins[:-1]):
        below = dict.fromkeys(origins[rank + 1 :], other)
        assert result_with({origin: first, **below}) == expected, origin
