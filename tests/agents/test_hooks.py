"""``reservoir hook``, which clients run at their events, as real processes."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from filling import room
from trials import PATIENCE, Home, Result, ends

from reservoir_cli.agents.answer_prompt import MAX_OUTPUT
from reservoir_cli.agents.hook_time_limit import LIMIT
from reservoir_cli.agents.hooks import MAX_EVENT
from reservoir_cli.context.recall import BY_WORDS
from reservoir_cli.context.render.context_frame import unwrap

SAMPLES = Path(__file__).parents[1] / "unit" / "transfer" / "formats" / "samples"
ANSWER = "We dropped Redis because it lost 214 jobs in a failover."
TRIES = 50
#: The resolution of the start time of a process, in seconds.
TICK = 0.05
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home whose store holds one answer, for copying."""
    home = Home(tmp_path_factory.mktemp("answering") / "person")
    home.must("ingest", "--no-embed", "-p", "work", stdin=ANSWER)
    return home.folder


@pytest.fixture
def person(answering: Path, tmp_path: Path) -> Home:
    """Return a home whose store holds one answer."""
    return Home(shutil.copytree(answering, tmp_path / "person"))


def event(**fields: object) -> str:
    known = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "cwd": "/nowhere"}
    return json.dumps({**known, "prompt": "why did we drop Redis?", **fields})


def answered(home: Home, *arguments: str, stdin: str, options: tuple[str, ...] = ()) -> Result:
    """Run the hook until it finishes within its limit, which it may miss on a loaded machine.

    :param options: global ones.
    """
    file, before = home.folder / "reservoir.log", log(home)
    for _ in range(TRIES):
        started = time.monotonic()
        result = home(*options, "hook", *(arguments or ("user-prompt",)), stdin=stdin)
        assert (result.code, result.err) == (0, "")
        if result.out or _was_in_time(started):
            return result
        file.unlink(missing_ok=True)
        if before:
            file.write_text(before, encoding="utf-8")
    pytest.skip("the machine is too busy: no hook finished in time")


def _was_in_time(started: float) -> bool:
    """Return whether a hook that was started then and has ended surely kept its time limit.

    On a busy machine a hook that exceeds it may be unable to log that.
    """
    return time.monotonic() < started + LIMIT - TICK


def context(result: Result) -> str:
    """Return the context that the client receives."""
    return json.loads(result.out)["hookSpecificOutput"]["additionalContext"] if result.out else ""


def log(home: Home) -> str:
    file = home.folder / "reservoir.log"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_a_prompt_gets_recalled_messages_in_the_format_that_clients_read(person):
    person.must("config", "--set", "partition=work")
    result = answered(person, stdin=event())
    (line,) = result.out.splitlines()
    output = json.loads(line)["hookSpecificOutput"]
    assert sorted(output) == ["additionalContext", "hookEventName"]
    assert output["hookEventName"] == "UserPromptSubmit"
    recalled = person("recall", "why did we drop Redis?", "--exclude-conversation", "s1").out
    assert output["additionalContext"] == recalled
    assert ANSWER in output["additionalContext"]
    assert BY_WORDS in output["additionalContext"]


def test_an_empty_partition_is_named_in_the_log(person):
    assert answered(person, stdin=event()).out == ""
    assert 'hook "user-prompt": "partition default is empty: setting partition' in log(person)


def test_a_named_store_that_does_not_exist_is_named_in_the_log(person):
    missing = person.folder / "missing.db"
    assert answered(person, stdin=event(), options=("--db", str(missing))).out == ""
    assert "missing.db is empty or missing" in log(person)
    assert not missing.exists()


def test_the_working_directory_selects_the_partition(person, tmp_path):
    app = tmp_path / "code" / "app"
    (app / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(app)
    person.must("ingest", "--no-embed", "-p", "deep", stdin="Redis was dropped in the deep, too.")
    person.must("config", "--set", f"projects.{app}=work", "--set", f"projects.{app}/deep=deep")

    def recalled_in(folder: object) -> str:
        return context(answered(person, stdin=event(cwd=folder)))

    assert ANSWER in recalled_in(str(app))
    assert ANSWER in recalled_in(str(tmp_path / "link"))
    assert "in the deep" in recalled_in(str(app / "deep" / "er"))
    assert (
        recalled_in(str(tmp_path / "code" / "app2"))
        == recalled_in(None)
        == recalled_in("")
        == recalled_in("\0")
        == ""
    )
    person.must("config", "--set", f"projects.{person.folder}=work")  # where the hooks run
    assert ANSWER in recalled_in(None)
    assert ANSWER in recalled_in("")
    assert recalled_in(str(tmp_path)) == ""


@pytest.mark.parametrize("sample", ["claude-code.jsonl", "codex.jsonl"])
def test_the_running_session_is_left_out(tmp_path, sample):
    home = Home(tmp_path / "home")
    home.must("ingest", "--no-embed", str(SAMPLES / sample))
    users = home.rows("content, conversation_id", "role = 'user' AND length(content) > 9")
    question, session = users[0]
    assert f'"{session}"' in (SAMPLES / sample).read_text(encoding="utf-8")  # the client's name
    elsewhere = event(prompt=f"once more: {question}", session_id="some other")
    assert f"user: {question}" in context(answered(home, stdin=elsewhere))
    home.must("ingest", "--no-embed", stdin=f"another note: {question} The cache key was stale.")
    inside = event(prompt=f"once more: {question}", session_id=session)
    recalled = context(answered(home, stdin=inside))
    assert "The cache key was stale." in recalled
    assert f"user: {question}" not in recalled


def test_recalled_text_has_at_most_9000_characters(tmp_path):
    home = Home(tmp_path / "home")
    rows = [
        {
            "role": "user",
            "content": f"internationalization of the zeppelin number {number} " * 120,
            "created_at": f"2026-05-09T14:00:{number:02}+00:00",
        }
        for number in range(3)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    home.must("ingest", "--no-embed", str(file))
    prompt = event(prompt="which zeppelin?", session_id=None)  # a session recalls less
    assert len(home("recall", "which zeppelin?", "--budget", "9000").out) > MAX_OUTPUT
    text = context(answered(home, "user-prompt", "--budget", "9000", stdin=prompt))
    assert MAX_OUTPUT / 2 < len(text) <= MAX_OUTPUT
    assert unwrap(text) == ("", (), 1)


ODD = {
    "nothing": "",
    "no JSON": "hello",
    "half of it": '{"prompt": "why',
    "a list": "[]",
    "a number": "7",
    "no prompt": '{"session_id": "s1"}',
    "a prompt that is none": '{"prompt": 5}',
    "an empty prompt": event(prompt=" "),
    "consent": event(prompt="ok, continue"),
    "a command": event(prompt="/compact"),
    "half a character": '{"prompt": "why did we drop \\ud83d?"}',
    "deeply nested": "[" * 100_000,
    "a session that is none": event(session_id=["x"], cwd=7, prompt="zeppelin?"),
}


@pytest.mark.parametrize("stdin", ODD.values(), ids=ODD)
def test_an_unusable_event_prints_nothing(person, stdin):
    result = person("hook", "user-prompt", stdin=stdin)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_invalid_utf8_prints_nothing(person):
    process = person.spawn("hook", "user-prompt")
    out, err = process.communicate(b'{"prompt": "\xff\xfe"}', PATIENCE)
    assert (process.returncode, out, err) == (0, b"", b"")


def test_an_event_up_to_the_limit_is_read_and_a_larger_one_ignored(person):
    person.must("config", "--set", "partition=work")
    large = event(prompt="why did we drop Redis?\n" + "x" * 10_000_000)
    result = person("hook", "user-prompt", stdin=large)
    assert result.code == 0
    assert (
        not result.out or ANSWER in result.out
    )  # on a slow machine the time limit may end it first
    process = person.spawn("hook", "user-prompt")
    out, _ = process.communicate(b" " * (MAX_EVENT + 1), PATIENCE)
    assert (process.returncode, out) == (0, b"")


WRONG = {
    "no event": ["hook"],
    "an unknown event": ["hook", "heliotrope"],
    "an unknown option": ["hook", "user-prompt", "--loud"],
    "no settings": ["--config", "/nowhere/r.toml", "hook", "user-prompt"],
    "a folder for a store": ["--db", "/", "hook", "user-prompt"],
    "another database": ["--db", "mysql://nowhere/db", "hook", "user-prompt"],
    "an unreachable server": ["--db", "postgresql://u@127.0.0.1:9/db", "hook", "user-prompt"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_never_fails_a_client(person, arguments):
    result = person(*arguments, stdin=event())
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("arguments", [["--budget", "1.5k"], ["--loud"], ["twice"]])
def test_wrong_usage_is_reported_in_the_log(person, arguments):
    assert answered(person, "user-prompt", *arguments, stdin=event()).out == ""
    assert 'WARNING hook: "' in log(person)
    assert arguments[-1] in log(person)


def test_the_help_is_printed(person):
    assert "hook [OPTIONS] EVENT" in person("hook", "--help").out


def test_without_a_store_no_file_is_created(tmp_path):
    home = Home(tmp_path / "home")
    assert answered(home, stdin=event()).out == ""
    assert list(home.folder.iterdir()) == []


def test_wrong_settings_are_reported_in_the_log_only(person):
    person.config.write_text("partition = 7\n", encoding="utf-8")
    assert answered(person, stdin=event()).out == ""
    assert 'WARNING hook "user-prompt": ' in log(person)
    assert "partition" in log(person)


def test_a_damaged_store_is_reported_in_the_log_only(person):
    person.db.write_bytes(b"SQLite format 3\0" + os.urandom(8_000))
    assert answered(person, stdin=event()).out == ""
    assert "WARNING hook" in log(person)
    assert "Redis" not in log(person)


@pytest.mark.parametrize("mode", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_locked_store_does_not_delay_the_client(person, mode):
    person.must("config", "--set", "partition=work")
    with closing(sqlite3.connect(person.db, isolation_level=None)) as other:
        other.execute(f"BEGIN {mode}")
        other.execute("DELETE FROM messages")
        result = person("hook", "user-prompt", stdin=event())
        other.execute("ROLLBACK")
    assert (result.code, result.err) == (0, "")
    assert not result.out or ANSWER in result.out
    assert person.rows("content") == [(ANSWER,)]


@posix_only
def test_a_full_disk_does_not_fail_the_hook(person):
    person.must("config", "--set", "partition=work")
    before = person.rows()
    result = person("hook", "user-prompt", stdin=event(), preexec_fn=room(0))
    assert (result.code, result.err) == (0, "")
    assert not result.out or ANSWER in result.out
    assert person("hook", "user-prompt", stdin="garbage", preexec_fn=room(0)).code == 0
    assert person.rows() == before
    assert ANSWER in context(answered(person, stdin=event()))


@posix_only
def test_a_hook_whose_client_hangs_ends_and_logs_a_warning(person):
    with person.spawn("hook", "user-prompt") as process:
        assert process.wait(PATIENCE) == 0  # it ends although its stdin is still open
        assert process.stdout.read() == b""
    # On a slow disk the line is missing.
    assert log(person) == "" or "WARNING hook ended: it took more than" in log(person)


#: A ``sitecustomize`` module that records how a sync was started.
WITNESS = """
import os, sys
if "sync" in sys.orig_argv:
    streams = [os.path.realpath(f"/proc/self/fd/{number}") for number in range(3)]
    line = repr((sys.orig_argv, os.getsid(0) == os.getpid(), streams, sys.path[0], os.getpid()))
    with open(os.environ["WITNESS"] + ".part", "w") as file:
        file.write(line)
    os.replace(os.environ["WITNESS"] + ".part", os.environ["WITNESS"])
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc shows how it was started")
@pytest.mark.parametrize("name", ["stop", "session-end", "session-start"])
def test_other_events_start_a_sync_in_the_background_and_return(person, tmp_path, name):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WITNESS, encoding="utf-8")
    witness, marker = tmp_path / "witness", tmp_path / "marker"
    hostile = f"open({str(marker)!r}, 'w').close()\n"
    for module in ("reservoir_cli.py", "typer.py", "signal.py"):  # in the working directory
        (person.folder / module).write_text(hostile, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))
    env = {"PYTHONPATH": path, "WITNESS": str(witness)}
    reservoir = shutil.which("reservoir", path=str(Path(sys.executable).parent))
    assert reservoir
    for _ in range(TRIES):  # on a loaded machine it may miss its limit
        started = time.monotonic()
        result = subprocess.run(
            [reservoir, "--db", str(person.db), "hook", name],
            input=b" " * 100_000,
            capture_output=True,
            env={**person.env, **env},
            cwd=person.folder,
            timeout=PATIENCE,
            check=False,
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
        if _was_in_time(started):
            break
    for _ in range(10 * PATIENCE):
        if witness.exists():
            break
        time.sleep(0.1)
    command, leads, streams, _, pid = eval(witness.read_text())
    assert command[1:4] == ["-P", "-m", "reservoir_cli"]
    assert command[4:] == ["--db", str(person.db), "sync", "--quiet"]
    assert leads  # in its own session: a signal that ends the client does not end it
    assert streams == ["/dev/null"] * 3
    assert ends(pid)
    assert not marker.exists()


def test_errors_of_a_sync_in_the_background_are_logged(person):
    settings = '[sources.mine]\ntool = "heliotrope"\npath = "~/mine"\n'
    person.config.write_text(settings, encoding="utf-8")
    for stderr, lines in ((subprocess.PIPE, 0), (subprocess.DEVNULL, 1)):
        process = person.spawn("sync", "--quiet", stderr=stderr)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        assert log(person).count("unknown tool 'heliotrope'") == lines


@posix_only
def test_a_hook_ends_on_sigterm(person):
    with person.spawn("hook", "user-prompt") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, -signal.SIGTERM)


def test_what_was_injected_is_listed_by_client_with_the_texts_of_the_store(person):
    person.must("config", "--set", "partition=work")
    asked = {"session_id": "s7", "transcript_path": "/x/.codex/sessions/rollout-1.jsonl"}
    answered(person, stdin=event(**asked))
    answered(person, stdin=event(hook_event_name="BeforeAgent"))
    (line, _) = [line for line in log(person).splitlines() if " INFO recalled " in line]
    assert "Redis" not in log(person)
    assert '"session": "s7"' in line
    listed = person.must("recall", "--last", "--json")
    codex, gemini = json.loads(listed.out)["injections"]
    assert (codex["client"], codex["door"], codex["session"], codex["ids"]) == (
        *("codex", "hook", "s7"),
        [1],
    )
    assert codex["messages"][0]["content"] == ANSWER
    assert codex["tokens"] > 10
    assert gemini["client"] == "gemini"
    printed = person.must("recall", "--last", "--client", "COD").out
    assert printed.count("codex · hook · session s7 · partition work") == 1
    assert f"user: {ANSWER}" in printed
    assert "gemini" not in printed
    person.must("forget", "--id", "1", "-p", "work", "--yes")
    assert "#1 is no longer stored" in person.must("recall", "--last").out
    assert "Redis" not in person.must("recall", "--last", "--json").out
    assert json.loads(listed.out)["failed_hooks"] == []
    other = person.must("--db", str(person.folder / "other.db"), "recall", "--last")
    assert (other.out, "no agent was given messages yet" in other.err) == ("", True)


def test_each_switch_keeps_a_prompt_without_recalled_text(person, tmp_path):
    person.must("config", "--set", "partition=work")
    folder = tmp_path / "app"
    (folder / "deep").mkdir(parents=True)
    assert context(answered(person, stdin=event(cwd=str(folder))))
    assert context(answered(person, stdin=event(prompt="--no-recall why Redis?"))) == ""
    (folder / ".reservoir-off").touch()
    assert context(answered(person, stdin=event(cwd=str(folder / "deep")))) == ""
    assert context(answered(person, stdin=event(cwd=str(tmp_path))))
    person.must("config", "--set", "recall=off")
    assert context(answered(person, stdin=event())) == ""
    note = "note: recall is switched off here by the setting recall"
    assert note in person("recall", "--last").err
    assert ANSWER in person("recall", "why did we drop Redis?").out  # asked by the user


def test_the_list_of_injections_takes_no_question(person):
    wrong = [["--last", "why?"], ["--last", "--budget", "9"], ["--client", "claude", "why?"]]
    assert [person("recall", *arguments).code for arguments in wrong] == [2, 2, 2]


def test_a_hook_that_failed_is_named_where_one_looks_for_what_it_gave(person):
    old, recent = (datetime.now(UTC) - timedelta(days=days) for days in (30, 1))
    ended = f"hook ended: it took more than {LIMIT} seconds"
    lines = [
        f"{old.isoformat()} WARNING {ended}",
        f"{recent.isoformat()} WARNING {ended}",
        f'{recent.isoformat()} WARNING sync: "a disk is full"',
        "yesterday WARNING hook ended",
        f'{recent.isoformat()} WARNING hook "user-prompt": "the store is locked"',
    ]
    (person.folder / "reservoir.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    expected = 'hooks failed 2 times, last at .*: hook "user-prompt": "the store is locked"'
    assert re.search(expected, person("recall", "--last").err)
    failed = json.loads(person.must("recall", "--last", "--json").out)["failed_hooks"]
    assert [row["reason"] for row in failed[:-1]] == [ended]
    checks = json.loads(person("doctor", "--json").out)["checks"]
    [check] = [check for check in checks if check["name"] == "hooks"]
    assert check["status"] == "note"
    assert re.match(expected, check["detail"])
