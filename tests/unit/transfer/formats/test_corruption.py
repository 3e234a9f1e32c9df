"""Damaged files give messages and reasons, never a crash or half a record.

The long form is ``python tests/unit/transfer/formats/corrupt.py``.
"""

from pathlib import Path

import pytest
from corrupting import import_damaged
from databases import NAMES, create_database
from llm_logs import newer_log, older_log
from reading import SAMPLES

#: Of each sample; the long form takes thousands.
SEEDS = range(15)
FILES = sorted(path.name for path in SAMPLES.iterdir())


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_does_no_harm(name: str, tmp_path: Path) -> None:
    sample = (SAMPLES / name).read_bytes()
    outcomes = {import_damaged(sample, name, seed, tmp_path) for seed in SEEDS}
    assert "imported" in outcomes


@pytest.mark.parametrize("tool", NAMES)
def test_a_damaged_database_does_no_harm(tool: str, tmp_path: Path) -> None:
    path = create_database(tmp_path, tool)
    sample = path.read_bytes()
    outcomes = {import_damaged(sample, path.name, seed, tmp_path) for seed in SEEDS}
    assert "imported" in outcomes


@pytest.mark.parametrize("log", [older_log, newer_log])
def test_a_damaged_log_does_no_harm(log, tmp_path: Path) -> None:
    sample = log(tmp_path / "logs.db").read_bytes()
    outcomes = {import_damaged(sample, "logs.db", seed, tmp_path) for seed in SEEDS}
    assert "imported" in outcomes
