"""Unusual conditions are reported in one line, with the right exit code."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SESSION = Path(__file__).parents[1] / "unit/transfer/formats/samples/claude-code.jsonl"
COUNTED = {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}
#: Tokenizer files that make the library panic when they are loaded or used.
HOSTILE = {
    "charsmap": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "index": {
        "normalizer": {
            "type": "Precompiled",
            "precompiled_charsmap": "EAAAAP////8BAAAA//////////8=",
        }
    },
    "length": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    "unknown": {"model": {"type": "WordLevel", "vocab": {}, "unk_token": "x"}},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_tokenizer_is_a_one_line_error(cli, tmp_path, kind):
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"version": "1.0", "model": COUNTED, **HOSTILE[kind]}))
    counter = {"RESERVOIR_TOKEN_COUNTER": f"huggingface:{file}"}
    result = cli("context", "hello", code=5, env=counter)
    first, hint = result.err.splitlines()
    assert first == f"error: {file} is not a tokenizer that the tokenizers library can read"
    assert hint.startswith("hint: ")


def test_a_tokenizer_is_checked_once(cli, tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"version": "1.0", "model": COUNTED}))
    for _ in range(2):
        cli("context", "hello", env={"RESERVOIR_TOKEN_COUNTER": f"huggingface:{file}"})
    assert len(list((cli.home / "cache" / "tokenizers").iterdir())) == 1


#: Sends a signal to the process when it is about to import a module.
INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv.copy()[-1]:
            os.kill(os.getpid(), getattr(signal, os.environ.get("KILLED_BY", "SIGINT")))
sys.meta_path.insert(0, Finder())
from reservoir_cli.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "reservoir_cli.cli.console"])
def test_interrupting_the_start_is_exit_130_without_a_traceback(cli, module):
    result = cli("-c", INTERRUPTED, module, command=(sys.executable,), code=130)
    assert result.out == result.err == ""


@pytest.mark.parametrize("module", ["numpy", "numpy.exceptions"])
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_interrupting_the_import_of_a_library_ends_the_command(cli_with_model, module, name, code):
    """ONNX Runtime turns it into an ImportError, so the command could continue without a model."""
    cli_with_model.say("hello")
    words = ("-c", INTERRUPTED, "search", module)
    result = cli_with_model(*words, command=(sys.executable,), code=code, env={"KILLED_BY": name})
    assert result.out == result.err == ""


def test_interrupting_the_start_of_embedding_says_that_messages_are_not_embedded(
    cli_with_model, tmp_path
):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"role": "user", "content": "hello"}\n', encoding="utf-8")
    words = ("-c", INTERRUPTED, "ingest", str(file), "-p", "onnxruntime")
    result = cli_with_model(*words, command=(sys.executable,), code=130)
    warning = "interrupted; stored messages are kept, and reservoir embed embeds the rest"
    assert result.err == f"imported 1, already there 0, skipped 0\nwarning: {warning}\n"


#: Interrupts the process when a command first reports progress.
INTERRUPTED_AT_WORK = """
import signal
from reservoir_cli.cli import console
type(console.progress).__call__ = lambda *_: signal.raise_signal(signal.SIGINT)
from reservoir_cli.__main__ import main
main()
"""


def test_an_interrupted_import_says_that_what_is_stored_stays(cli, tmp_path):
    file, home = tmp_path / "rows.jsonl", tmp_path / ".claude/projects"
    rows = [{"role": "user", "content": f"{number}"} for number in range(1_500)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    home.mkdir(parents=True)
    shutil.copy(SESSION, home / "session.jsonl")
    cli.env["HOME"] = str(tmp_path)
    warning = (
        "warning: interrupted; stored messages are kept, and the same command imports the rest\n"
    )
    for words in (["ingest", str(file)], ["sync"]):
        program = ("-c", INTERRUPTED_AT_WORK, *words, "--no-embed")
        result = cli(*program, command=(sys.executable,), code=130)
        assert (result.out, result.err) == ("", warning)
    assert "imported 500, already there 1,000" in cli("ingest", "--no-embed", str(file)).err


def test_an_interrupted_embed_says_that_what_is_embedded_stays(cli_with_model):
    cli_with_model.say("hello")
    for words in (["embed"], ["embed", "--rebuild"]):
        program = ("-c", INTERRUPTED_AT_WORK, *words)
        result = cli_with_model(*program, command=(sys.executable,), code=130)
        text = "interrupted; finished embeddings are kept, and the same command embeds the rest\n"
        assert result.err == f"warning: {text}"


@pytest.mark.parametrize(
    ("limit", "value"),
    [*((resource.RLIMIT_AS, mb << 20) for mb in (100, 150, 220, 300)), (resource.RLIMIT_NOFILE, 6)],
)
def test_a_compiled_model_is_not_removed_when_memory_or_files_run_out(
    cli, compiled_models, limit, value
):
    env = {**cli.env, "RESERVOIR_EMBEDDING_MODEL": "sentence-transformers/all-MiniLM-L6-v2"}
    cli.say("hello sails")
    models = cli.home / "cache" / "models"
    models.parent.mkdir(mode=0o700, exist_ok=True)
    models.mkdir(mode=0o700)
    for folder in compiled_models.glob("[!.]*"):
        (models / folder.name).mkdir(mode=0o700)
        for file in folder.iterdir():
            os.link(file, models / folder.name / file.name)
    before = sorted(path.name for path in models.rglob("*"))
    result = subprocess.run(
        [sys.executable, "-m", "reservoir_cli", "search", "sails"],
        env=env,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(limit, (value, value)),
        check=False,
        timeout=300,
    )
    # Older tokenizers, in Rust, abort if they get no memory.
    aborted = b"memory allocation of " in result.stderr
    assert result.returncode in ((-signal.SIGABRT,) if aborted else (0, 1, 3))
    assert b"Traceback" not in result.stderr
    assert b"runs on sentence-transformers" not in result.stderr
    assert sorted(path.name for path in models.rglob("*")) == before


@pytest.mark.skipif(not shutil.which("faketime"), reason="faketime is not installed")
def test_a_clock_far_in_the_future_is_not_an_error(cli, compiled_models):
    script = (
        "import time; from reservoir_cli.embedding.load_model import load_embedder\n"
        "from reservoir_cli.util.clock import unix_time; assert unix_time() > 9e9\n"
        "name = 'sentence-transformers/all-MiniLM-L6-v2'\n"
        "loaded = load_embedder(name, offline=True, progress=lambda *_: None)\n"
        "print(loaded.engine.kind)"
    )
    # Do not fake the monotonic clock; versions of faketime use different variables.
    real = dict.fromkeys(("FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC"), "1")
    env = {**cli.env, **real, "RESERVOIR_HOME": str(compiled_models.parent.parent)}
    for command, output in (
        ([sys.executable, "-c", script], "compiled\n"),
        ([sys.executable, "-m", "reservoir_cli", "view"], ""),
    ):
        words = ["faketime", "2263-01-01 00:00:00", *command]
        result = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stdout) == (0, output), result.stderr


def test_variables_without_effect_are_warned_about(cli):
    result = cli(
        "view", env={"RESERVOIR_PARTITON": "x", "RESERVOIR_DEBUG": "0", "RESERVOIR_TEST_X": "1"}
    )
    warned = "warning: RESERVOIR_PARTITON is not a setting; did you mean RESERVOIR_PARTITION?\n"
    assert result.err.startswith(warned)
    assert result.err.count("warning") == 1
    result = cli("view", env={"RESERVOIR_NOSUCH": "x"})
    assert result.err.startswith("warning: RESERVOIR_NOSUCH is not a setting\n")
    for command in ("config path", "connect", "connect claude --dry-run", "sync --timer"):
        result = cli(*command.split(), env={"RESERVOIR_PARTITON": "x"})
        assert result.err.count(warned) == 1, command
    absent = str(cli.home / "absent.toml")
    result = cli("view", env={"RESERVOIR_CONFIG": absent})
    assert f"warning: RESERVOIR_CONFIG names {absent}, which does not exist" in result.err
    for command in (
        ("config", "set", "recent_context_size=3"),
        ("config", "unset", "recent_context_size"),
    ):
        assert "does not exist" not in cli(*command, env={"RESERVOIR_CONFIG": absent}).err
    result = cli("doctor", env={"RESERVOIR_PARTITON": "x"})
    assert "RESERVOIR_PARTITON is not a setting; did you mean RESERVOIR_PARTITION?" in result.out


def test_a_settings_file_in_an_unknown_home_is_a_one_line_error(cli):
    result = cli("view", env={"RESERVOIR_CONFIG": "~nobody-is-called-so/x"}, code=2)
    assert "error: there is no home folder for ~nobody-is-called-so/x\n" in result.err


@pytest.mark.parametrize(("command", "code"), [("view", 0), ("embed", 0), ("summarize", 0)])
def test_a_missing_store_that_was_named_is_reported_and_not_created(cli, command, code):
    absent = cli.home / "absent.db"
    result = cli("--db", str(absent), command, code=code)
    assert f"warning: there is no store at {absent}\n" in result.err
    assert not absent.exists()


@pytest.mark.parametrize("form", [["--format", "json"], ["--format=json"]])
def test_an_error_of_format_json_is_a_document(cli, form):
    result = cli("context", "x", *form, "--model", "unheard of", code=2)
    assert result.document["error"]["exit_code"] == 2


def test_a_hint_with_the_name_of_a_model_is_quoted_for_the_shell(cli):
    result = cli("budget", "--model", "x; rm -rf ~", code=2)
    assert "config set 'models.x; rm -rf ~.context_window=N' adds it" in result.err


def test_similar_models_are_of_the_same_family(cli):
    result = cli("budget", "--model", "gpt-3.5", code=2)
    assert "did you mean gpt-3.5-turbo" in result.err.replace("gpt-3.5-turbo-", "")


def test_an_unknown_key_can_be_unset_and_path_still_works(cli):
    file = cli.home / "reservoir.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text('# mine\nwrong = 1\npartition = "a"\n[partitions.x]\nbad = 2\n')
    assert cli("config", "--path").out == f"{file}\n"
    cli("config", "--get", "partition", code=2)
    cli("config", "--unset", "wrong", "--unset", "partitions.x.bad")
    assert file.read_text() == '# mine\npartition = "a"\n[partitions.x]\n'
    cli("config", "--unset", "nothing", code=2)
    assert cli("config", "--get", "partition").out == "a\n"


def test_doctor_says_where_the_log_is(cli):
    checks = cli("doctor", "--json").document["checks"]
    (log,) = [check for check in checks if check["name"] == "log"]
    assert log["detail"].startswith(str(cli.home / "reservoir.log"))


def test_explain_lists_messages_that_equal_the_question(cli):
    number = cli.say("why did we drop Redis?")
    cli.say("because it lost jobs")
    result = cli("context", "why did we drop Redis?", "--explain")
    table = result.err.partition("\nsim: ")[0]
    (line,) = [line for line in table.splitlines() if line.startswith(f"{number} ")]
    assert line.endswith("the question itself")


def test_stats_shows_the_used_share_of_the_window(cli):
    cli("ingest", "--no-embed", stdin="hello")
    cli("context", "hello?")
    shown = cli("stats").out
    assert "share of the budget used\t" in shown
    assert "share of the context window used\t" in shown
    assert cli("stats", "--json").document["window_utilisation"]["median"] is not None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bin.dat", bytes(range(256)) * 20, "is not a text file"),
        ("cut.zip", b"PK\x03\x04 cut off", "is a damaged zip"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_a_hint(cli, tmp_path, name, content, message):
    file = tmp_path / name
    file.write_bytes(content)
    error, hint = cli("ingest", str(file), code=1).err.splitlines()
    assert error == f"error: {file} {message}"
    assert hint.startswith("hint: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("arguments", [["view", "0"], ["--help"], ["view", "--help"], []])
def test_a_full_disk_behind_stdout_is_an_error_with_a_hint(cli, arguments):
    cli.say("hello")
    with open("/dev/full", "wb") as full:
        command = [shutil.which("reservoir", path=cli.env["PATH"]), *arguments]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=cli.env)
    error, hint = result.stderr.decode().splitlines()
    assert (result.returncode, error) == (
        1,
        f"error: cannot write the output: {os.strerror(errno.ENOSPC)}",
    )
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("arguments", ["view 0", "--help", "view --help"])
def test_a_closed_stdout_is_an_error_with_a_hint_that_fits(cli, arguments):
    cli.say("hello")
    result = cli.shell(f"reservoir {arguments} >&-; echo $?", forked=False)
    assert result.out == "1\n"
    assert result.err.splitlines() == [
        "error: cannot write the output: stdout is closed",
        "hint: leave it open, or redirect it to a file",
    ]


@pytest.mark.parametrize("command", ["view", "config", "doctor"])
def test_a_home_that_is_a_file_is_an_error_that_says_so(cli, tmp_path, command):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    result = cli(command, code=2, env={"RESERVOIR_HOME": str(file)})
    assert result.err == f"error: RESERVOIR_HOME is a file: {file}\nhint: name a folder\n"
    assert file.read_text() == "mine"


def test_the_hint_for_a_home_below_a_file_is_to_name_another(cli, tmp_path):
    (tmp_path / "file").write_text("")
    result = cli("view", code=2, env={"RESERVOIR_HOME": str(tmp_path / "file" / "home")})
    assert (
        result.err.splitlines()[1]
        == f"hint: {tmp_path / 'file' / 'home'} is not a folder: name another"
    )
