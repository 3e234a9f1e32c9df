"""Logs written by ``llm`` itself: by the last version with the older tables, and the newest."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from reading import entries_by_file, records, skipped

from reservoir_cli import Reservoir
from reservoir_cli.messages import Message
from reservoir_cli.transfer.formats.registry import importer_named
from reservoir_cli.transfer.reading.importer import Record

ROOT = Path(__file__).parents[4]
OLDER, NEWEST = "0.31.1", "0.36"
#: Packages that a version needs but its dependencies no longer install.
BESIDES = {OLDER: ["httpx==0.28.1"], NEWEST: []}

RunLlm = Callable[..., Path]


@pytest.fixture(scope="session")
def llm(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """Return the Python of an environment with a version of llm, which later runs reuse.

    llm has its own environment, so that its dependencies never affect those of Reservoir.
    """
    environments: dict[str, Path] = {}

    def python(version: str) -> Path:
        if version not in environments:
            assert pytestconfig.cache is not None
            folder = pytestconfig.cache.mkdir(f"llm-{version}")
            with (folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait here until one has created it
                environments[version] = _environment(version, folder / "venv")
        return environments[version]

    return python


def _environment(version: str, folder: Path) -> Path:
    python, marker = folder / "bin" / "python", folder / "complete"
    if marker.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    install = [*pip, "install", "-q", "--no-compile", "-c", str(ROOT / "constraints.txt")]
    packages = (f"llm=={version}", *BESIDES[version])
    result = subprocess.run([*install, *packages], capture_output=True, check=False)
    if result.returncode:
        reason = f"llm {version} cannot be installed: {result.stderr.decode().strip()[-200:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    marker.touch()
    return python


@pytest.fixture
def run_llm(llm: Callable[[str], Path], tmp_path: Path) -> RunLlm:
    """Run commands of a version of llm; return its log."""
    (tmp_path / "bird.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "notes.txt").write_text("Pelicans fish.\n")
    (tmp_path / "rules.txt").write_text("Answer in English.\n")

    def run_commands(version: str, *commands: list[str]) -> Path:
        result = subprocess.run(
            [llm(version), Path(__file__).with_name("llm_talking.py")],
            input="".join(
                json.dumps(["prompt", *arguments]) + "\n" for arguments in commands
            ).encode(),
            capture_output=True,
            env={"HOME": str(tmp_path), "LLM_USER_PATH": str(tmp_path / "llm"), "LANG": "C.UTF-8"},
            cwd=tmp_path,
            check=False,
        )
        assert result.returncode == 0, result.stderr.decode()
        return tmp_path / "llm" / "logs.db"

    return run_commands


PLACES = [{}, {"XDG_CONFIG_HOME": "elsewhere"}, {"LLM_USER_PATH": "own"}]
#: Prints the path of the log for each set of variables, by one process.
PRINT_PATHS = """
import json, os, sys
from llm.cli import cli

before = dict(os.environ)
for variables in json.loads(sys.argv[1]):
    os.environ.update(before | variables)
    cli(["logs", "path"], standalone_mode=False)
    for name in variables:
        del os.environ[name]
"""


def test_the_log_is_searched_in_the_folder_of_llm(llm, tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "LLM_USER_PATH"):
        monkeypatch.delenv(name, raising=False)
    places = [
        {name: str(tmp_path / folder) for name, folder in {"HOME": "", **variables}.items()}
        for variables in PLACES
    ]
    command = [llm(NEWEST), "-c", PRINT_PATHS, json.dumps(places)]
    paths = subprocess.run(command, capture_output=True, check=True).stdout.decode().split()
    assert len(set(paths)) == len(places)
    for variables, path in zip(places, paths, strict=True):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert str(next(iter(importer_named("llm").places())).path) == path


NEW = ["-m", "scripted"]
BIRD = [
    [
        "What is it?",
        *NEW,
        "-s",
        "Be brief.",
        "-a",
        "bird.png",
        "-f",
        "notes.txt",
        "--sf",
        "rules.txt",
    ],
    ["How tall?", "-c", "-T", "measure"],
]
REST = [
    ["Show me", *NEW, "-T", "photograph"],
    ["Größe?", *NEW, "-s", "Be brief."],
    ["Größe?", *NEW, "-s", "Be brief."],
    ["Please think", *NEW],
]
ASKED = {
    OLDER: "[image]\nPelicans fish.\n\nWhat is it?",
    NEWEST: "Pelicans fish.\n\nWhat is it?\n[image]",
}
THOUGHT = {
    OLDER: [("assistant", "Answer to: Please think")],
    NEWEST: [("assistant", "Thoughts on: Please think"), ("system", "It has a beak.")],
}
MEASURED = [
    ("user", "How tall?"),
    ("assistant", 'call_1 measure {"what": "pelican"}'),
    ("tool", "call_1 measure pelican: 1.5 m"),
    ("assistant", "pelican: 1.5 m"),
]


def expected_conversations(version: str) -> list[list[tuple[str, str]]]:
    """Return messages by conversation."""
    return [
        [
            ("system", "Answer in English.\n\nBe brief."),
            ("user", ASKED[version]),
            ("assistant", "Answer to: What is it?"),
            *MEASURED,
        ],
        [
            ("user", "Show me"),
            ("assistant", 'call_1 photograph {"what": "pelican"}'),
            ("tool", "call_1 photograph click\n[image]"),
            ("assistant", "click"),
        ],
        *[[("system", "Be brief."), ("user", "Größe?"), ("assistant", "Answer to: Größe?")]] * 2,
        [("user", "Please think"), *THOUGHT[version]],
    ]


def read(log: Path) -> list[Record]:
    [entries] = entries_by_file(log).values()
    assert skipped(entries) == []
    return records(entries)


def conversations(imported: list[Record]) -> list[list[tuple[str, str]]]:
    by_id: dict[str | None, list[tuple[str, str]]] = {}
    for record in imported:
        message = record.message
        parts = [f"{call.id} {call.name} {call.arguments}" for call in message.tool_calls]
        if message.role == "tool":
            parts = [str(message.tool_call_id), str(message.name)]
        words = " ".join([*parts, *filter(None, [message.content])])
        by_id.setdefault(message.conversation_id, []).append((str(message.role), words))
    return list(by_id.values())


@pytest.mark.parametrize("version", [OLDER, NEWEST])
def test_conversations_with_llm_are_imported(run_llm, version):
    start = datetime.now(UTC)
    imported = read(run_llm(version, *BIRD, *REST))
    end = datetime.now(UTC)
    assert conversations(imported) == expected_conversations(version)
    times = [record.message.created_at for record in imported]
    assert times == sorted(filter(None, times))
    assert start <= times[0] <= times[-1] <= end
    by_id = {
        record.conversation.id: record.conversation for record in imported if record.conversation
    }
    assert {conversation.model for conversation in by_id.values()} == {"scripted"}
    titles = [conversation.title for conversation in by_id.values()]
    assert titles[1:] == ["Show me", "Größe?", "Größe?", "Please think"]
    assert len({record.message.source_id for record in imported}) == len(imported)
    assert_answers_share_the_trace_of_their_question([record.message for record in imported])


def assert_answers_share_the_trace_of_their_question(messages: list[Message]) -> None:
    questions = [message for message in messages if message.role == "user"]
    assert len(questions) == 6
    for question in questions:
        answers = [message for message in messages if message.trace_id == question.trace_id]
        assert {answer.conversation_id for answer in answers} == {question.conversation_id}
        assert [answer.role for answer in answers].count("user") == 1
        assert "assistant" in [answer.role for answer in answers]


@pytest.mark.parametrize(
    ("before", "after"),
    [(OLDER, OLDER), (NEWEST, NEWEST), (OLDER, NEWEST)],
    ids=["older", "newest", "older log continued by the newest"],
)
def test_a_second_import_adds_only_new_entries_of_the_log(run_llm, tmp_path, before, after):
    with Reservoir.open(tmp_path / "store.db") as reservoir:

        def imported(log: Path) -> tuple[Any, ...]:
            totals = reservoir.import_files(log)
            return totals.imported, totals.already, totals.skipped

        assert imported(run_llm(before, BIRD[0], *REST[:2])) == (10, 0, 0)
        log = run_llm(after, ["And its wings?", "-c"], ["What is it?", *NEW, "-T", "measure"])
        assert imported(log) == (6, 10, 0)
        assert imported(log) == (0, 16, 0)
    assert conversations(read(log)) == [
        expected_conversations(before)[0][:3],
        expected_conversations(before)[1],
        [
            *expected_conversations(before)[2],
            ("user", "And its wings?"),
            ("assistant", "Answer to: And its wings?"),
        ],
        [("user", "What is it?"), *MEASURED[1:]],
    ]
