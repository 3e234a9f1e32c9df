"""Kill every writing command at random instants: short forms of ``make soak``."""

import re
import shutil
import subprocess

import killing
import pytest
from trials import RESERVOIR

TRIALS = 4
#: Messages of a trial: an import commits each thousand.
COUNTS = {"import": 2_200, "sync": 1_200}
#: Every run repeats the same trials; `make soak` tries more.
SEED = 1


@pytest.mark.parametrize("kind", killing.KINDS)
def test_a_kill_loses_nothing_and_leaves_nothing_half_written(tmp_path, kind):
    counts = {"count": COUNTS[kind]} if kind in COUNTS else {}
    tally = killing.KINDS[kind](tmp_path, SEED, TRIALS, **counts)
    assert tally.trials == TRIALS
    assert tally.clean, tally


def test_a_kill_while_embedding_leaves_complete_vectors(tmp_path, compiled_models):
    tally = killing.embed(tmp_path, SEED, 3, compiled_models, count=40)
    assert tally.clean, tally


def test_temporary_files_of_killed_processes_are_removed(person):
    import os

    person.must("config", "--set", "recent_context_size=3")
    old, fresh, other = (
        person.config.with_name(f".reservoir.toml.{name}")
        for name in ("abcd1234", "efgh5678", "my-own-copy")
    )
    for file in (old, fresh, other):
        file.write_text("half a fi")
    for file in (old, other):
        os.utime(file, (1, 1))
    person.must("config", "--set", "recent_context_size=4")
    assert [path.exists() for path in (old, fresh, other)] == [False, True, True]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here")
def test_an_id_is_printed_only_after_the_message_is_synced(person, tmp_path):
    person.must("ingest", "--no-embed", stdin="before")
    calls = tmp_path / "calls"
    tracing = ("strace", "-f", "-y", "-e", "trace=fsync,fdatasync,pwrite64,write", "-o", str(calls))
    try:
        subprocess.run([*tracing, "true"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip("strace may not trace here")
    result = subprocess.run(
        [*tracing, *RESERVOIR, "ingest", "--no-embed"],
        input=b"on the disk",
        env=person.env,
        check=True,
        capture_output=True,
    )
    assert result.stdout == b"2\n"
    lines = calls.read_text().splitlines()
    answered = next(
        number for number, line in enumerate(lines) if re.search(r'write\(1<.*"2\\n"', line)
    )
    written = [
        number for number, line in enumerate(lines) if "pwrite64" in line and "-wal>" in line
    ]
    synced = [
        number for number, line in enumerate(lines) if re.search(r"f(data)?sync\(.*-wal>", line)
    ]
    before = [number for number in written if number < answered]
    assert before
    assert any(max(before) < number < answered for number in synced)
