"""Contexts from an agent's long conversation in a real store: every body is valid."""

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bodies import BUDGETS, FORMS, SETTINGS, START, calls_of, recalled_text, spoken, texts_of
from validators import problems

from reservoir_cli import Message, Reservoir, ToolCall, UsageError
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.window_turns import (
    ends_with_a_question,
)
from reservoir_cli.messages import Role, StoredMessage
from reservoir_cli.tokens import ApproximateCounter

IDS = (
    "call_{n}",
    "toolu_{n}",
    "c{n}" + "x" * 60,
    "functions.bash:{n}",
    "crn:v1|{n}|ümlaut",
    "shared",
    "shared.odd",
)
ARGUMENTS = (
    '{{"key": {n}, "path": "src/a.py"}}',
    '{{"path": {{"of": ["x", {n}]}}}}',
    "[{n}, 2]",
    '"only a text {n}"',
    "not json {n} {{",
    "",
)
NAMES = ("read_file", "web.search", "mcp__" + "long_" * 20, "größe", "run tests")


def _words(wanted: int, salt: random.Random) -> str:
    """Return about so many tokens, in lines of uneven length."""
    line = "the quick brown fox jumps over the lazy dog and reads line"
    lines = [f"{line[: salt.randrange(20, 58)]} {n}" for n in range(max(0, wanted // 12))]
    return "\n".join(lines)


class _Agent:
    """Write messages as agents leave them, the worst cases included."""

    def __init__(self) -> None:
        self.salt = random.Random(20260105)
        self.messages: list[Message] = []
        self.calls = 0
        self.now = START
        #: Texts of the results of a call, by the key in its arguments.
        self.answers: dict[int, str] = {}

    def say(self, role: str, text: str, thread: str, trace: str, **more: Any) -> None:
        self.now += timedelta(seconds=self.salt.choice((0, 1, 40, 900)))
        self.messages.append(
            Message(role, text, conversation_id=thread, trace_id=trace, created_at=self.now, **more)
        )

    def call(self) -> tuple[int, ToolCall]:
        self.calls += 1
        n, salt = self.calls, self.salt
        number = salt.choice(IDS).format(n=n)
        return n, ToolCall(number, salt.choice(NAMES), salt.choice(ARGUMENTS).format(n=n))

    def result(self, n: int, call: ToolCall, thread: str, trace: str, size: int) -> None:
        text = f"answer to {n} of {thread}\n{_words(size, self.salt)}"
        empty = self.salt.random() < 0.04
        self.say("tool", " \n" if empty else text, thread, trace, tool_call_id=call.id)

    def results(
        self, some: list[tuple[int, ToolCall]], thread: str, trace: str, sizes: list[int]
    ) -> None:
        for n, call in some:
            kind = self.salt.random()
            if kind < 0.08:
                continue
            if kind < 0.16:
                self.say("user", f"wait, also {len(self.messages)}", thread, trace)
            self.result(n, call, thread, trace, sizes.pop() if sizes else 30)
            if kind > 0.95:
                self.result(n, call, thread, trace, 10)

    def turn(self, thread: str, sizes: list[int]) -> None:
        salt, trace = self.salt, f"trace {thread} {len(self.messages)}"
        self.say("user", f"question {len(self.messages)} about line and fox?", thread, trace)
        for _ in range(salt.randrange(1, 5)):
            some = [self.call() for _ in range(salt.choice((1, 1, 1, 2, 3, 5)))]
            # Two calls with one id in a message are indistinguishable.
            some = list({call.id: (n, call) for n, call in some}.values())
            if salt.random() < 0.05:
                self.result(0, some[0][1], thread, trace, 5)
            text = salt.choice(("", "   ", f"step {len(self.messages)}: I look it up"))
            self.say("assistant", text, thread, trace, tool_calls=tuple(each[1] for each in some))
            salt.shuffle(some)
            self.results(some, thread, trace, sizes)
        if salt.random() < 0.1:
            self.say("tool", "a result of nobody", thread, trace, tool_call_id="nobody")
        if salt.random() < 0.8:
            self.say("assistant", f"reply {len(self.messages)}: the fox it was", thread, trace)
        if salt.random() < 0.1:
            self.say("assistant", "\t\n", thread, trace)
        if salt.random() < 0.05:
            self.say("system", "You are an old prompt.", thread, trace)


def _long_conversation() -> list[Message]:
    agent = _Agent()
    sizes = [40_000, 1, 20_000, 2_000, 2_100, 9_000, 1, 700] + [
        int(10 ** agent.salt.uniform(0, 3.4)) for _ in range(300)
    ]
    agent.salt.shuffle(sizes)
    while agent.calls < 300:
        for thread in agent.salt.sample(["one", "two", "three"], 2):
            agent.turn(thread, sizes)
    # Conversations at the same time with the same ids: their messages are interleaved.
    one = [each for each in agent.messages if each.conversation_id == "one"][-20:]
    other = [replace(each, conversation_id="echo", trace_id=f"e{each.trace_id}") for each in one]
    # Results in the reverse order of their calls.
    pairs = [(a, b) if a.role != "tool" else (b, a) for a, b in zip(one, other, strict=True)]
    mixed = [each for pair in pairs for each in pair]
    times = (agent.now + timedelta(minutes=k) for k in range(len(mixed)))
    mixed = [replace(each, created_at=time) for each, time in zip(mixed, times, strict=False)]
    return [*agent.messages, *mixed]


QUESTION = "where was the fox in line 7?"
#: By score, most of a context is recalled; by tiers, it is one long run of turns.
ASKED = [
    ("score", QUESTION),
    ("tiers", QUESTION),
    ("tiers", ""),
]


class LongConversation:
    """A store with the long conversation, and contexts from it, each built once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._windows: dict[tuple[str, str, str, int], ContextWindow] = {}
        with self.open() as reservoir:
            messages = _long_conversation()
            stored = reservoir.ingest(messages, partition="p", instance="i", embed=False)
        self.stored = {each.id: each for each in stored}

    def open(self) -> Reservoir:
        return Reservoir.open(self.file, settings=SETTINGS, offline=True)

    def window(self, asked: tuple[str, str], form: str, budget: int) -> ContextWindow:
        if (*asked, form, budget) not in self._windows:
            order, query = asked
            with self.open() as reservoir:
                self._windows[*asked, form, budget] = reservoir.context(
                    query,
                    partition="p",
                    instance="i",
                    model="gpt-4o",
                    budget=budget,
                    format=form,
                    recent_context_size=20 if order == "score" else 10_000,
                    order=order,
                    system="Be brief.",
                    procedure={"deploy": "Step by step."},
                    knowledge={"notes.md": "Foxes are quick."},
                    episode=["2026-01-01: we spoke of foxes"],
                )
        return self._windows[*asked, form, budget]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> LongConversation:
    long = LongConversation(tmp_path_factory.mktemp("agent") / "store.db")
    assert sum(len(each.tool_calls) for each in long.stored.values()) >= 300
    assert max(each.tokens for each in long.stored.values()) > 30_000
    return long


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("form", FORMS[2:])
@pytest.mark.parametrize("asked", ASKED)
def test_every_body_of_a_long_conversation_is_valid(long, asked, form, budget):
    window = long.window(asked, form, budget)
    if ends_with_a_question(window.turns):
        assert problems(form, window.to()) == []
    else:  # there is no question, neither new nor stored
        with pytest.raises(UsageError, match="nothing to send"):
            window.to()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("form", ["json", *FORMS])
@pytest.mark.parametrize("asked", ASKED[:2])
def test_a_context_is_within_its_budget(long, asked, form, budget):
    window = long.window(asked, form, budget)
    assert 0 < window.used <= budget
    assert not window.budget.overfull
    assert window.history_used <= window.budget.history


@pytest.mark.parametrize("budget", BUDGETS[1:])
@pytest.mark.parametrize("form", FORMS[2:])
@pytest.mark.parametrize("asked", ASKED)
def test_the_reported_tokens_are_those_of_the_body(long, asked, form, budget):
    window = long.window(asked, form, budget)
    body = window.to()
    counter, messages = ApproximateCounter(), [*body["messages"]]
    if "system" in body:
        messages.append({"content": body["system"]})
    if "tools" in body:
        tools = json.dumps(body["tools"], separators=(",", ":"))
        messages[0] = {"content": "\n".join([tools, *spoken(messages[0])])}
    printed = 1.10 * sum(4 + counter.count("\n".join(spoken(each))) for each in messages)
    # Each section is counted and rounded up separately.
    assert window.used == pytest.approx(printed, rel=0.02, abs=25)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize("asked", ASKED[:2])
def test_the_reported_tokens_are_those_of_the_text(long, asked, form, budget):
    window = long.window(asked, form, budget)
    printed = 1.10 * (ApproximateCounter().count(window.to()) + 4 * len(window.turns))
    assert window.used == pytest.approx(printed, rel=0.01, abs=10)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("form", FORMS[2:])
@pytest.mark.parametrize("asked", ASKED)
def test_printed_messages_equal_stored_ones(long, asked, form, budget):
    window = long.window(asked, form, budget)
    if not ends_with_a_question(window.turns):
        return  # nothing is printed
    known = {(each.role.value, each.content) for each in long.stored.values()}
    for role, text in texts_of(form, window.to()):
        if (role, text) in known:
            continue
        if role == "tool":
            assert _is_cut(text, long.stored) or text == "[no output]"
        else:
            _assert_is_given(window, text)


def _is_cut(text: str, stored: dict[int, StoredMessage]) -> bool:
    head, _, marker = text.rpartition("\n")
    number = re.search(r"--id (\d+)", marker)
    return number is not None and stored[int(number[1])].content.startswith(head + "\n")


def _assert_is_given(window: ContextWindow, text: str) -> None:
    given = {"Be brief.", "[Procedure: deploy]\nStep by step.", window.request.query}
    given |= {"\n---\n".join(["Be brief.", "[Procedure: deploy]\nStep by step."])}
    given |= {"[Retrieved Knowledge]\nSource: notes.md\nFoxes are quick."}
    given |= {"[Past Conversation Context]\n2026-01-01: we spoke of foxes"}
    recalled = recalled_text(window.selection.recalled)
    first = [each.message.content for each in window.selection.history[:1]]
    given |= {recalled, *(f"{recalled}\n---\n{content}" for content in first)}
    assert text in given


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("asked", ASKED[:2])
def test_rows_of_a_context_equal_the_stored_ones(long, asked, budget):
    for each in long.window(asked, "json", budget).kept:
        whole = long.stored[each.message.id]
        if each.cut:
            assert whole.role is Role.TOOL
            assert _is_cut(each.message.content, long.stored)
        else:
            assert each.message.content == whole.content
        assert set(each.message.tool_calls) <= set(whole.tool_calls)


@pytest.mark.parametrize("budget", BUDGETS[3:])
@pytest.mark.parametrize("form", FORMS[2:])
@pytest.mark.parametrize("asked", ASKED[1:])
def test_a_result_is_with_its_own_call(long, asked, form, budget):
    wrong, seen = [], 0
    for call in calls_of(form, long.window(asked, form, budget).to()):
        key = re.search(r"\d+", json.dumps(call.arguments))
        answer = re.match(r"answer to (\d+) of (\w+)", call.result)
        if key and answer and answer[1] != "0":
            seen += 1
            if key[0] != answer[1]:
                wrong.append((call.arguments, call.result[:30]))
    assert wrong == []
    assert seen > 10


_ALL_BODIES = """
import hashlib, json, sys
from reservoir_cli import Reservoir
digest = hashlib.sha256()
settings = {"embedding_model": "nobody/absent-model", "recent_context_size": 60}
with Reservoir.open(sys.argv[1], settings=settings, offline=True) as reservoir:
    for form in ("text", "openai", "ollama", "anthropic"):
        for budget in (1_000, 100_000):
            window = reservoir.context(
                "fox in line 7?", partition="p", model="gpt-4o", budget=budget, format=form)
            digest.update(json.dumps(window.to()).encode())
assert "torch" not in sys.modules
print(digest.hexdigest())
"""


def test_the_same_question_gives_the_same_bytes_in_every_process(long):
    answers = {
        subprocess.run(
            [sys.executable, "-c", _ALL_BODIES, str(long.file)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1
    assert len(answers.pop().strip()) == hashlib.sha256().digest_size * 2
