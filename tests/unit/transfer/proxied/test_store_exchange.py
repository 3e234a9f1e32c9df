"""A conversation from the proxy and from the client's log is stored once."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlite_steps import steps

from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.proxy.parse_request import parse
from reservoir_cli.server.proxy.providers.anthropic import MESSAGES
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.server.proxy.providers.openai_responses import RESPONSES
from reservoir_cli.transfer.proxied.exchange import Exchange

pytestmark = pytest.mark.both_stores

SESSION = "11111111-2222-4333-8444-555555555555"
QUESTION, ANSWER = "why did we drop Redis?", "It lost jobs.\n\nSee the log."
NEXT, LAST = "and then?", "We took Postgres."
KEY = "AKIA" + "Q7XN2VD4KLP3ZWTM"
#: The time of the conversation in the client's log.
SAID = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def reservoir(location: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    with Reservoir.open(location) as opened:
        yield opened


def claude_turns(question: str = QUESTION, answer: str = ANSWER) -> list[Any]:
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"q": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
    return [
        {"role": "user", "content": [{"type": "text", "text": question}]},
        {"role": "assistant", "content": [{"type": "text", "text": answer}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": LAST}]},
        {"role": "user", "content": NEXT},
    ]


def codex_turns() -> list[Any]:
    output = {"type": "output_text", "text": ANSWER}
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        {"type": "message", "role": "assistant", "content": [output]},
        {"type": "function_call", "name": "look", "arguments": '{"q": 1}', "call_id": "t1"},
        {"type": "function_call_output", "call_id": "t1", "output": "42"},
        {"type": "message", "role": "assistant", "content": [{**output, "text": LAST}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": NEXT}]},
    ]


TURNS = {"claude-code": claude_turns, "codex": codex_turns}
PATHS = {"claude-code": MESSAGES, "codex": RESPONSES}
#: Messages of each client's requests up to the second question.
STEPS = {"claude-code": (1, 3, 5), "codex": (1, 4, 6)}


def send_exchange(
    reservoir: Reservoir,
    client: str,
    turns: list[Any],
    reply: Any = None,
    now: datetime | None = None,
    model: str = "m",
) -> int:
    """Send a request and its answer through the proxy."""
    path, key = PATHS.get(client, CHAT), "input" if client == "codex" else "messages"
    headers = {"codex": "session-id", "claude-code": "x-claude-code-session-id"}
    client_headers = {headers[client]: SESSION} if client in headers else {}
    request = parse(path, json.dumps({key: turns}).encode(), client_headers)
    answer = None
    if reply is not None:
        complete = parse(
            path, json.dumps({key: [*turns, *reply, turns[0]]}).encode(), client_headers
        )
        answer = complete.messages[len(request.messages)]
    exchange = Exchange(
        Scope("p", client),
        request.conversation,
        model,
        request.messages,
        answer,
        named=request.named,
    )
    return reservoir.exchanges.store(exchange, now)


def send_session(reservoir: Reservoir, client: str, turns: list[Any]) -> None:
    """Send all requests of a session through the proxy, step by step."""
    steps = [*STEPS[client], len(turns)]
    for start, end in pairwise(steps):
        send_exchange(reservoir, client, turns[:start], turns[start:end] if start < end else None)
    send_exchange(reservoir, client, turns)


def write_log(folder: Path, client: str, turns: list[Any], since: datetime = SAID) -> Path:
    """Write the client's log of a session."""
    moments = [since + timedelta(seconds=number) for number in range(len(turns))]
    lines: list[Any] = [
        {
            "type": turn["role"],
            "uuid": f"u{number}",
            "sessionId": SESSION,
            "timestamp": moment.isoformat(),
            "message": {"id": f"msg_{number}", **turn},
        }
        for number, (turn, moment) in enumerate(zip(turns, moments, strict=True))
        if client == "claude-code"
    ]
    if client == "codex":
        meta = {"type": "session_meta", "timestamp": SAID.isoformat(), "payload": {"id": SESSION}}
        lines = [meta] + [
            {"type": "response_item", "timestamp": moment.isoformat(), "payload": turn}
            for turn, moment in zip(turns, moments, strict=True)
        ]
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def texts(reservoir: Reservoir) -> list[str]:
    return [message.content for message in reservoir.view(Scope("p"), 0)]


def forget(reservoir: Reservoir, *contents: str) -> None:
    rows = reservoir.view(Scope("p"), 0)
    keys = [row.key for row in rows if row.content in contents]
    assert len(keys) == len(contents)
    reservoir.forget(keys)


@pytest.mark.parametrize("client", TURNS)
def test_a_log_of_messages_that_the_proxy_stored_adds_nothing(reservoir, tmp_path, client):
    turns = TURNS[client]()
    send_session(reservoir, client, turns)
    stored = texts(reservoir)
    assert sorted(stored) == sorted([QUESTION, ANSWER, "42", LAST, NEXT])
    report = reservoir.import_files(write_log(tmp_path, client, turns), form=client, partition="p")
    assert (report.imported, report.forgotten) == (0, 0)
    assert texts(reservoir) == stored


@pytest.mark.parametrize("client", TURNS)
def test_forgotten_messages_of_the_proxy_stay_forgotten(reservoir, tmp_path, client):
    turns = TURNS[client]()
    send_session(reservoir, client, turns)
    forget(reservoir, QUESTION, ANSWER)
    report = reservoir.import_files(write_log(tmp_path, client, turns), form=client, partition="p")
    assert report.imported == 0
    assert report.forgotten == {"claude-code": 2, "codex": 3}[client]
    assert texts(reservoir) == ["42", LAST, NEXT]


@pytest.mark.parametrize("client", TURNS)
def test_forgotten_imported_messages_are_not_stored_by_the_proxy(reservoir, tmp_path, client):
    turns = TURNS[client]()
    reservoir.import_files(write_log(tmp_path, client, turns[:-1]), form=client, partition="p")
    forget(reservoir, QUESTION, "42")
    send_exchange(reservoir, client, turns)
    assert QUESTION not in texts(reservoir)
    assert "42" not in texts(reservoir)
    assert sorted(texts(reservoir))[-1] == NEXT


@pytest.mark.parametrize("client", TURNS)
def test_a_forgotten_text_that_is_said_again_is_stored(reservoir, tmp_path, client):
    turns = TURNS[client]()
    send_session(reservoir, client, turns)
    forget(reservoir, QUESTION)
    later = datetime.now(UTC) + timedelta(minutes=5)
    file = write_log(tmp_path, client, [turns[0]], since=later)
    assert reservoir.import_files(file, form=client, partition="p").imported == 1
    # For the proxy, it is the newest message of a list.
    forget(reservoir, NEXT)
    repeated = [*turns, {"role": "assistant", "content": "So it was."}, turns[-1]]
    send_exchange(reservoir, client, repeated)
    assert texts(reservoir).count(NEXT) == 1


def test_the_old_text_of_an_edited_message_stays_out(reservoir, tmp_path):
    send_session(reservoir, "claude-code", claude_turns())
    [row] = [row for row in reservoir.view(Scope("p"), 0) if row.content == QUESTION]
    reservoir.edit(row.key, "something else")
    before = texts(reservoir)
    file = write_log(tmp_path, "claude-code", claude_turns())
    assert reservoir.import_files(file, form="claude-code", partition="p").imported == 0
    assert texts(reservoir) == before


@pytest.mark.parametrize("forgotten", [False, True])
def test_removed_secrets_do_not_cause_duplicates(location, tmp_path, monkeypatch, forgotten):
    monkeypatch.setenv("RESERVOIR_REDACT", "remove")
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    turns = claude_turns(f"the key is {KEY}", f"I see {KEY} there")
    with Reservoir.open(location) as reservoir:
        send_session(reservoir, "claude-code", turns)
        if forgotten:
            forget(reservoir, *[text for text in texts(reservoir) if "redacted" in text])
        before = texts(reservoir)
        file = write_log(tmp_path, "claude-code", turns)
        assert reservoir.import_files(file, form="claude-code", partition="p").imported == 0
        assert texts(reservoir) == before


def test_subagents_belong_to_their_session(reservoir, tmp_path):
    turns = claude_turns()
    send_session(reservoir, "claude-code", turns)
    file = write_log(tmp_path, "claude-code", turns)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    sidechain = {"isSidechain": True, "agentId": "a1"}
    file.write_text("".join(json.dumps(row | sidechain) + "\n" for row in rows), encoding="utf-8")
    assert reservoir.import_files(file, form="claude-code", partition="p").imported == 0


def test_a_conversation_continues_when_the_client_drops_its_oldest_messages(reservoir):
    history: list[Any] = []
    for number in range(8):
        history += [{"role": "user", "content": f"what about step {number}?"}]
        window = history[-5:]
        if number == 6:  # a summary replaces the dropped messages
            window = [
                {"role": "user", "content": "Summary."},
                {"role": "assistant", "content": "ok"},
            ]
            window += history[-3:]
        reply = {"role": "assistant", "content": f"Step {number} is done."}
        send_exchange(reservoir, "proxy", window, [reply])
        history += [reply]
    rows = reservoir.view(Scope("p"), 0)
    assert len({row.conversation_id for row in rows}) == 1
    contents = [row.content for row in rows if row.content not in ("Summary.", "ok")]
    assert contents == [turn["content"] for turn in history]


def test_a_conversation_that_begins_in_between_is_separate(reservoir):
    reply = {"role": "assistant", "content": "Fine."}
    shared = {"role": "user", "content": "go on"}
    for first in ("one", "two"):
        send_exchange(reservoir, "proxy", [{"role": "user", "content": first}], [reply])
        turns = [{"role": "user", "content": first}, reply, shared]
        send_exchange(reservoir, "proxy", turns, [{"role": "assistant", "content": f"{first}!"}])
    # It begins with the same text but gets another answer.
    turns = [shared, {"role": "assistant", "content": "No."}, {"role": "user", "content": "why?"}]
    send_exchange(reservoir, "proxy", turns, [reply])
    rows = reservoir.view(Scope("p"), 0)
    assert len({row.conversation_id for row in rows}) == 3


@pytest.mark.sqlite("it counts the steps of SQLite")
def test_storing_an_exchange_costs_the_same_in_a_store_of_any_size(reservoir):
    def store(question: str) -> None:
        assert send_exchange(reservoir, "claude-code", [{"role": "user", "content": question}]) == 1

    store("one?")
    cost = steps(reservoir.store, lambda: store("two?"))
    reservoir.ingest([Message("user", "x")] * 2_000, partition="q", embed=False)
    assert steps(reservoir.store, lambda: store("three?")) <= cost + 50


DAY = datetime(2026, 5, 8, 9, tzinfo=UTC)
HELLO = {"role": "user", "content": "hello"}


def reply(text: str, call_id: str = "") -> list[Any]:
    """Return an answer, or a call of a tool."""
    function = {"name": "look", "arguments": "{}"}
    calls = {"tool_calls": [{"id": call_id, "function": function}]} if call_id else {}
    return [{"role": "assistant", "content": text, **calls}]


def test_only_the_same_request_soon_after_its_answer_is_a_retry(reservoir):
    def ask(answer: str, after: timedelta, model: str = "m") -> None:
        send_exchange(reservoir, "x", [HELLO], reply(answer), DAY + after, model)

    ask("Hi.", timedelta(0))
    ask("Hi again.", timedelta(minutes=2))
    ask("Hi again.", timedelta(hours=1))
    assert texts(reservoir) == ["hello", "Hi again."]
    ask("Hello from another model.", timedelta(hours=1, seconds=1), "n")
    ask("Later.", timedelta(hours=2), "n")
    ask("Later again.", timedelta(hours=2, minutes=1), "n")
    expected = [
        *("hello", "Hi again."),
        *("hello", "Hello from another model."),
        *("hello", "Later again."),
    ]
    assert texts(reservoir) == expected
    history = [HELLO, *reply("Later again."), {"role": "user", "content": NEXT}]
    send_exchange(reservoir, "x", history, reply(LAST), DAY + timedelta(hours=3))
    assert texts(reservoir) == [*expected, NEXT, LAST]


def ask_after_restart(
    location: str, turns: list[Any], answer: str, after: timedelta, model: str = "m"
) -> None:
    """Send an exchange through a newly opened store, which remembers no requests."""
    with Reservoir.open(location) as restarted:
        send_exchange(restarted, "x", turns, reply(answer), DAY + after, model)


def test_a_retry_after_a_restart_replaces_the_answer(reservoir, location):
    ask_after_restart(location, [HELLO], "Hi.", timedelta(0))
    ask_after_restart(location, [HELLO], "Hi again.", timedelta(minutes=2))
    assert texts(reservoir) == ["hello", "Hi again."]
    history = [HELLO, *reply("Hi again."), {"role": "user", "content": NEXT}]
    for minute in range(3):
        ask_after_restart(location, history, f"At {minute}.", timedelta(minutes=minute))
    assert texts(reservoir) == ["hello", "Hi again.", NEXT, "At 2."]
    for minute in range(2):
        ask_after_restart(location, [HELLO], f"Hi {minute}.", timedelta(hours=1, minutes=minute))
    assert texts(reservoir) == ["hello", "Hi again.", NEXT, "At 2.", "hello", "Hi 1."]


def test_other_answers_after_a_restart_are_kept(reservoir, location):
    ask_after_restart(location, [HELLO], "From m.", timedelta(0))
    ask_after_restart(location, [HELLO], "From n.", timedelta(minutes=1), "n")
    expected = ["hello", "From m.", "hello", "From n."]
    assert texts(reservoir) == expected
    for minute, first in enumerate(("From m.", "From n.")):
        history = [HELLO, *reply(first), {"role": "user", "content": NEXT}]
        moment = timedelta(hours=1, minutes=minute)
        ask_after_restart(location, history, f"After {first}", moment, "n")
    assert texts(reservoir) == [*expected, NEXT, "After From m.", NEXT, "After From n."]


def test_an_answer_to_the_same_questions_after_other_answers_is_kept(reservoir):
    question = {"role": "user", "content": "continue"}
    for number in range(2):
        moment = DAY + timedelta(minutes=number)
        send_exchange(reservoir, "x", [HELLO], reply(f"Hi {number}."), moment, f"m{number}")
        history = [HELLO, *reply(f"Hi {number}."), question]
        send_exchange(reservoir, "x", history, reply(f"Go on {number}."), moment)
    assert {"Hi 0.", "Go on 0.", "Hi 1.", "Go on 1."} <= set(texts(reservoir))


def test_a_repeated_question_with_calls_keeps_all_steps_once(reservoir):
    for number in range(3):
        history, moment = [HELLO], DAY + timedelta(hours=number)
        answers = [reply("", f"c{number}"), reply(f"It is {number}."), reply(f"Bye {number}.")]
        sent = [
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number}"},
            {"role": "user", "content": f"{NEXT} {number}"},
        ]
        for answer, following in zip(answers, [*sent, HELLO], strict=True):
            moment += timedelta(seconds=1)
            send_exchange(reservoir, "x", history, answer, moment)
            history += [*answer, following]
    expected = [
        text
        for number in range(3)
        for text in (
            *("hello", "", f"result {number}", f"It is {number}."),
            *(f"{NEXT} {number}", f"Bye {number}."),
        )
    ]
    assert texts(reservoir) == expected


def test_a_named_conversation_keeps_the_answers_of_another_day(reservoir):
    answers = {"Nothing.": 0, "Rain.": 1, "Sun.": 24, "Snow.": 25}
    question = {"role": "user", "content": [{"type": "text", "text": QUESTION}]}
    for answer, hours in answers.items():
        moment = DAY + timedelta(hours=hours)
        said = {"role": "assistant", "content": answer}
        send_exchange(reservoir, "claude-code", [question], [said], moment)
    assert texts(reservoir) == [QUESTION, "Rain.", QUESTION, "Snow."]
