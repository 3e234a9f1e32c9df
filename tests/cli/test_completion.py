"""The Tab key, in real shells on a real terminal; a shell that is not there is skipped."""

import os
import pty
import shutil
import subprocess
import threading

import pytest

from reservoir_cli.cli.lazy import EXAMPLES
from reservoir_cli.settings.schema import SETTINGS

PATIENCE = 120
#: What is typed, where ``→`` is the Tab key; each line writes to the file that its number names.
TYPED = (
    "reservoir part→--json > 0",
    "reservoir view -p wo→--oneli→> 1",
    "reservoir view -p work -i ba→> 2",
    "reservoir context hello --format ope→> 3",
    "reservoir config --get recall→> 4",
    "reservoir forget --id 1 --dry→> 5",
    "reservoir view -p my→> 6",
    "reservoir view -p 'my→> 7",
)


@pytest.fixture
def said(cli):
    cli.say("one\ntwo", "-p", "work")
    cli.say("of the backend", "-p", "work", "-i", "backend")
    cli.say("hello")
    return cli


@pytest.mark.skipif(shutil.which("setsid") is None, reason="nothing gives a shell its terminal")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_completes_what_is_typed_once_it_is_installed(said, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    said.say("in a name of odd signs", "-p", "my $notes/x y")
    # More than one command, or the shell would leave its place to ours and not be found.
    said("-c", "reservoir --install-completion; true", command=(shell,))
    lines = "".join(f"{line}\n" for line in (*TYPED, "exit"))
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", shell, "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=said.env,
        cwd=tmp_path,
    )
    os.close(slave)
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    os.write(master, lines.replace("→", "\t").encode())
    try:
        while os.read(master, 65_536):
            pass
    except OSError:  # Linux says EIO when the last process has closed the other end
        pass
    process.wait()
    watchdog.cancel()
    os.close(master)
    got = [(tmp_path / str(number)).read_text(encoding="utf-8") for number in range(len(TYPED))]
    assert '"partitions"' in got[0]
    assert got[1:5] == ["user: one\\ntwo\n", "user: of the backend\n", got[3], "auto\n"]
    assert '"messages"' in got[3]
    assert got[6:] == ["user: in a name of odd signs\n"] * 2


def offered(cli, *words):
    """What bash is offered for the last word."""
    return cli(
        env={
            "COMP_WORDS": " ".join(("reservoir", *words)),
            "COMP_CWORD": str(len(words)),
            "_RESERVOIR_COMPLETE": "complete_bash",
        }
    ).out.split()


def test_what_is_offered(said):
    assert offered(said, "") == list(EXAMPLES)
    assert offered(said, "view", "-p", "") == ["default", "work"]
    assert offered(said, "partitions", "--rename", "w") == ["work"]
    assert offered(said, "partitions", "--merge", "work", "d") == ["default"]
    assert offered(said, "partitions", "--delete", "") == ["default", "work"]
    assert offered(said, "view", "-p", "work", "-i", "") == ["backend", "work"]
    assert offered(said, "db", "index", "-p", "") == ["default", "work"]
    assert offered(said, "export", "--format", "j") == ["jsonl", "json"]
    assert offered(said, "ingest", "--format", "c") == ["chatgpt", "claude", "claude-code", "codex"]
    assert offered(said, "ingest", "--role", "a") == ["assistant"]
    assert offered(said, "config", "--unset", "") == list(SETTINGS)
    assert offered(said, "config", "--set", "profi") == ["profile="]
    assert offered(said, "context", "--profile", "") == ["small", "large"]
    assert "gpt-4o-mini" in offered(said, "context", "--model", "gpt-4o")


def test_the_store_that_the_settings_name_is_asked(said, tmp_path):
    other = str(tmp_path / "other.db")
    said("--db", other, "ingest", "--no-embed", "-p", "elsewhere", stdin="hello")
    said("config", "--set", f"database={other}")
    assert offered(said, "view", "-p", "") == ["elsewhere"]


def test_a_store_that_cannot_be_read_offers_nothing_and_says_nothing(said, tmp_path):
    (tmp_path / "notes.db").write_text("these are notes " * 400)
    for location in ("notes.db", "nowhere.db"):
        assert offered(said, "--db", str(tmp_path / location), "view", "-p", "") == []
    assert not (tmp_path / "nowhere.db").exists()
