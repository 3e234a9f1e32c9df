"""Filters: each of each command narrows what the command finds."""

import pytest
import typer
from command_line import Cli

from reservoir_cli.cli.app import app
from reservoir_cli.cli.options import FILTERS

KEY = "xoxb-123456789012-1234567890123-4mt0t4l1yf4k3t0k3nabcdef"
ROWS = (
    {
        "content": f"Is the cellar damp? {KEY}",
        "trace_id": "t1",
        "conversation_id": "c1",
        "source": "codex",
        "conversation": {"title": "One", "project": "app"},
        "created_at": "2026-05-10T12:00:00Z",
    },
    {
        "content": "Yes, the cellar is damp.",
        "role": "assistant",
        "trace_id": "t2",
        "conversation_id": "c2",
        "conversation": {"title": "Two", "project": "web"},
        "created_at": "2026-05-09T12:00:00Z",
    },
)
#: For each option that filters, a value that only one of the two messages has.
VALUES = {
    "--trace-id": "t1",
    "--conversation": "c1",
    "--match": "yes",
    "--since": "2026-05-10",
    "--until": "2026-05-10",
    "--before": "2026-05-10",
    "--role": "user",
    "--source": "codex",
    "--project": "app",
    "--tag": "wet",
    "--pinned": None,
    "--secrets": None,
}
#: How a command prints what it finds: its words, and where its JSON has the rows or their ids.
COMMANDS = {
    "view": (["view", "0", "--json"], "messages"),
    "export": (["export", "--json"], "messages"),
    "search": (["search", "--keyword", "cellar", "--json"], "hits"),
    "context": (["context", "", "--format", "json"], "messages"),
    "conversations": (["conversations", "--json"], "conversations"),
    "recall": (["recall", "Is the cellar damp?", "--json"], "messages"),
    "move": (["move", "--to", "work", "--dry-run", "--json"], "ids"),
    "forget": (["forget", "--dry-run", "--json"], "ids"),
}
#: The words with which a command that needs a filter finds both messages.
EVERYTHING = {"move": ["--since", "2026-05-09"], "forget": ["--scope"]}
#: Counts runs, not messages.
OTHERS = {"stats"}
BY_SCORE = "--threshold"


def filter_options():
    """Return each option that filters, with its command."""
    commands = typer.main.get_command(app).commands.items()
    options = [
        (name, param.opts[-1], getattr(param, "rich_help_panel", None))
        for name, command in commands
        for param in command.params
        if name not in OTHERS and param.opts[-1] != BY_SCORE
    ]
    return [
        (name, option)
        for name, option, panel in options
        if panel == FILTERS or (panel is None and option in VALUES)
    ]


@pytest.fixture(scope="module")
def filled_cli(tmp_path_factory):
    """Return a home with two messages, of which the first has a tag, a pin and a secret."""
    cli = Cli(tmp_path_factory.mktemp("filters") / "home")
    cli.store(*ROWS)
    cli("tag", "1", "wet")
    cli("pin", "1")
    return cli


def find(cli, command, *words):
    """Return the ids of what a command finds."""
    typed, field = COMMANDS[command]
    rows = cli(*typed, *words).document[field]
    return {row["id"] if isinstance(row, dict) else row for row in rows}


def test_each_filter_of_each_command_narrows_its_result(filled_cli):
    options = filter_options()
    assert {command for command, _ in options} == COMMANDS.keys()
    every = {
        command: find(filled_cli, command, *EVERYTHING.get(command, ())) for command in COMMANDS
    }
    assert {command for command, ids in every.items() if len(ids) != 2} == set()
    found = {
        (command, option): find(filled_cli, command, option, *filter(None, [VALUES[option]]))
        for command, option in options
    }
    assert {case: ids for case, ids in found.items() if len(ids) != 1} == {}
