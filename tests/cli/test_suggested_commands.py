"""Hints and notes suggest commands for the store and settings of the command line."""

import shlex

import pytest

from reservoir_cli.cli.global_options import complete, repeat

COMMANDS = ("view", "doctor", "config", "context")


@pytest.fixture
def repeating():
    """Return the function that repeats an option, and undo it after the test."""
    yield lambda option, value: repeat(option, value, COMMANDS)
    for option in ("--config", "--db"):
        repeat(option, None, COMMANDS)


def test_hints_for_a_damaged_store_name_the_store(cli):
    cli.say("the healthy store")
    damaged = cli.home.parent / "a damaged store.db"
    damaged.write_bytes(cli.db.read_bytes()[:5000])
    failed = cli("--db", damaged.name, "view", code=3)
    quoted = f"--db {shlex.quote(damaged.name)}"
    assert f"run reservoir {quoted} doctor --repair" in failed.err
    assert f"or use reservoir {quoted} doctor --salvage FILE" in failed.err
    failed = cli("--db", damaged.name, "view", "--json", code=3)
    assert f"reservoir {quoted} doctor --repair" in failed.document["error"]["hint"]
    failed = cli("--db", damaged.name, "doctor", "--json", code=1)
    assert f"reservoir {quoted} doctor --salvage" in str(failed.document["checks"])
    assert "--db" not in cli("view", "-p", "absent").err


def test_notes_name_the_settings_file(cli):
    cli.home.mkdir(exist_ok=True)
    settings = cli.home / "own.toml"
    settings.write_text("")
    result = cli("--config", str(settings), "view")
    assert f"reservoir --config {settings} ingest FILE" in result.err
    result = cli("--config", str(settings), "partitions", "ls", code=2)
    assert f"hint: reservoir --config {settings} partitions list\n" in result.err


def test_hints_mask_the_password_of_a_store(cli):
    url = "postgresql://me:S3cret@localhost:1/memory"
    for words in ("view", "--last", "5"), ("config", "show"):
        failed = cli("--db", url, *words, code=2)
        assert "S3cret" not in failed.err
        assert "hint: reservoir --db 'postgresql://me:***@localhost:1/memory' " in failed.err


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("reservoir view, or reservoir doctor", "reservoir O view, or reservoir O doctor"),
        ("reservoir view --help", "reservoir view --help"),
        ("reservoir context --help", "reservoir context --help"),
        ("a reservoir viewed", "a reservoir viewed"),
        ("in /srv/reservoir view it", "in /srv/reservoir view it"),
        ("reservoir --db 'a b' view", "reservoir --config c.toml --db 'a b' view"),
        ("reservoir --offline view", "reservoir O --offline view"),
    ],
)
def test_only_commands_without_the_options_are_completed(repeating, text, completed):
    repeating("--config", "c.toml")
    repeating("--db", "my store.db")
    assert complete(text) == completed.replace("O", "--config c.toml --db 'my store.db'")


def test_nothing_is_completed_without_options(repeating):
    repeating("--db", None)
    assert complete("reservoir view") == "reservoir view"
