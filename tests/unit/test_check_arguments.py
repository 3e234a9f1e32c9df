"""Arguments of a wrong type are refused by every public method, with one line."""

import inspect
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from builders import FakeEmbedder
from each import each

from reservoir_cli import (
    ContextOptions,
    Filter,
    Message,
    Reservoir,
    Scope,
    ToolCall,
    UsageError,
    trim_history,
)
from reservoir_cli.check_arguments import RULES, rule_of
from reservoir_cli.messages import Key

NAIVE = datetime(2026, 5, 9)
#: A time that is in the year 10000 in UTC.
LATEST = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
#: Half a surrogate pair, as in a text that was cut inside an emoji.
HALF = "a\ud83d"
#: Parameters that need no rule: any value is true or false, or the method checks it itself.
UNCHECKED = frozenset(
    "self cls create offline ready_only whole copies embed pair dry_run wait include_forgotten "
    "embeddings link deduplicate passages save explain recorded repair budget".split()
)


@pytest.fixture
def reservoir(tmp_path: Path) -> Any:
    with Reservoir.open(tmp_path / "r.db", embedder=FakeEmbedder()) as opened:
        yield opened


def test_every_parameter_of_a_public_method_has_a_rule():
    methods = inspect.getmembers(
        Reservoir, lambda member: inspect.isfunction(member) or inspect.ismethod(member)
    )
    names = {
        rule_of(parameter)
        for name, method in methods
        if not name.startswith("_")
        for parameter in inspect.signature(method).parameters.values()
    }
    assert names - UNCHECKED == RULES.keys()


@each(
    ("call", "problem"),
    [
        (lambda r: r.context(123), "query must be text, not int"),
        (lambda r: r.context("a", budget="abc"), "positive whole number"),
        (lambda r: r.context("a", now=NAIVE), "now has no time zone"),
        (lambda r: r.context("a", episode="b"), "episode must be a list of texts, not str"),
        (lambda r: r.context("a", knowledge=["b"]), "list of pairs, not a list of str"),
        (lambda r: r.context("a", options={"fill": True}), "must be ContextOptions, not dict"),
        (lambda r: r.recall("a", since="today"), "since must be a datetime, not str"),
        (lambda r: r.ingest("text"), "messages must be a list of Message values, not str"),
        (lambda r: r.ingest([{"role": "user"}]), "Message values, not a list of dict"),
        (lambda r: r.ingest(iter([Message("user", "a"), "b"])), "Message values, not a list of"),
        (lambda r: r.context("a", episode=(5 for _ in "a")), "a list of texts, not a list of int"),
        (lambda r: r.context("a", knowledge={5}), "list of pairs, not set"),
        (lambda r: r.context("a", without=[Key("p", 1)]), "a list of ids, not a list of Key"),
        (lambda r: r.context("a", options=ContextOptions), "must be ContextOptions, not type"),
        (lambda r: r.context("a", options=ContextOptions(order=Lock())), "order must be a string"),  # type: ignore[arg-type]
        (lambda r: r.context("a", now=LATEST), "now is too far from today"),
        (lambda r: r.context("a", budget=500).to(5), "format must be text, not int"),
        (lambda r: r.import_files(["a.json"]), "sources must be a path, not a list of str"),
        (lambda r: r.sync(["codex"]), "a list of Source values, not a list of str"),
        (lambda r: r.view("work"), r"a Scope, such as Scope\(\"work\"\), not str"),
        (lambda r: r.find(Scope("p"), {"role": "user"}), "a Filter, such as .*, not dict"),
        (lambda r: r.search("a", limit="5"), "limit must be a whole number, not str"),
        (lambda r: r.messages("12"), "ids must be a list of ids from 0 up, or of keys, not str"),
        (lambda r: r.forget(["12"]), "a list of ids from 0 up, or of keys, not a list of str"),
        (lambda r: r.edit("12", "new"), "message must be the id of a message, not str"),
        (lambda r: r.tag(1, 2), "names must be text, not int"),
        (lambda r: r.untag(1, HALF), "names is not valid text"),
        (lambda r: r.untag(1, "a\0"), "names is not valid text"),
        (lambda r: r.messages([Key("a\0", 1)]), "partition is not valid text"),
        (lambda r: r.view(Scope(None, "i")), "an instance without its partition"),
        (lambda r: r.stats(partition=HALF), "partition is not valid text"),
        (lambda r: r.conversations(only=HALF), "only is not valid text"),
        (lambda r: r.move_partition(HALF, "a"), "old is not valid text"),
        (lambda r: r.edit(2**63, "new"), "message must be the id of a message"),
        (lambda r: r.pin(Key("p", 2**63)), "message must be the id of a message"),
        (lambda r: r.forget([True]), "a list of ids from 0 up, or of keys, not a list of bool"),
        (
            lambda r: r.messages([1, Key("p", 1)]),
            "a list of ids from 0 up, or of keys, not a list of int",
        ),
        (lambda r: r.view(count=-1), "count cannot be -1"),
        (lambda r: r.view(count=2**63), "count cannot be 9223372036854775808"),
        (lambda r: r.budget(procedure=None), "procedure must be a whole number, not NoneType"),
        (lambda r: r.budget(reserve=-5), "reserve cannot be -5"),
        (lambda r: r.backup("a\0b"), r"file cannot be 'a\\x00b'"),
        (lambda r: r.import_files(""), "sources cannot be ''"),
        (lambda r: r.stats(NAIVE), "since has no time zone"),
        (lambda r: r.budget(maximum="abc"), "maximum must be a whole number, not str"),
        (lambda r: r.export("a.jsonl"), "out must be a Path or a function, not str"),
        (lambda r: r.move_partition("a", None), "new must be text, not NoneType"),
        (lambda r: r.use(settings={}), "settings must be the config of a Reservoir"),
        (lambda _: Reservoir.open(5), "location must be a path, not int"),
        (lambda _: Reservoir.open(HALF), "location cannot be"),
        (lambda _: Reservoir.open("a.db", settings="redact"), "settings must be a mapping"),  # type: ignore[arg-type]
        (lambda _: Reservoir.open("a.db", settings={5: "a"}), "settings must be a mapping"),  # type: ignore[dict-item]
        (lambda _: Reservoir.open("a.db", notify=5), "notify must be a function, not int"),  # type: ignore[arg-type]
        (lambda _: Reservoir.open("a.db", config_file=Path("a\0")), "config_file cannot be"),
        (lambda _: Message("user", "a", trace_id=5), "trace_id must be text, not int"),  # type: ignore[arg-type]
        (lambda _: Message("user", "a", tags="ab"), "tags must be a tuple of texts, not str"),  # type: ignore[arg-type]
        (lambda _: Message("user", "a", pinned_at=NAIVE), "pinned_at has no time zone"),
        (lambda _: Message("user", "a", tool_calls=5), "tuple of ToolCall values, not int"),  # type: ignore[arg-type]
        (lambda _: ToolCall("1", "find", {}), "arguments must be text, not dict"),  # type: ignore[arg-type]
        (lambda _: ToolCall("1", "", "{}"), "a tool call has no name"),
        (lambda _: Filter(conversation_id=HALF), "conversation_id is not valid text"),
        (lambda _: Filter(trace_id="a\0"), "trace_id is not valid text"),
        (lambda _: trim_history("a", turn_start=2, iteration=2, budget=1), "chat messages"),  # type: ignore[arg-type]
        (lambda _: trim_history([], turn_start=2, iteration=2, budget="1"), "budget must be"),  # type: ignore[arg-type]
        (lambda _: Message("user", 5), "content must be text, not int"),  # type: ignore[arg-type]
        (lambda _: Message("assistant", "", tool_calls=({},)), "ToolCall values, not a tuple of"),
        (lambda _: Scope(5), "partition must be text, not int"),  # type: ignore[arg-type]
        (lambda _: Filter(until=NAIVE), "until has no time zone"),
        (lambda _: Filter(tag=5), "tag must be text, not int"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_a_wrong_type_is_a_usage_error(reservoir, call, problem):
    with pytest.raises(UsageError, match=problem) as caught:
        call(reservoir)
    assert "\n" not in caught.value.message
    assert reservoir.view(Scope(None)) == []


def test_values_of_all_documented_types_are_accepted(reservoir, tmp_path):
    [message] = reservoir.ingest(message for message in [Message("user", "one")])  # type: ignore[arg-type]
    for ids in ([message.id], (message.key,), reservoir.find(Scope(None))):
        assert len(reservoir.messages(ids)) == 1
    for pieces in ({"a": "b"}, [("a", "b")], {"a": "b"}.items()):
        window = reservoir.context(
            "one", budget=500, procedure=pieces, options=ContextOptions(), now=datetime.now(UTC)
        )
        assert window.messages
    reservoir.export(tmp_path / "a.jsonl")
    assert reservoir.import_files(str(tmp_path / "a.jsonl"), tmp_path / "a.jsonl").already == 2
    assert len(reservoir.search(HALF, limit=5)) == 1
    assert reservoir.budget(model="gpt-4o", partition=None, system=10).model == "gpt-4o"
    assert reservoir.tag(Key("default", message.id), "a", "b").tags == ("a", "b")


def test_an_unknown_argument_is_a_type_error(reservoir):
    with pytest.raises(TypeError, match=r"view\(\) got an unexpected keyword argument 'limit'"):
        reservoir.view(limit=5)  # type: ignore[call-arg]
