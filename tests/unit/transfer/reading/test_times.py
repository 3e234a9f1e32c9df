"""Times and conversations in lists of messages, with various names and units."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from each import each
from reading import file_of, lines
from reading import read as read_as

from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.reading.times import count_unread_times, moment, time_of

WHEN = datetime(2026, 2, 3, 12, 30, tzinfo=UTC)
SECONDS = int(WHEN.timestamp())
ASKED = {"role": "user", "content": "Which queue?"}
BLOCKS = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
SHARED = {"from": "human", "value": "Which queue?"}


def records(text: str) -> list[Record]:
    importer = choose(file_of(text))
    entries = read_as(text, importer)
    assert all(isinstance(entry, Record) for entry in entries), entries
    return [entry for entry in entries if isinstance(entry, Record)]


TIMES: list[tuple[str, Any]] = [
    ("created_at", WHEN.isoformat()),
    ("created_at", "2026-02-03T12:30:00Z"),
    ("created_at", "2026-02-03 12:30:00"),
    ("created_at", SECONDS),
    ("created_at", 1000 * SECONDS),
    ("timestamp", SECONDS),
    ("timestamp", float(SECONDS)),
    ("timestamp", 1000 * SECONDS),
    ("timestamp", "2026-02-03T13:30:00+01:00"),
    ("timestamp", str(SECONDS)),
    ("timestamp", 10**6 * SECONDS),
    ("timestamp", 10**9 * SECONDS),
    ("timestamp", str(10**9 * SECONDS)),
    ("created", SECONDS),
    ("create_time", float(SECONDS)),
]


@each(("name", "value"), TIMES)
@each("form", ["openai", "reservoir", "anthropic", "sharegpt"])
def test_a_time_is_kept_whatever_its_name_and_unit(form, name, value):
    if form == "reservoir" and name not in ("created_at", "timestamp"):
        return  # our own rows have their own names
    texts = {
        "openai": lines({**ASKED, name: value}),
        "reservoir": lines({**ASKED, name: value, "conversation_id": "c"}),
        "anthropic": json.dumps([{**BLOCKS, name: value}]),
        "sharegpt": json.dumps({"conversations": [{**SHARED, name: value}]}),
    }
    if form == "reservoir" and isinstance(value, str) and value.isdigit():
        return  # our own times are numbers or ISO 8601
    assert choose(file_of(texts[form])).name == form
    assert [record.message.created_at for record in records(texts[form])] == [WHEN]


NO_TIMES = ["soon", -5, 0, True, None, {"of": 1}, 1e300, "9" * 40, ""]


@each("value", NO_TIMES)
def test_an_invalid_time_does_not_lose_the_message(value):
    [record] = records(lines({**ASKED, "created_at": value}))
    assert record.message.created_at is None


def test_a_message_without_a_time_gets_the_previous_one_or_that_of_the_body():
    reply = {"role": "assistant", "content": "Redis."}
    body = {"created": SECONDS, "messages": [ASKED, {**reply, "timestamp": SECONDS + 9}, ASKED]}
    times = [record.message.created_at for record in records(json.dumps(body))]
    assert [time and int(time.timestamp()) - SECONDS for time in times] == [0, 9, 9]


def test_rows_with_our_names_are_ours_without_a_partition():
    rows = [
        {**ASKED, "created_at": WHEN.isoformat(), "conversation_id": "one"},
        {"role": "assistant", "content": "Redis.", "conversation_id": "one"},
        {**ASKED, "created_at": WHEN.isoformat(), "conversation_id": "two"},
    ]
    for text in (lines(*rows), json.dumps(rows), json.dumps(rows, indent=1)):
        assert choose(file_of(text)).name == "reservoir"
        first, reply, second_question = (record.message for record in records(text))
        assert [message.conversation_id for message in (first, reply, second_question)] == [
            "one",
            "one",
            "two",
        ]
        assert (first.created_at, reply.created_at) == (WHEN, None)
        assert first.source == "reservoir"
        assert first.trace_id == reply.trace_id != second_question.trace_id


def test_conversations_of_a_foreign_list_stay_apart():
    parts = [{"type": "text", "text": "Which queue?"}]
    rows = [
        {"role": "user", "content": parts, "conversation_id": conversation_id}
        for conversation_id in "aba"
    ]
    assert choose(file_of(lines(*rows))).name == "openai"
    assert [record.message.conversation_id for record in records(lines(*rows))] == ["a", "b", "a"]


FOREIGN = {
    "a ChatGPT export": [
        {"conversation_id": "c", "mapping": {"n": {"message": {"role": "user", "content": "x"}}}}
    ],
    "OpenAI's messages": [ASKED],
    "a request body": [{"messages": [ASKED], "conversation_id": "c"}],
}


@pytest.mark.parametrize("rows", FOREIGN.values(), ids=FOREIGN)
def test_other_rows_are_not_taken_for_ours(rows):
    assert choose(file_of(json.dumps(rows))).name != "reservoir"


@each(
    "value",
    [
        "Tue, 03 Feb 2026 12:30:00 +0000",
        "03 Feb 2026 13:30:00 +0100",
        "2026-02-03 12:30:00 +0000 UTC",
        "2026-02-03 13:30:00.000000000 +0100 CET m=+12.345678901",
        "2026-02-03T12:30:00.000000000Z",
    ],
)
def test_a_time_is_read_as_mail_and_go_write_it(value):
    with count_unread_times() as unread:
        assert moment(value) == WHEN
    assert unread.count == 0


def test_times_that_are_there_and_cannot_be_read_are_counted():
    with count_unread_times() as unread:
        assert [moment(value) for value in ("soon", -5, None, "", 0)] == [None] * 5
        assert time_of({"created_at": "soon", "timestamp": SECONDS}) == WHEN
        assert time_of({"created_at": "soon"}) is None
        assert time_of({}) is None
    assert unread.count == 3
    moment("soon")  # nobody counts
    assert unread.count == 3
