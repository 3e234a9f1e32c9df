"""Turns that are incomplete when a file is read."""

import json
import os
from datetime import timedelta

from builders import FakeEmbedder, embed
from sessions import WORK, line, text, turn


def test_an_unfinished_last_turn_is_held_back_until_it_is_complete(machine, now):
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."), line("user", 3, "two?"))
    report = machine.sync(now=now)
    assert (report.imports.imported, report.held) == (2, 1)
    again = machine.sync(now=now)
    assert (again.read, again.held) == (0, 1)
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    machine.write("a/s1.jsonl", line("assistant", 4, [call], stop="tool_use"))
    assert machine.sync(now=now).held == 1
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a file"}
    machine.write("a/s1.jsonl", line("user", 5, [result]))
    assert machine.sync(now=now).held == 1
    machine.write("a/s1.jsonl", *turn(6, "", "two.")[1:])
    report = machine.sync(now=now)
    assert (report.imports.imported, report.held) == (4, 0)
    messages = machine.store.last(WORK, 0)
    assert [message.role for message in messages[2:]] == ["user", "assistant", "tool", "assistant"]
    assert len({message.trace_id for message in messages[2:]}) == 1


def test_an_old_unfinished_turn_is_stored_and_its_rest_added_later(machine, now):
    machine.write("a/s1.jsonl", line("user", 1, "one?"))
    assert machine.sync(now=now).held == 1
    assert machine.sync(now=now + timedelta(hours=1)).imports.imported == 1
    assert machine.sync(now=now + timedelta(hours=1)).read == 0
    machine.write("a/s1.jsonl", *turn(1, "one?", "one.")[1:])
    machine.sync(now=now)
    assert machine.said(WORK) == ["one?", "one."]


def test_an_incomplete_last_line_is_left_until_it_is_complete(machine, now):
    full_line = json.dumps(line("user", 3, "two?"))
    machine.write("a/s1.jsonl", *turn(1, "one?", "one."), torn=full_line[:40])
    report = machine.sync(now=now)
    assert (report.imports.imported, report.imports.skipped) == (2, 0)
    machine.write("a/s1.jsonl", torn=f"{full_line[40:]}\n")
    machine.write("a/s1.jsonl", *turn(3, "", "two.")[1:])
    assert machine.sync(now=now).imports.imported == 2


def test_a_partially_stored_reply_is_replaced_by_the_complete_one(machine):
    machine.embedder = FakeEmbedder()
    reply = line("assistant", 2, [{"type": "text", "text": "zebra first"}])
    machine.write("a/s1.jsonl", line("user", 1, "one?"), reply)
    machine.write("a/s1.jsonl", {"type": "ai-title", "aiTitle": "A title", "sessionId": "s1"})
    machine.sync()
    embed(machine.store, machine.embedder)
    before = machine.store.last(WORK, 0)
    continuation = line(
        "assistant", 3, [{"type": "text", "text": "then the giraffe"}], stop="end_turn"
    )
    continuation["message"]["id"], continuation["requestId"] = "m2", "r2"
    machine.write("a/s1.jsonl", continuation)
    report = machine.sync()
    assert (report.imports.imported, report.imports.renewed) == (0, 1)
    after = machine.store.last(WORK, 0)
    assert [message.id for message in after] == [message.id for message in before]
    assert after[1].content == "zebra first\nthen the giraffe"
    assert after[1].tokens > before[1].tokens
    assert [hit[0] for hit in machine.store.keyword("giraffe", WORK, 9)[0]] == [after[1].id]
    assert machine.store.count_unembedded() == 1
    embed(machine.store, machine.embedder)
    [passage] = machine.store.passages([after[1].key])[after[1].key]
    assert passage.end == len(after[1].content)
    [summary] = machine.store.conversations(WORK)
    assert summary.conversation.title == "A title"
    assert machine.store.problems() == []


def test_a_shorter_or_different_text_of_a_known_id_changes_nothing(machine):
    path = machine.write("a/s1.jsonl", *turn(1, "one?", "what was said"))
    machine.sync()
    for reply in ("what", "something else that is longer"):
        path.write_text(text(*turn(1, "one?", reply)), encoding="utf-8")
        os.utime(path, ns=(1, len(reply)))
        assert machine.sync().imports.renewed == 0
    assert machine.said(WORK) == ["one?", "what was said"]
