"""The page on JSON lists exactly the fields of every command; each document has a version."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import SAMPLES, Cli

from reservoir_cli.agents import injection_log
from reservoir_cli.context.recall import Recall
from reservoir_cli.reservoir import Reservoir

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
REDIS = "why did we drop Redis?"
#: Commands for each section; several if one does not fill all fields.
COMMANDS = {
    "view": ["view 5 -p work -i backend", "view 1 -p notes"],
    "search": ["search redis -p work --link", "search redis -p work --keyword"],
    "context": [
        "context 'why did we drop Redis?' -p work --format json --budget 600",
        "context 'cast iron' -p home -i kitchen --format json --budget 3000 --explain",
    ],
    "recall": ["recall 'why did we drop Redis?' -p work", "recall hm -p work"],
    "recall --last": ["recall --last"],
    "ingest": ["ingest FILE --dry-run", "ingest FILE BROKEN --dry-run"],
    "conversations": ["conversations -p work"],
    "partitions": ["partitions"],
    "export": ["export -p work --format json", "export -p home --format json --with-embeddings"],
    "forget": ["forget -p home --match yeast --all-instances --dry-run"],
    "move": ["move -p home --match yeast --to work --dry-run"],
    "summarize": ["summarize -p home --dry-run"],
    "budget": ["budget", "budget --model gpt-4"],
    "models": ["models"],
    "config": ["config"],
    "config get": ["config get partition", "config get recall_floor"],
    "config path": ["config path", "config set partition=work"],
    "stats": ["stats --plot"],
    "embed": ["embed"],
    "sync": ["sync codex"],
    "sync --timer": ["sync --timer"],
    "connect": ["connect"],
    "disconnect": ["disconnect gemini --dry-run"],
    "init": ["init --dry-run"],
    "doctor": ["doctor"],
    "doctor --salvage": ["doctor --salvage saved.db"],
    "doctor --calibrate": ["doctor --calibrate"],
    "backup": ["backup copy.db -y"],
    "db status": ["db status"],
    "db migrate": ["db migrate"],
    "db copy": ["db copy STORE empty.db --dry-run"],
    "db shard-sql": ["db shard-sql"],
    "An error": ["view 0 -p nobody --id 1"],
}
#: Fields that none of these commands prints.
RARE = {
    *(f"messages[].tool_calls[].{field}" for field in ("id", "name", "arguments")),
    *("sources[].failures[]", "sources[].reasons[]", "sources[].notes[]", "notes[]"),
    "incomplete[]",
    *("use.by_week[].week", "use.by_week[].partition"),
    *("failed_hooks[].at", "failed_hooks[].reason"),
}
#: Fields of a message that only some messages have.
MARKS = ("secrets[]", "tags[]", "pinned", "pinned_at")
FAILING = {"view 0 -p nobody --id 1": 1, "ingest FILE BROKEN --dry-run": 1}
KINDS = {
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "time": lambda value: re.fullmatch(r"\d{4}(-\d\d){2}T[\d:.]+\+00:00", value),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
    "any": lambda _: True,
}


def sections() -> dict[str, dict[str, str]]:
    """Parse the page: the types of fields by section."""
    tables = {}
    for section in PAGE.split("\n## ")[1:]:
        cells = re.findall(r"^\| (`.+?`) \| (.+?) \|", section, re.MULTILINE)
        rows = [(name, kind) for names, kind in cells for name in re.findall(r"`(\S+)`", names)]
        assert len(rows) == len(dict(rows)), section.split("\n")[0]
        tables[section.split("\n")[0]] = dict(rows)
    message = tables["A message"]
    for table in tables.values():
        for field in [name for name, kind in table.items() if kind.startswith("[message]")]:
            rows = {f"{field}.{name}": kind for name, kind in message.items()}
            table |= {name: kind for name, kind in rows.items() if name not in table}
            table[field] = "object"
    return tables


TABLES = sections()


def fields(value: Any, known: dict[str, str], path: str = "") -> Iterator[tuple[str, Any]]:
    """Return every field of a document, without descending into documented objects and lists."""
    if isinstance(value, dict) and known.get(path, "object") == "object" and path != "secrets":
        inner = [(f"{path}.{name}" if path else name, part) for name, part in value.items()]
        if path in known and not any(name in known for name, _ in inner):
            inner = []  # a table with names of the user
            yield path, value
    elif isinstance(value, list) and not known.get(path, "").startswith("list"):
        inner = [(f"{path}[]", part) for part in value]
    else:
        yield path, value
        inner = []
        if isinstance(value, list):
            inner = [(f"{path}[]", part) for part in value if isinstance(part, dict)]
    for name, part in inner:
        yield from fields(part, known, name)


@pytest.fixture(scope="module")
def person(sample_home, tmp_path_factory):
    """Return a home with the samples, histories of some tools, and a recorded run."""
    home = tmp_path_factory.mktemp("json") / "home"
    shutil.copytree(sample_home, home, symlinks=True)
    reader = Cli(home, model=True)
    (home / "broken.jsonl").write_text('{"role": "user", "content": "ghp_' + "a8Kd03Lq92Xz" * 3)
    session = home / ".codex" / "sessions" / "2026" / "05" / "rollout-a.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text("")
    reader("recall", REDIS, "-p", "work")
    with pytest.MonkeyPatch.context() as patch, Reservoir.open(home / "reservoir.db") as reservoir:
        patch.setenv("RESERVOIR_HOME", str(home))
        recalled = reservoir.recall(REDIS, partition="work")
        assert isinstance(recalled, Recall)
        injection_log.record(reservoir, recalled, "hook", "claude", "work", "s1")
    key = f"The key is {'ghp_' + 'a8Kd03Lq92Xz' * 3}."
    number = reader("ingest", "-p", "notes", stdin=key).out.strip()
    reader("tag", number, "keys", "-p", "notes")
    reader("pin", number, "-p", "notes")
    return reader


def document_of(person: Cli, command: str) -> Any:
    """Return the document that a command prints, also when it fails."""
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]
    places = {
        "FILE": str(SAMPLES / "sourdough.jsonl"),
        "BROKEN": str(person.home / "broken.jsonl"),
        "STORE": str(person.home / "reservoir.db"),
    }
    form = () if "--format" in words else ("--json",)
    code = FAILING.get(command, 0)
    return json.loads(person(*(places.get(word, word) for word in words), *form, code=code).out)


@pytest.mark.parametrize("section", COMMANDS)
def test_the_page_lists_every_field(person, section):
    known = TABLES[section]
    seen = set()
    for command in COMMANDS[section]:
        document = document_of(person, command)
        if isinstance(document, dict):
            assert document.pop("schema_version") == 1
        for path, value in fields(document, known):
            assert path in known, f"{command}: docs/json.md does not list {path}"
            kinds = known[path].split(" or ")
            assert any(KINDS[kind](value) for kind in kinds), f"{path} is no {known[path]}: {value}"
            seen.add(path)
    referring = {name for name, kind in known.items() if kind == "object" and name.endswith("]")}
    absent = known.keys() - seen - referring - RARE
    assert {name for name in absent if section == "view" or not name.endswith(MARKS)} == set()


def test_every_section_has_a_command():
    servers = {"db status of a server", "db index", "serve"}
    assert TABLES.keys() - COMMANDS.keys() == {"A message", *servers}
