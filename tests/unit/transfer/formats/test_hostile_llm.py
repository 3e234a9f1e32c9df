"""Hostile logs of llm: memory and time are bounded by the size of the file."""

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from llm_logs import NEWER, OLDER
from reading import entries_by_file, skipped

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.reading import foreign_databases
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.util.read_files import LARGEST

#: The memory limit of a process, including that of Python.
MOST = 1 << 30


def create_database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as log, log:
        for statement in statements:
            log.executescript(statement)
    return path


def count_to(count: int) -> str:
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"


def read_log(path: Path) -> list[Record | Skipped]:
    [entries] = entries_by_file(path).values()
    return entries


COMPUTED = {
    "a generated column": """
        ALTER TABLE responses ADD COLUMN reasoning TEXT
        GENERATED ALWAYS AS (replace(hex(zeroblob(20000000)), '0', 'x'))
    """,
    "a generated column that is not read": """
        ALTER TABLE responses ADD COLUMN debug TEXT GENERATED ALWAYS AS (hex(zeroblob(20000000)))
    """,
    "a long default": f"ALTER TABLE responses ADD COLUMN reasoning TEXT DEFAULT '{'x' * 50_000}'",
    "a virtual table": """
        DROP TABLE fragments; CREATE VIRTUAL TABLE fragments USING fts5 (id, content)
    """,
}


@pytest.mark.parametrize("statement", COMPUTED.values(), ids=COMPUTED)
def test_a_database_with_computed_content_is_refused(tmp_path, statement):
    path = create_database(tmp_path / "logs.db", OLDER, statement)
    with pytest.raises(ReservoirError, match="is not a log as llm writes it: the table") as refused:
        read_log(path)
    assert refused.value.hint == "llm logs path prints the path of llm's own log"


def fragments(count: int, size: int) -> str:
    """Write a prompt that refers to the same text many times."""
    return f"""
        INSERT INTO responses (id, prompt) VALUES ('r', 'why?'), ('s', 'how?');
        UPDATE fragments SET content = '{"abcd " * (size // 5)}';
        {count_to(count)} INSERT INTO prompt_fragments SELECT 'r', 1, i FROM n;
    """


def chains(threads: int, messages: int) -> str:
    """Write many threads that share the same messages without a question."""
    return f"""
        {count_to(messages)} INSERT INTO messages SELECT i, i - 1, 'assistant', NULL FROM n;
        {count_to(messages)} INSERT INTO parts SELECT i, i, 0, 'text', NULL, 'x', NULL FROM n;
        {count_to(threads)} INSERT INTO turns SELECT i, i, NULL, '{messages}', NULL, NULL FROM n;
    """


ENDLESS = {
    "threads that share a chain": (NEWER, chains(400, 400)),
    "tables without an index": (
        OLDER,
        f"{count_to(4000)} INSERT INTO responses (id, prompt) SELECT i, 'x' FROM n;"
        f"{count_to(4000)} INSERT INTO prompt_fragments SELECT 'x', 1, i FROM n;",
    ),
}


@pytest.mark.parametrize("statements", ENDLESS.values(), ids=ENDLESS)
def test_reading_a_log_stops_if_it_takes_too_long_for_its_size(tmp_path, monkeypatch, statements):
    path = create_database(tmp_path / "logs.db", *statements)
    monkeypatch.setattr(foreign_databases, "STEPS", 5_000_000)
    monkeypatch.setattr(foreign_databases, "STEPS_A_BYTE", 10)
    reasons = [reason for _, reason in skipped(read_log(path))]
    assert reasons == ["reading it takes too long for a file of its size"]


def test_a_message_that_grows_too_large_is_left_out(tmp_path):
    size = 400_000
    path = create_database(tmp_path / "logs.db", OLDER, fragments(LARGEST // size + 2, size))
    assert skipped(read_log(path)) == [("response 1", "larger than 64 MB")]


LIMITED: dict[str, Callable[[], str]] = {
    "fragments": lambda: fragments(2_000, 30_000),
    "chains": lambda: chains(160, 160),
}


@pytest.mark.parametrize("statements", LIMITED.values(), ids=LIMITED)
def test_a_small_log_needs_little_memory(tmp_path, statements):
    path = create_database(tmp_path / "logs.db", OLDER, NEWER, statements())
    assert path.stat().st_size < 200_000
    read = f"""
import sys
from reservoir_cli.cli.app import main
sys.argv = ["reservoir", "ingest", "--dry-run", {str(path)!r}]
main()
"""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))

    result = subprocess.run(
        [sys.executable, "-c", read], capture_output=True, preexec_fn=limit, check=False
    )
    assert result.returncode in (0, 1)
    assert b"MemoryError" not in result.stderr
    assert b"skipped" in result.stderr
