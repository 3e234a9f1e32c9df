"""Shell completion in real shells on a real terminal; missing shells are skipped."""

import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import termios
import threading
from contextlib import closing
from pathlib import Path

import forked
import pytest
from terminals import has_ended, read_to_end

from reservoir_cli.cli import completion_scripts
from reservoir_cli.cli.command_list import EXAMPLES
from reservoir_cli.errors import UsageError
from reservoir_cli.settings.schema import SETTINGS

PATIENCE = 300
SHELLS = ("bash", "zsh", "fish")
#: Typed lines, with ``→`` for the Tab key; each line writes to a file named by its number.
TYPED = (
    "reservoir part→--json > 0",
    "reservoir view -p wo→--oneli→> 1",
    "reservoir view -p work -i ba→> 2",
    "reservoir context hello --format ope→> 3",
    "reservoir config --get recall_s→> 4",
    "reservoir forget --id 1 --dry→> 5",
    "reservoir view -p my→> 6",
    "reservoir view -p 'my→> 7",
    "reservoir view -p 'my n→> 8",
    "reservoir view -p my\\ notes/x:→> 9",
    "true | reservoir view --partition=wo→--oneline > 10",
    "reservoir view -p Zo→> 11",
    "reservoir config set profi→large --quiet; reservoir config get profile > 12",
    "reservoir view --tag ho→ 2> 13",
    "reservoir --config ho→reservoir.toml config path > 14",
)
#: Names that would run ``touch pwned…`` in some shell if they were not quoted correctly.
HOSTILE = (
    r"\$(touch pwned)",
    "$(touch pwned)",
    r"\\$(touch pwned)",
    "`touch pwned`",
    r"\`touch pwned\`",
    '"$(touch pwned)"',
    "'$(touch pwned)'",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "x; touch pwned #",
    "x && touch pwned",
    "x | touch pwned",
    "x & touch pwned",
    "x) ; touch pwned; (",
    "x))' ; touch pwned; '((",
    '"):"$(touch pwned)',
    "${x:=$(touch pwned)}",
    "$((a[$(touch pwned)]))",
    "<(touch pwned)",
    "> pwned",
    "(touch pwned)",
    "{touch,pwned}",
    "*(e:'touch pwned':)",
    "!touch",
    "~$(touch pwned)",
    "=(touch pwned)",
    "%x",
    "#x",
    "x\ttouch pwned",
    "x\ntouch pwned",
    "x\rtouch pwned",
    "x\x1b[31mtouch pwned",
    "x\u2028touch pwned",
    "x\u202etouch pwned",
    "--yes",
)
HARMLESS = ("good", "good one", "göd.v2@home:a+b/c-d", "हिन्दी")


@pytest.fixture
def filled_cli(cli):
    cli.say("one\ntwo", "-p", "work")
    cli.say("of the backend", "-p", "work", "-i", "backend")
    cli.say("hello")
    return cli


def typed_into(shell, cli, text):
    """Install completion in a real shell, then type lines into that shell on a terminal."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    # Two commands: with one, the shell would exec ours and completion would not detect the shell.
    cli("-c", "reservoir --install-completion; true", command=(shell,))
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (200, 200))
    process = subprocess.Popen(
        ["setsid", "--ctty", shell, "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**cli.env, "PATH": f"{forked.program_folder(os.getpid())}:{cli.env['PATH']}"},
        cwd=cli.home.parent,
    )
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    os.write(master, f"{text}exit\n".replace("→", "\t").encode())
    shown = read_to_end(master, slave, has_ended(process))
    watchdog.cancel()
    return shown.decode(errors="replace")


@pytest.mark.parametrize(("shell", "profile"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_installing_names_each_file_and_when_it_works(cli, shell, profile):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    result = cli("-c", "reservoir --install-completion; true", command=(shell,))
    script, loaded = re.fullmatch(
        rf"{shell} completion installed in (.+), which (.+) loads; open a new terminal to use it, "
        rf"or run: exec {shell}\n",
        result.err,
    ).groups()
    assert "reservoir" in Path(script).read_text(encoding="utf-8")
    assert loaded.endswith(profile)


@pytest.mark.skipif(os.name != "posix", reason="Windows redirects the folder of the profile")
@pytest.mark.parametrize("folder", ["config", "it's $(touch pwned) ’x"])
def test_the_profile_of_powershell_loads_the_script(monkeypatch, tmp_path, folder):
    monkeypatch.setattr(completion_scripts, "_current_shell", lambda: "pwsh")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / folder))
    messages = {completion_scripts.install() for _ in range(2)}
    script = tmp_path / folder / "powershell" / "reservoir_completion.ps1"
    profile = script.with_name("Microsoft.PowerShell_profile.ps1")
    assert messages == {
        f"pwsh completion installed in {script}, which {profile} loads; "
        "open a new terminal to use it, or run: . $PROFILE"
    }
    quoted = str(script).replace("'", "''").replace("’", "’’")
    assert profile.read_text(encoding="utf-8") == f". '{quoted}'\n"
    assert "Register-ArgumentCompleter" in script.read_text(encoding="utf-8")


def test_without_a_known_profile_the_refusal_says_what_to_paste(monkeypatch):
    monkeypatch.setattr(completion_scripts, "_current_shell", lambda: "powershell")
    monkeypatch.setattr(completion_scripts, "_NOT_INSTALLED", ("powershell",))  # as on Windows
    with pytest.raises(UsageError, match="on Windows") as caught:
        completion_scripts.install()
    assert caught.value.hint.endswith("reservoir --show-completion | Add-Content $PROFILE")


needs_terminal = pytest.mark.skipif(
    shutil.which("setsid") is None, reason="nothing gives a shell its terminal"
)


@needs_terminal
@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_commands_after_installation(filled_cli, tmp_path, shell):
    filled_cli.say("in a name of odd signs", "-p", "my notes/x: y")
    filled_cli.say("in another script", "-p", "Zoë भाषा")
    shown = typed_into(shell, filled_cli, "".join(f"{line}\n" for line in TYPED))
    missing = [number for number in range(len(TYPED)) if not (tmp_path / str(number)).exists()]
    assert not missing, shown
    outputs = [(tmp_path / str(number)).read_text(encoding="utf-8") for number in range(len(TYPED))]
    assert '"partitions"' in outputs[0]
    work = "user: one\\ntwo\nuser: of the backend\n"
    assert outputs[1:5] == [work, "user: of the backend\n", outputs[3], "auto\n"]
    assert '"messages"' in outputs[3]
    assert outputs[6:10] == ["user: in a name of odd signs\n"] * 4
    assert outputs[10:13] == [work, "user: in another script\n", "large\n"]
    assert "the tag ho" in outputs[13]
    assert "home" not in outputs[13]
    assert outputs[14].endswith("home/reservoir.toml\n")


@needs_terminal
@pytest.mark.parametrize("shell", SHELLS)
def test_no_shell_executes_a_name_in_the_store(cli, tmp_path, shell):
    names = [*HOSTILE, *(f"h{number}{name}" for number, name in enumerate(HOSTILE[:8]))]
    cli.store(
        *(
            {"content": "x", "partition": name, "instance": name, "conversation_id": name}
            for name in (*names, *HARMLESS)
        )
    )
    # Earlier versions stored such names.
    with closing(sqlite3.connect(cli.db)) as raw, raw:
        raw.execute("UPDATE messages SET source = instance")
        raw.execute("UPDATE conversations SET project = id")
        raw.execute("INSERT INTO tags SELECT partition, id, instance FROM messages")
        raw.execute("UPDATE messages SET partition = ? WHERE partition LIKE '%|%'", ["\x1b]0;\x07"])
    raw.close()
    tabs = "→" if shell == "fish" else "→→"
    options = ("-p", "-i", "--source", "--tag", "--project", "--conversation")
    listed = "".join(
        f"reservoir search --all-partitions {option} {quote}{tabs}\x15"
        for option in options
        for quote in ("", '"', "'")
    )
    entered = "".join(f"reservoir view -p {quote}h0→{quote}\n" for quote in ("", '"', "'"))
    shown = typed_into(shell, cli, f'{listed}{entered}reservoir view -p "good o→> done\n')
    assert (tmp_path / "done").read_text(encoding="utf-8") == "user: x\n", shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["done", cli.home.name]
    assert not list(cli.home.rglob("pwned*"))


def test_only_names_without_shell_syntax_are_offered(cli):
    cli.store(*({"content": "x", "partition": name} for name in (*HOSTILE, *HARMLESS)))
    for shell in ("zsh", "fish"):
        result = cli("view", "-p", "", env={"_RESERVOIR_COMPLETE": shell})
        assert sorted(result.out.splitlines()) == sorted(HARMLESS)
    result = cli("reservoir view -p ", "", env={"_RESERVOIR_COMPLETE": "bash"})
    assert sorted(result.out.replace("\\ ", " ").splitlines()) == sorted(HARMLESS)


def offered(cli, *words):
    """Return bash's completions of the last word."""
    line = " ".join(("reservoir", *words))
    return cli(line, words[-1], env={"_RESERVOIR_COMPLETE": "bash"}, code=None).out.split()


def test_completions_of_each_option(filled_cli):
    assert offered(filled_cli, "") == list(EXAMPLES)
    assert offered(filled_cli, "view", "-p", "") == ["default", "work"]
    assert offered(filled_cli, "partitions", "rename", "w") == ["work"]
    assert offered(filled_cli, "partitions", "merge", "work", "d") == ["default"]
    assert offered(filled_cli, "partitions", "delete", "") == ["default", "work"]
    assert offered(filled_cli, "partitions", "") == ["list", "rename", "merge", "delete"]
    assert offered(filled_cli, "partitions", "rename", "") == ["default", "work"]
    assert offered(filled_cli, "view", "-p", "work", "-i", "") == ["backend", "work"]
    assert offered(filled_cli, "db", "index", "-p", "") == ["default", "work"]
    assert offered(filled_cli, "export", "--format", "j") == ["jsonl", "json"]
    assert offered(filled_cli, "ingest", "--format", "c") == [
        "copilot-chat",
        "copilot-cli",
        "cursor",
        "chatgpt",
        "claude",
        "claude-code",
        "codex",
        "continue",
        "cline",
    ]
    assert offered(filled_cli, "ingest", "--role", "a") == ["assistant"]
    assert offered(filled_cli, "config", "--unset", "") == list(SETTINGS)
    assert offered(filled_cli, "config", "unset", "") == list(SETTINGS)
    assert offered(filled_cli, "config", "set", "profi") == ["profile="]
    assert offered(filled_cli, "config", "un") == ["unset"]
    assert offered(filled_cli, "config", "--set", "profi") == ["profile="]
    assert offered(filled_cli, "context", "--profile", "") == ["small", "large"]
    assert "gpt-4o-mini" in offered(filled_cli, "context", "--model", "gpt-4o")


def test_completions_of_filters(filled_cli):
    filled_cli.store(
        {"content": "one", "partition": "work", "conversation_id": "c1", "source": "llm"},
        {"content": "two", "instance": "backend", "conversation_id": "c2"},
    )
    filled_cli("tag", "1", "travel", "-p", "work")
    filled_cli("config", "set", "sources.mine.path=/nowhere", "sources.mine.tool=llm")
    assert offered(filled_cli, "view", "--tag", "") == []
    assert offered(filled_cli, "view", "-p", "work", "--tag", "") == ["travel"]
    assert offered(filled_cli, "search", "x", "--all-partitions", "--tag", "tr") == ["travel"]
    assert offered(filled_cli, "export", "-p", "work", "--source", "") == ["cli", "llm"]
    assert offered(filled_cli, "view", "--conversation", "") == ["c2"]
    assert offered(filled_cli, "recall", "--exclude-conversation", "") == ["c2"]
    assert offered(filled_cli, "forget", "-p", "work", "--conversation", "") == ["c1"]
    assert offered(filled_cli, "sync", "") == ["mine"]


def test_folders_of_conversations_are_completed(cli):
    row = {"content": "one", "conversation_id": "c1", "role": "user", "source": "x"}
    conversation = {"title": "t", "source": "x", "project": "kitchen"}
    rows = json.dumps({**row, "source_id": "1", "conversation": conversation})
    cli("ingest", "--no-embed", "--format", "reservoir", stdin=rows)
    assert offered(cli, "search", "x", "--project", "") == ["kitchen"]
    assert offered(cli, "conversations", "-p", "other", "--project", "") == []


def test_files_are_offered_only_where_a_file_belongs(filled_cli):
    for words in ("view --tag ", "view 3 ", "view --id ", "search ", "models ", "edit "):
        filled_cli(f"reservoir {words}", "", env={"_RESERVOIR_COMPLETE": "bash"}, code=1)
    for words in ("ingest ", "export -o ", "--db ", "db copy ", "context --system "):
        filled_cli(f"reservoir {words}", "", env={"_RESERVOIR_COMPLETE": "bash"})


def test_completions_come_from_the_store_in_the_settings(filled_cli, tmp_path):
    other = str(tmp_path / "other.db")
    filled_cli("--db", other, "ingest", "--no-embed", "-p", "elsewhere", stdin="hello")
    filled_cli("config", "--set", f"database={other}")
    assert offered(filled_cli, "view", "-p", "") == ["elsewhere"]


def test_an_unreadable_store_gives_no_completions_and_no_error(filled_cli, tmp_path):
    (tmp_path / "notes.db").write_text("these are notes " * 400)
    for location in ("notes.db", "nowhere.db"):
        assert offered(filled_cli, "--db", str(tmp_path / location), "view", "-p", "") == []
    assert not (tmp_path / "nowhere.db").exists()
