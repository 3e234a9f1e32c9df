"""Typical pipelines, run by bash."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import forked
import pytest
from each import each

from reservoir_cli.cli import console

LONG = "0123456789 " * 20


@pytest.fixture
def large(cli):
    cli.store(*({"content": f"message {number} {LONG}"} for number in range(2_000)))
    return cli


@pytest.mark.parametrize(
    "command",
    ["view 0", "view 0 --jsonl", "view 0 --json", "search --keyword message -n 2000 --jsonl"],
)
def test_a_reader_that_stops_early_causes_no_error(large, command):
    result = large.shell(f"reservoir {command} | head -1; echo ${{PIPESTATUS[0]}}")
    first, status = result.out.splitlines()
    assert first
    assert status == "0"
    assert result.err == ""


@each(
    "arguments",
    [
        ["view"],
        ["view", "--json"],
        ["config"],
        ["config", "--path"],
        ["context", "hello?"],
        ["search", "--keyword", "hello"],
        ["--version"],
        ["--help"],
        ["view", "--help"],
    ],
)
def test_a_pipe_closed_from_the_start_causes_no_error(cli, arguments):
    cli.say("hello")
    reading, writing = os.pipe()
    os.close(reading)
    with tempfile.TemporaryFile() as err, open(os.devnull) as null:
        streams = (null.fileno(), writing, err.fileno())
        with forked.start(*arguments, streams=streams, env=cli.env, folder=cli.home.parent) as run:
            os.close(writing)
            assert run.wait() == 0
        err.seek(0)
        shown = err.read()
    assert b"Traceback" not in shown
    assert b"Broken" not in shown


def test_the_demo_on_a_closed_pipe_causes_no_error(cli):
    reading, writing = os.pipe()
    os.close(reading)
    demo = Path(__file__).parents[2] / "samples" / "demo.py"
    result = subprocess.run(
        [sys.executable, demo], stdout=writing, stderr=subprocess.PIPE, env=cli.env, check=False
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")


def test_the_demo_marks_the_answer_to_each_question(samples):
    """Its messages are stored and embedded already, which it does not mind."""
    demo = Path(__file__).parents[2] / "samples" / "demo.py"
    shown = samples(command=(sys.executable, demo)).out
    assert len(shown.splitlines()) <= 55  # and a handful of make
    answers = [line for line in shown.splitlines() if line.startswith("→ ")]
    words = ("214 acknowledged jobs", "within 500 ms", "10.5 % protein")
    assert [word for word, line in zip(words, answers, strict=True) if word not in line] == []


def test_long_work_is_announced_once_in_a_pipe(capsys):
    progress = console.ProgressBar()
    for result in (0, 1):
        progress("compiling the embedding model, once", result, 0)
        progress("embedding", result, 2)
    assert capsys.readouterr().err == "note: compiling the embedding model, once\n"


def test_a_rate_is_measured_from_the_first_call_of_each_task(monkeypatch):
    moments = iter([0.0, 2.0, 4.0, 5.0, 7.0])
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    bar = console.ProgressBar()
    lines = [bar._pace("copying messages", result, 900) for result in (500, 600, 700)]
    lines += [bar._pace("embedding", result, 50) for result in (0, 10)]
    assert lines == [
        "500 of 900",
        "600 of 900 · 50/s · 6 s left",
        "700 of 900 · 50/s · 4 s left",
        "0 of 50",
        "10 of 50 · 5.0/s · 8 s left",
    ]


def test_a_note_says_that_a_saved_question_starts_a_conversation(cli):
    cli.say("of the backend", "-p", "work", "-i", "backend")
    result = cli("context", "what?", "-p", "work", "--save")
    assert "note: the question is saved in work/work; " in result.err
    assert "-i backend" in result.err
    for scope in (["-p", "work"], ["-p", "work", "-i", "backend"]):
        assert "saved in" not in cli("context", "and what?", *scope, "--save").err


def test_a_closed_stderr_pipe_does_not_fail_a_command(cli):
    cli.say("hello", "-i", "elsewhere")
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ("view", "-i", "default")
    process = cli.start(
        *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writing
    )
    os.close(writing)
    assert process.communicate(timeout=120)[0] == b""
    assert process.returncode == 0


def test_tokens_can_be_estimated_by_counting_bytes(cli):
    cli.store(*({"content": f"message {number:02}"} for number in range(20)))
    result = cli.shell("TOTAL_CHARS=$(reservoir view 15 | wc -c); echo $((TOTAL_CHARS/4))")
    assert result.out == f"{15 * len('user: message 00' + chr(10)) // 4}\n"
    assert result.err == ""


def test_a_loop_over_lines_sees_every_line(cli):
    cli.say("one two three")
    cli.say("back\\slash stays", "--role", "assistant")
    result = cli.shell(
        "reservoir view 10 | while read -r line; do "
        'echo "$line (est. tokens: $((${#line}/4)))"; done'
    )
    assert result.out == (
        "user: one two three (est. tokens: 4)\nassistant: back\\slash stays (est. tokens: 6)\n"
    )


def test_oneline_gives_a_loop_one_message_per_iteration(cli):
    cli.say("several\nlines\r\nof text")
    cli.say("one more")
    result = cli.shell("reservoir view --oneline | while read -r line; do echo x; done | wc -l")
    assert result.out.strip() == "2"


@pytest.mark.model
def test_a_semantic_search_can_be_counted(samples):
    result = samples.shell('echo $(reservoir search --semantic "test" -p work | wc -c)')
    assert int(result.out) > 100
    assert result.err == ""


def test_a_semantic_search_of_nothing_counts_zero(cli):
    assert cli.shell('echo $(reservoir search --semantic "test" | wc -c)').out == "0\n"


def test_a_question_and_its_piped_answer_are_stored_as_a_pair(cli):
    cli.say("an earlier remark")
    result = cli.shell(
        'q="why did we drop Redis?"; reservoir context "$q" --save | cat '
        "| tee >(reservoir ingest --role assistant --no-embed)"
    )
    assert result.out.startswith("[Reservoir context]\nuser: an earlier remark\n[/Reservoir ")
    assert "]\n\nuser: why did we drop Redis?\n" in result.out
    for _ in range(600):
        if len(rows := cli.rows()) == 3:  # bash does not wait for the last ingest
            break
        time.sleep(0.1)
    earlier, question, answer = rows
    assert question["content"] == "why did we drop Redis?"
    assert answer["role"] == "assistant"
    assert (
        answer["content"] == "why did we drop Redis?"
    )  # of a context, only its question is stored
    assert answer["trace_id"] == question["trace_id"] != earlier["trace_id"]
    assert question["created_at"] <= answer["created_at"]


def test_a_context_is_a_request_body_that_jq_and_a_provider_read(cli):
    cli.say("the queue lost jobs")
    result = cli.shell(
        'reservoir context "why did we drop Redis?" --model gpt-4o --format openai | cat'
    )
    body = json.loads(result.out)
    assert body["model"] == "gpt-4o"
    assert body["messages"][-1] == {"role": "user", "content": "why did we drop Redis?"}


def test_a_question_can_be_piped(cli):
    for command in ("reservoir context", "reservoir context -"):
        assert cli.shell(f'echo "why?" | {command}').out.endswith("]\n\nuser: why?\n")
    cli.say("because of the queue")
    assert cli.shell("echo queue | reservoir search --keyword -").out.endswith(
        " user: because of the queue\n"
    )


def test_an_at_sign_before_a_question_has_no_meaning(cli, tmp_path):
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    assert cli("context", f"@{file}").out.endswith(f"]\n\nuser: @{file}\n")
    assert cli("search", "--keyword", f"@{file}").out == ""


def test_messages_can_be_piped_to_another_store(cli, tmp_path):
    cli.say("question")
    cli.say("answer", "--role", "assistant")
    other = tmp_path / "other.db"
    cli.shell(
        f"reservoir view 0 --jsonl | reservoir --db {other} ingest --format reservoir --no-embed"
    )
    copied = cli("--db", str(other), "view", "--json").document["messages"]
    assert copied == cli.rows()
