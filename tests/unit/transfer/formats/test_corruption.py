"""Damaged files give messages and reasons, never a crash or half a record.

The long form is ``python tests/unit/transfer/formats/corrupt.py``.
"""

from pathlib import Path

import pytest
from corrupting import import_damaged, read_damaged
from databases import NAMES, create_database
from llm_logs import newer_log, older_log
from reading import SAMPLES

FILES = sorted(path.name for path in SAMPLES.iterdir())
#: How many damaged files are only read, and how many of them are stored, too.
READ, STORED = 50, 6


def check_damaged(sample: bytes, name: str, folder: Path) -> None:
    read = {read_damaged(sample, name, seed, folder) for seed in range(READ)}
    stored = {import_damaged(sample, name, seed, folder) for seed in range(STORED)}
    assert "imported" in read & stored


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_does_no_harm(name, tmp_path):
    check_damaged((SAMPLES / name).read_bytes(), name, tmp_path)


@pytest.mark.parametrize("tool", NAMES)
def test_a_damaged_database_does_no_harm(tool, tmp_path):
    path = create_database(tmp_path, tool)
    check_damaged(path.read_bytes(), path.name, tmp_path)


@pytest.mark.parametrize("log", [older_log, newer_log])
def test_a_damaged_log_does_no_harm(log, tmp_path):
    check_damaged(log(tmp_path / "logs.db").read_bytes(), "logs.db", tmp_path)
