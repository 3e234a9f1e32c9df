"""Names of partitions, instances, traces and conversations, at every entry point."""

import json

import pytest

from reservoir_cli import Message, Reservoir
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import clean_name

BAD = ("a\x1b[31mb", "a\nb", "a\tb", "a\x7fb", "a\x9bb", "a\u2028b", "a\u202eb", "a\u2066b")


@pytest.mark.parametrize("name", BAD)
def test_a_command_refuses_a_name_with_control_characters(cli, name):
    for option in ("-p", "-i"):
        result = cli("ingest", "--no-embed", option, name, stdin="x", code=2)
        problem = f"error: a name cannot contain control characters: {name!r}\n"
        assert result.err.startswith(problem)
    cli("config", "set", f"partition={name}", code=2)
    assert cli.rows("--all-partitions") == []


def test_a_partition_is_not_renamed_to_a_name_with_control_characters(cli):
    cli.say("hello")
    cli("partitions", "rename", "default", BAD[0], "--yes", code=2)
    assert cli.rows()[0]["partition"] == "default"


def test_names_of_a_file_are_cleaned(cli, tmp_path):
    rows = [
        {"role": "user", "content": "x", "source": "s", "source_id": str(number)}
        | dict.fromkeys(("partition", "instance", "trace_id", "conversation_id"), name)
        | {"conversation": {"title": "t", "source": "s", "model": None}}
        for number, name in enumerate(BAD)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    cli("ingest", "--no-embed", str(file))
    stored = cli.rows("--all-partitions")
    assert len(stored) == len(BAD)
    for row, name in zip(sorted(stored, key=lambda row: int(row["source_id"])), BAD, strict=True):
        for key in ("partition", "instance", "trace_id", "conversation_id"):
            assert row[key] == clean_name(name) != name
    (summary,) = cli("conversations", "-p", clean_name(BAD[0]), "--json").document["conversations"]
    assert (summary["id"], summary["title"]) == (clean_name(BAD[0]), "t")


@pytest.mark.parametrize("name", BAD)
def test_the_api_refuses_such_scopes_and_cleans_such_ids(tmp_path, name):
    with Reservoir.open(tmp_path / "store.db") as reservoir:
        for place in ({"partition": name}, {"instance": name}):
            with pytest.raises(UsageError, match="control characters"):
                reservoir.ingest([Message("user", "x")], embed=False, **place)
        message = Message("user", "x", trace_id=name, conversation_id=name)
        (stored,) = reservoir.ingest([message], embed=False)
        assert stored.trace_id == stored.conversation_id == clean_name(name)
