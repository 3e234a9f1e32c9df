import dataclasses
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from behind import behind
from builders import NOW

from reservoir_cli.errors import StoreError, StoreLockedError, UsageError
from reservoir_cli.messages import Conversation, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.factory import open_store
from reservoir_cli.storage.records import Filter, Passage
from reservoir_cli.tokens import load_counter

HOUR = timedelta(hours=1)
HERE = Scope("p", "i")
EVERYWHERE = Scope(None)
COUNTER = load_counter("approximate")

Adding = Callable[..., list[StoredMessage | None]]


def run(script: str, *arguments: str, unprivileged: bool = False) -> subprocess.CompletedProcess:
    """Run Python in a process of its own; unprivileged, file modes hold even for root."""
    command = [sys.executable, "-c", script, *arguments]
    if unprivileged and os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def contents(messages: Sequence[StoredMessage | None]) -> list[str]:
    return [each.content for each in messages if each is not None]


def passage(message: StoredMessage | None, *vector: float) -> Passage:
    assert message is not None
    return Passage(message.id, 0, 0, len(message.content), np.array(vector, np.float32))


def embed(
    store: Store, messages: Sequence[StoredMessage | None], *passages: Passage, model: str = "m"
) -> None:
    by_message = {
        message.key: [each for each in passages if each.message_id == message.id]
        for message in messages
        if message is not None
    }
    store.add_passages(model, by_message, link_threshold=1.0)


# Adding


def test_a_message_comes_back_as_it_was_given(store: Store, add: Adding) -> None:
    given = Message(
        "assistant",
        "naïve 北京 😀\r\n\ttail ",
        created_at=datetime(2026, 5, 9, 14, 23, 1, 234_000, tzinfo=UTC),
        trace_id="trace",
        name="bot",
        tool_calls=(ToolCall("call_1", "f", '{"q": "ü"}'), ToolCall("", "g", "{torn")),
        tool_call_id="call_0",
        source="tool",
        source_id="s-1",
        conversation_id="conversation",
    )
    [stored] = add(given)
    assert stored is not None
    for each in dataclasses.fields(given):
        assert getattr(stored, each.name) == getattr(given, each.name), each.name
    assert (stored.partition, stored.instance) == ("p", "i")
    assert stored.tokens == COUNTER.count(given.content + '\n[call f {"q": "ü"}]\n[call g {torn]')
    assert stored.counter == f"{COUNTER.name} {COUNTER.version}"
    assert store.by_id([stored.id], HERE) == [stored]


def test_what_is_stored_is_there_when_the_file_is_opened_again(store: Store, add: Adding) -> None:
    [stored] = add(Message("user", "hello"))
    store.close()
    with closing(open_store(store.location)) as again:
        assert again.last(HERE, 0) == [stored]


def test_what_is_not_given_is_filled_in(add: Adding) -> None:
    one, two = add(Message("user", "a"), Message("user", "a"))
    assert one is not None
    assert two is not None
    assert one.trace_id != two.trace_id
    assert one.source_id != two.source_id
    assert one.source == "python"


def test_a_source_id_is_stored_once_in_each_place(store: Store, add: Adding) -> None:
    message = Message("user", "hello", source="tool", source_id="1")
    assert contents(add(message, message)) == ["hello"]
    assert add(message) == [None]
    assert add(dataclasses.replace(message, content="changed")) == [None]
    assert contents(add(message, instance="j")) == ["hello"]
    assert contents(add(message, partition="q")) == ["hello"]
    assert contents(add(dataclasses.replace(message, source="other"))) == ["hello"]
    assert store.count_unembedded(EVERYWHERE) == 4
    assert len(store.keyword("hello", EVERYWHERE, 100)[0]) == 4


def test_ids_are_not_used_again(store: Store, add: Adding) -> None:
    [first] = add(Message("user", "gone"))
    assert first is not None
    _delete(store, first)
    [second] = add(Message("user", "stays"))
    assert second is not None
    assert second.id > first.id


@pytest.mark.parametrize("newest", [NOW - HOUR, NOW + HOUR, NOW + 99 * HOUR])
def test_a_message_without_a_time_gets_the_time_that_it_is(add: Adding, newest: datetime) -> None:
    add(Message("user", "before", created_at=newest), Message("user", "with it"))
    for role in ("user", "assistant", "system"):
        [stored] = add(Message(role, "hello"), now=NOW)
        assert stored is not None
        assert stored.created_at == NOW


@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_reply_is_pushed_behind_its_own_question_and_no_further(
    add: Adding, pair: bool, at_once: bool
) -> None:
    trace = None if pair else "t"
    said = [
        Message("user", "question", created_at=NOW + HOUR, trace_id=trace),
        Message("assistant", "reply", trace_id=trace),
        Message("assistant", "again", trace_id="t" if trace else None),
    ]
    if at_once:
        question, reply, again = add(*said, pair=pair)
    else:
        question, reply, again = (stored for each in said for stored in add(each, pair=pair))
    assert question is not None
    assert reply is not None
    assert again is not None
    assert reply.trace_id == question.trace_id
    assert reply.created_at == question.created_at + timedelta(milliseconds=1)
    assert again.created_at == (NOW if pair else reply.created_at)  # nothing is open any more
    [late] = add(Message("assistant", "late", trace_id=question.trace_id), now=NOW + 2 * HOUR)
    assert late is not None
    assert late.created_at == NOW + 2 * HOUR


@pytest.mark.parametrize("pair", [True, False])
def test_what_is_said_at_once_stays_in_its_order_and_is_of_now(
    store: Store, add: Adding, pair: bool
) -> None:
    roles = ("user", "assistant") * 3
    said = [
        Message(role, f"{number}", trace_id=None if pair else f"t{number // 2}")
        for number, role in enumerate(roles)
    ]
    add(*said, pair=pair)
    found = store.last(HERE, 0)
    assert [each.content for each in found] == [each.content for each in said]
    assert {each.created_at for each in found} == {NOW}


def test_a_reply_answers_a_question_of_today_rather_than_one_far_ahead(add: Adding) -> None:
    add(Message("user", "ahead", created_at=NOW + 25 * HOUR, trace_id="ahead"))
    add(Message("user", "now", trace_id="now"))
    replies = [add(Message("assistant", "yes"), pair=True)[0] for _ in range(3)]
    traces = [reply.trace_id for reply in replies if reply]
    assert traces[:2] == ["now", "ahead"]
    assert traces[2] not in ("now", "ahead")


# Pairing


def test_a_reply_takes_the_trace_of_the_newest_open_question(add: Adding) -> None:
    [one] = add(Message("user", "one"))
    [two] = add(Message("user", "two"))
    traces = [_trace(add(Message("assistant", "reply"), pair=True)) for _ in range(3)]
    assert one is not None
    assert two is not None
    assert traces[:2] == [two.trace_id, one.trace_id]
    assert traces[2] not in (one.trace_id, two.trace_id)


PAIRED_ALONE = [
    ("without pair", Message("assistant", "reply"), {}),
    ("with a trace of its own", Message("assistant", "reply", trace_id="own"), {"pair": True}),
    ("as another role", Message("system", "reply"), {"pair": True}),
    ("in another instance", Message("assistant", "reply"), {"pair": True, "instance": "j"}),
    ("in another partition", Message("assistant", "reply"), {"pair": True, "partition": "q"}),
]


@pytest.mark.parametrize(
    ("message", "how"), [row[1:] for row in PAIRED_ALONE], ids=[row[0] for row in PAIRED_ALONE]
)
def test_a_message_does_not_answer_a_question(add: Adding, message: Message, how: dict) -> None:
    question = _trace(add(Message("user", "question")))
    stored = _trace(add(message, **how))
    assert stored == message.trace_id if message.trace_id else stored != question


def test_a_question_and_its_reply_in_one_call_are_tied(add: Adding) -> None:
    question, reply = add(Message("user", "q"), Message("assistant", "r"), pair=True)
    assert question is not None
    assert reply is not None
    assert reply.trace_id == question.trace_id


def test_a_question_answered_in_another_instance_is_answered(add: Adding) -> None:
    question = _trace(add(Message("user", "q")))
    add(Message("assistant", "r", trace_id=question), instance="j")
    assert _trace(add(Message("assistant", "late"), pair=True)) != question


# Text that is hard to hold


@pytest.mark.parametrize(
    ("content", "kept"),
    [("a\0b", "a\ufffdb"), ("lone \ud800", "lone \ufffd"), ("\ud83d\ude00", "😀"), ("", "")],
)
def test_text_that_sqlite_cannot_hold_is_cleaned(
    store: Store, add: Adding, content: str, kept: str
) -> None:
    assert contents(add(Message("user", content))) == [kept]
    assert contents(store.last(HERE, 1)) == [kept]


@pytest.mark.parametrize(
    "field", ["name", "tool_call_id", "trace_id", "conversation_id", "source", "source_id"]
)
def test_a_field_that_sqlite_cannot_hold_is_cleaned(store: Store, add: Adding, field: str) -> None:
    add(Message("tool", "hello", **{field: "a\ud800"}))
    assert getattr(store.last(HERE, 1)[0], field) == "a\ufffd"


def test_tool_calls_that_sqlite_cannot_hold_are_cleaned(store: Store, add: Adding) -> None:
    add(Message("assistant", "", tool_calls=(ToolCall("c\ud800", "f\ud800", '"\ud800 \0"'),)))
    [call] = store.last(HERE, 1)[0].tool_calls
    assert (call.id, call.name) == ("c\ufffd", "f\ufffd")
    assert "\ud800" not in call.arguments


def test_a_place_named_by_bytes_that_are_no_text_is_an_error_of_ours(add: Adding) -> None:
    with pytest.raises((UsageError, StoreError)):
        add(Message("user", "hello"), partition="caf\udce9")


def test_a_message_of_five_megabytes_is_kept_and_found(store: Store, add: Adding) -> None:
    text = "lorem ipsum dolor " * 290_000 + "needle"
    [stored] = add(Message("user", text))
    assert stored is not None
    assert store.by_id([stored.id], HERE)[0].content == text
    assert [number for number, _ in store.keyword("needle", HERE, 1)[0]] == [stored.id]


# Transactions


def test_a_write_that_fails_leaves_nothing(store: Store, add: Adding) -> None:
    def failing() -> None:
        with store.write():
            add(Message("user", "half"))
            store.add_conversations(HERE, [Conversation("c", "title")])
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError):
        failing()
    assert store.last(EVERYWHERE, 0) == []
    assert store.count_unembedded(EVERYWHERE) == 0
    assert store.keyword("half", EVERYWHERE, 1)[0] == []
    assert contents(add(Message("user", "whole"))) == ["whole"]


def test_a_snapshot_is_of_one_moment(store: Store, add: Adding) -> None:
    add(Message("user", "before"))
    with closing(open_store(store.location)) as reader, reader.snapshot():
        assert contents(reader.last(HERE, 0)) == ["before"]
        add(Message("user", "after"))
        assert contents(reader.last(HERE, 0)) == ["before"]
    assert contents(store.last(HERE, 0)) == ["before", "after"]


def test_threads_that_share_a_store_lose_nothing(store: Store, add: Adding) -> None:
    def work(number: int) -> None:
        for each in range(25):
            add(Message("user", f"{number}-{each}"))
            store.last(HERE, 5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(contents(store.last(HERE, 0)))) == 100


INSERT = """
import sys
from datetime import UTC, datetime
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.factory import open_store
from reservoir_cli.tokens import load_counter
path, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, counter = open_store(path), load_counter("approximate")
for number in range(count):
    message = Message("user", f"{who}-{number}")
    store.add(Scope("p", "i"), [message], counter=counter, now=datetime.now(UTC))
store.close()
"""


def _together(count: int, path: Path, inserts: int) -> list[str]:
    command = [sys.executable, "-c", INSERT, str(path)]
    running = [
        subprocess.Popen([*command, str(who), str(inserts)], stderr=subprocess.PIPE, text=True)
        for who in range(count)
    ]
    said = [process.communicate(timeout=120)[1] for process in running]
    return [text for process, text in zip(running, said, strict=True) if process.returncode]


def test_two_processes_with_two_hundred_inserts_each_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert _together(2, path, 200) == []
    with closing(open_store(str(path))) as store:
        stored = store.last(HERE, 0)
    wanted = {f"{who}-{number}" for who in range(2) for number in range(200)}
    assert {each.content for each in stored} == wanted
    assert len(stored) == 400


def test_twelve_processes_may_open_one_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "new.db"
    assert _together(12, path, 1) == []
    with closing(open_store(str(path))) as store:
        assert len(store.last(HERE, 0)) == 12


def test_a_locked_store_is_an_error_of_its_own_and_works_afterwards(
    store: Store, add: Adding
) -> None:
    add(Message("user", "before"))
    with closing(open_store(store.location, patience=0.01)) as hasty:
        with store.write():
            add(Message("user", "meanwhile"))
            with pytest.raises(StoreLockedError) as caught:
                hasty.add(HERE, [Message("user", "x")], counter=COUNTER, now=NOW)
            with pytest.raises(StoreLockedError), hasty.write(wait=0):
                hasty.add(HERE, [Message("user", "x")], counter=COUNTER, now=NOW)
            assert contents(hasty.last(HERE, 0)) == ["before"]  # readers do not wait
        assert caught.value.exit_code == 4
        assert caught.value.hint
        hasty.add(HERE, [Message("user", "after")], counter=COUNTER, now=NOW)
    assert contents(store.last(HERE, 0)) == ["before", "meanwhile", "after"]


def test_a_new_file_that_another_process_holds_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreLockedError):
            open_store(str(path), patience=0.01)
        other.execute("ROLLBACK")
    open_store(str(path)).close()


# Opening

OPEN = """
import sys
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.storage.factory import open_store
try:
    store = open_store(sys.argv[1], create="create" in sys.argv)
    print(*(each.content for each in store.last(Scope(None), 0)))
    print(*store.keyword("kept", Scope(None), 9)[0])
    if "write" in sys.argv:
        store.add_conversations(Scope("p", "i"), [])
except ReservoirError as error:
    sys.exit(f"{error.exit_code} {error.message} | {error.hint}")
"""


def test_a_place_of_no_known_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="mysql://"):
        open_store("mysql://localhost/reservoir")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        open_store(str(tmp_path))


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot make the store"):
        open_store(str(tmp_path / "file" / "new.db"))


def test_the_home_of_an_unknown_user_is_refused() -> None:
    with pytest.raises(StoreError):
        open_store("~no-such-user-here/reservoir.db")


@pytest.mark.parametrize("name", ["what?.db", "50%20#1.db", "ü 北.db", "file:x.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    open_store(str(tmp_path / name)).close()
    assert (tmp_path / name).is_file()


def test_a_tilde_is_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store("~/own.db").close()
    assert (tmp_path / "own.db").is_file()


def test_reading_a_store_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "sub" / "new.db"), create=False)) as store:
        assert store.last(EVERYWHERE, 0) == []
        assert store.places() == []
        assert store.keyword("word", HERE, 5) == ([], True)
    assert list(tmp_path.iterdir()) == []


READ_ONLY = [
    # file, folder
    (0o400, 0o700),
    (0o400, 0o500),
    (0o600, 0o500),
]


@pytest.mark.parametrize(("file_mode", "folder_mode"), READ_ONLY)
def test_a_store_that_cannot_be_written_can_be_read(
    tmp_path: Path, file_mode: int, folder_mode: int
) -> None:
    path = _closed_store(tmp_path / "folder" / "store.db")
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    done = run(OPEN, str(path), unprivileged=True)
    path.parent.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kept\n")
    assert "1" in done.stdout.splitlines()[1]


def test_writing_to_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    path = _closed_store(tmp_path / "folder" / "store.db")
    path.chmod(0o400)
    path.parent.chmod(0o500)
    done = run(OPEN, str(path), "write", unprivileged=True)
    path.parent.chmod(0o700)
    assert done.returncode == 1
    assert done.stderr.startswith("3 the store")
    assert "cannot be written to" in done.stderr


@pytest.mark.parametrize("mode", [0o000, 0o500], ids=["closed", "read-only"])
@pytest.mark.parametrize("create", ["create", "read"])
def test_a_folder_that_lets_nobody_in_is_no_traceback(
    tmp_path: Path, mode: int, create: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    done = run(OPEN, str(folder / "new.db"), create, unprivileged=True)
    folder.chmod(0o700)
    assert "Traceback" not in done.stderr
    if create == "create":
        assert done.stderr.startswith("3 cannot ")


def test_a_file_that_lets_nobody_in_is_no_traceback(tmp_path: Path) -> None:
    path = _closed_store(tmp_path / "store.db")
    path.chmod(0o000)
    done = run(OPEN, str(path), unprivileged=True)
    assert done.stderr.startswith("3 cannot open the store")


# Reading


def test_the_last_messages_are_in_order_of_time_then_id(store: Store, add: Adding) -> None:
    add(
        Message("user", "late", created_at=NOW),
        Message("user", "early", created_at=NOW - HOUR),
        Message("user", "late too", created_at=NOW),
    )
    assert contents(store.last(HERE, 0)) == ["early", "late", "late too"]
    assert contents(store.last(HERE, 2)) == ["late", "late too"]
    assert contents(store.last(HERE, 99)) == ["early", "late", "late too"]


FILTERS = [
    (Filter(role="assistant"), ["b"]),
    (Filter(trace_id="t"), ["a", "b"]),
    (Filter(conversation_id="k"), ["c"]),
    (Filter(since=NOW), ["b", "c"]),
    (Filter(until=NOW), ["a", "b"]),
    (Filter(since=NOW, until=NOW), ["b"]),
    (Filter(since=NOW + HOUR / 3_600_000), ["c"]),
    (Filter(role="user", trace_id="t"), ["a"]),
    (Filter(role="tool"), []),
]


@pytest.mark.parametrize(("where", "found"), FILTERS, ids=[str(row[0]) for row in FILTERS])
def test_a_filter_keeps_what_it_names(
    store: Store, add: Adding, where: Filter, found: list[str]
) -> None:
    add(
        Message("user", "a", created_at=NOW - HOUR, trace_id="t"),
        Message("assistant", "b", created_at=NOW, trace_id="t"),
        Message("user", "c", created_at=NOW + HOUR, conversation_id="k"),
    )
    assert contents(store.last(HERE, 0, where)) == found


def test_messages_are_found_by_id_however_many_are_asked_for(store: Store, add: Adding) -> None:
    ids = _ids(add(*(Message("user", str(number)) for number in range(3))))
    asked = [ids[2], ids[0], ids[0], 77, *range(1_000, 40_000)]
    assert contents(store.by_id(asked, HERE)) == ["0", "2"]
    assert store.by_id([], HERE) == []


SCOPES = [
    (Scope("p", "i"), {"p/i"}),
    (Scope("p", "j"), {"p/j"}),
    (Scope("p"), {"p/i", "p/j"}),
    (Scope("q", "i"), {"q/i"}),
    (Scope("i", "p"), set()),
    (Scope("pi"), set()),
    (Scope("P"), set()),
    (Scope(None), {"p/i", "p/j", "q/i"}),
]


@pytest.mark.parametrize(("scope", "seen"), SCOPES, ids=[str(row[0]) for row in SCOPES])
def test_no_read_leaves_its_scope(store: Store, add: Adding, scope: Scope, seen: set[str]) -> None:
    stored = []
    for partition, instance in (("p", "i"), ("p", "j"), ("q", "i")):
        stored += add(
            Message("assistant", "word", trace_id="t", tool_calls=(ToolCall("c", "f", ""),)),
            Message("tool", "word", trace_id="u", tool_call_id="c"),
            partition=partition,
            instance=instance,
        )
    ids = [each.id for each in stored if each is not None]
    store.activate_model("m", "model")
    embed(store, stored[:1], passage(stored[0], 1, 0))
    at = {each.id: f"{each.partition}/{each.instance}" for each in stored if each is not None}
    counted = sum(place in seen for place in at.values())

    assert {at[each.id] for each in store.last(scope, 0)} == seen
    assert {at[each.id] for each in store.by_id(ids, scope)} == seen
    assert {at[each.id] for each in store.with_partners(ids, scope)} == seen
    assert {at[each.id] for each in store.with_partners(ids[:1], scope)} <= seen
    assert {at[number] for number, _ in store.keyword("word", scope, 99)[0]} == seen
    assert {at[each.id] for each in store.unembedded(99, scope)} == seen
    assert store.count_unembedded(scope) == counted - ("p/i" in seen)
    found = store.candidates(scope, "i", "word", np.array([1, 0], np.float32))
    assert {at[number] for number in found.ids.tolist()} == seen
    assert np.isfinite(found.cosine).sum() == ("p/i" in seen)


def test_places_are_the_fullest_first(store: Store, add: Adding) -> None:
    add(Message("user", "1"))
    add(Message("user", "2"), Message("user", "3"), partition="q", instance="j")
    assert store.places() == [("q", "j", 2), ("p", "i", 1)]


def test_the_newest_instance_is_the_one_with_the_newest_message(store: Store, add: Adding) -> None:
    assert store.newest_instance("p") is None
    add(Message("user", "1", created_at=NOW))
    add(Message("user", "2", created_at=NOW - HOUR), instance="j")
    add(Message("user", "3", created_at=NOW + HOUR), partition="q", instance="k")
    assert store.newest_instance("p") == "i"


# What belongs together


def test_the_partners_of_a_message_are_its_trace(store: Store, add: Adding) -> None:
    stored = add(
        Message("user", "q1", trace_id="1"),
        Message("user", "q2", trace_id="2"),
        Message("assistant", "r1", trace_id="1"),
    )
    assert contents(store.with_partners(_ids(stored[:1]), HERE)) == ["q1", "r1"]
    assert contents(store.with_partners(_ids(stored[2:]), HERE)) == ["q1", "r1"]


def _tool_use(conversation: str, minute: int) -> list[Message]:
    at = NOW + timedelta(minutes=minute)
    return [
        Message("user", f"{conversation} question", at, conversation_id=conversation),
        Message(
            "assistant",
            f"{conversation} call",
            at,
            tool_calls=(ToolCall("call_1", "f", ""), ToolCall("call_2", "f", "")),
            conversation_id=conversation,
        ),
        *(
            Message(
                "tool",
                f"{conversation} result {number}",
                at + timedelta(seconds=number),
                tool_call_id=f"call_{number}",
                conversation_id=conversation,
            )
            for number in (1, 2)
        ),
    ]


@pytest.mark.parametrize("asked", ["call", "result 1", "result 2"])
def test_a_call_and_its_results_find_each_other(store: Store, add: Adding, asked: str) -> None:
    stored = add(*_tool_use("a", 0))
    start = [each for each in stored if each and each.content == f"a {asked}"]
    assert contents(store.with_partners(_ids(start), HERE)) == [
        "a call",
        "a result 1",
        "a result 2",
    ]


@pytest.mark.parametrize("asked", ["a call", "a result 1", "b call", "b result 2"])
@pytest.mark.parametrize("apart", [0, 10], ids=["at the same time", "one after the other"])
def test_conversations_that_use_the_same_call_id_stay_apart(
    store: Store, add: Adding, asked: str, apart: int
) -> None:
    stored = add(*_tool_use("a", 0), *_tool_use("b", apart))
    start = [each for each in stored if each and each.content == asked]
    own = asked[0]
    assert contents(store.with_partners(_ids(start), HERE)) == [
        f"{own} call",
        f"{own} result 1",
        f"{own} result 2",
    ]


def test_a_call_id_used_again_in_one_conversation_means_the_nearest_call(
    store: Store, add: Adding
) -> None:
    stored = []
    for minute in (0, 10):
        at = NOW + timedelta(minutes=minute)
        stored += add(
            Message("assistant", f"call {minute}", at, tool_calls=(ToolCall("call_0", "f", ""),)),
            Message("tool", f"result {minute}", at + timedelta(seconds=1), tool_call_id="call_0"),
        )
    for first in (0, 2):
        minute = 5 * first
        for start in (stored[first], stored[first + 1]):
            assert contents(store.with_partners(_ids([start]), HERE)) == [
                f"call {minute}",
                f"result {minute}",
            ]


# Vectors


def test_a_message_is_pending_until_it_has_its_vectors(store: Store, add: Adding) -> None:
    one, two, three = add(
        Message("user", "one", created_at=NOW),
        Message("user", "two", created_at=NOW - HOUR),
        Message("user", "three", created_at=NOW + HOUR),
    )
    assert contents(store.unembedded(9, HERE)) == ["one", "two", "three"]
    assert contents(store.unembedded(2, HERE, newest=True)) == ["three", "two"]
    assert store.count_unembedded(HERE) == 3
    embed(store, [one, two], passage(one, 1, 0))  # two has no text to embed
    assert contents(store.unembedded(9, HERE)) == ["three"]
    embed(store, [three], passage(three, 0, 1))
    assert store.count_unembedded(EVERYWHERE) == 0


def test_the_active_model_is_the_last_one_made_active(store: Store) -> None:
    assert store.active_model() is None
    store.activate_model("id-1", "one")
    store.activate_model("id-2", "two")
    assert store.active_model() == ("id-2", "two")


def test_a_message_forgotten_while_it_was_embedded_gets_no_vector(
    store: Store, add: Adding
) -> None:
    gone, kept = add(Message("user", "gone"), Message("user", "kept"))
    assert contents(store.unembedded(9, HERE)) == ["gone", "kept"]
    _delete(store, gone)
    store.activate_model("m", "model")
    embed(store, [gone, kept], passage(gone, 1, 0), passage(kept, 0, 1))
    rows = behind(store.location, "SELECT message_id FROM embeddings")
    assert rows == [(kept.id,)]  # type: ignore[union-attr]
    assert store.count_unembedded(EVERYWHERE) == 0


def test_candidates_carry_time_tokens_and_scores_in_order_of_time(
    store: Store, add: Adding
) -> None:
    late, early, words = add(
        Message("user", "late", created_at=NOW),
        Message("user", "early", created_at=NOW - HOUR),
        Message("user", "redis redis", created_at=NOW - 2 * HOUR),
    )
    [other] = add(Message("user", "other", created_at=NOW + HOUR), instance="j")
    store.activate_model("m", "model")
    best = passage(late, 0.6, 0.8)._replace(number=1)
    passages = [passage(late, 0, -1), best, passage(early, 0, 1), passage(other, 1, 0)]
    embed(store, [late, early, other], *passages)

    found = store.candidates(Scope("p"), "i", "why did we drop Redis?", _vector(1, 0))
    stored = [words, early, late, other]
    assert found.ids.tolist() == _ids(stored)
    assert found.created_at.tolist() == [
        int(each.created_at.timestamp() * 1000) for each in stored if each
    ]
    assert found.tokens.tolist() == [each.tokens for each in stored if each]
    assert found.own.tolist() == [True, True, True, False]
    np.testing.assert_allclose(found.cosine, [np.nan, 0, 0.6, 1], atol=1e-6)
    [posting] = found.postings
    assert (posting.places.tolist(), posting.counts.tolist()) == ([0], [2])
    assert found.terms.tolist() == [2, 1, 1, 1]
    assert not found.asks.any()


def test_candidates_without_a_vector_or_words_are_without_scores(store: Store, add: Adding) -> None:
    assert len(store.candidates(HERE, None, "", None).ids) == 0
    add(Message("user", "hello"))
    found = store.candidates(HERE, None, "?!", None)
    assert np.isnan(found.cosine).all()
    assert found.postings == ()
    assert not found.own.any()


def test_titles_of_conversations_are_renewed_and_not_lost(store: Store) -> None:
    store.add_conversations(HERE, [Conversation("c", "old title", "tool", project="p", branch="b")])
    store.add_conversations(HERE, [Conversation("c", "new title", None, "gpt-4")])
    store.add_conversations(HERE, [Conversation("c")])
    rows = behind(store.location, "SELECT * FROM conversations")
    assert rows == [("p", "i", "c", "new title", "tool", "gpt-4", "p", "b")]


def _vector(*values: float) -> "np.ndarray":
    return np.array(values, np.float32)


def _ids(messages: Sequence[StoredMessage | None]) -> list[int]:
    return [each.id for each in messages if each is not None]


def _trace(messages: list[StoredMessage | None]) -> str:
    [stored] = messages
    assert stored is not None
    return stored.trace_id


def _delete(store: Store, message: StoredMessage | None) -> None:
    """Take a message out behind the store's back, as another process would."""
    assert message is not None
    behind(store.location, "DELETE FROM messages WHERE id = ?", [message.id])


def _closed_store(path: Path) -> Path:
    """A store with one message, in WAL mode, that nobody has open."""
    with closing(open_store(str(path))) as store:
        store.add(HERE, [Message("user", "kept")], counter=COUNTER, now=NOW)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    return path
