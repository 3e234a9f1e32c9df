"""``reservoir ingest``: messages and files."""

import io
import json
import os
import uuid
import zipfile
from datetime import UTC, datetime

import pytest
from forked_session import ForkedProcess


def test_stdout_is_only_the_id_of_the_new_message(cli):
    result = cli("ingest", "--no-embed", stdin="one")
    assert (result.out, result.err) == ("1\n", "")
    assert cli("ingest", "--no-embed", stdin="two").out == "2\n"


def test_json_gives_the_stored_row(cli):
    document = cli("ingest", "--no-embed", "--json", "-p", "work", stdin="one").document
    assert list(document) == ["schema_version", "messages"]
    assert document["messages"] == cli.rows("-p", "work")
    assert document["messages"][0]["instance"] == "work"


def test_a_dash_reads_stdin(cli):
    cli("ingest", "-", "--no-embed", stdin="by dash")
    assert cli("view").out == "user: by dash\n"


def test_stdin_can_be_read_only_once(cli):
    result = cli("ingest", "-", "-", "--no-embed", stdin="x", code=2)
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert not cli.rows()


def test_a_zip_archive_from_a_pipe_is_refused(cli):
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w") as archive:  # not compressed: mostly text
            archive.writestr("conversations.json", json.dumps([{"title": "long " * 999}]))
        data = buffer.getvalue()
    result = cli("ingest", "--no-embed", stdin=data, code=1)
    assert result.err == (
        "error: stdin is a zip archive, not text\nhint: give its name: reservoir ingest FILE.zip\n"
    )
    assert not cli.rows()


def test_outer_blank_lines_are_removed_and_indentation_stays(cli):
    cli.say("\n \n    def f():\n\n        return 1\n\n\n")
    assert cli("view").out == "user:     def f():\n\n        return 1\n"


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n"])
def test_empty_stdin_is_a_note_not_an_error(cli, text):
    result = cli("ingest", "--no-embed", stdin=text)
    assert (result.out, result.err) == ("", "note: nothing to ingest\n")
    assert not cli.rows()


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_each_of_the_four_roles_is_stored(cli, role):
    cli.say("text", "--role", role)
    assert cli("view").out == f"{role}: text\n"


def test_an_unknown_role_names_the_four(cli):
    result = cli("ingest", "--role", "bot", stdin="x", code=2)
    assert result.out == ""
    for role in ("user", "assistant", "system", "tool"):
        assert role in result.err
    assert not cli.rows()


def test_a_user_message_gets_a_trace_of_its_own(cli):
    cli.say("one")
    cli.say("two")
    traces = {row["trace_id"] for row in cli.rows()}
    assert len(traces) == 2
    assert all(uuid.UUID(trace) for trace in traces)


def test_a_reply_takes_the_trace_of_the_newest_open_question(cli):
    cli.say("older question")
    cli.say("newer question")
    cli.say("answer to the newer", "--role", "assistant")
    cli.say("answer to the older", "--role", "assistant")
    older, newer, first, second = (row["trace_id"] for row in cli.rows())
    assert (first, second) == (newer, older)


def test_a_reply_without_an_open_question_gets_a_trace_of_its_own(cli):
    cli.say("question")
    cli.say("answer", "--role", "assistant")
    cli.say("another", "--role", "assistant")
    question, answer, own_trace = (row["trace_id"] for row in cli.rows())
    assert answer == question
    assert own_trace != question


def test_a_reply_does_not_answer_another_instance(cli):
    cli.say("question", "-i", "elsewhere")
    cli.say("answer", "--role", "assistant")
    traces = [row["trace_id"] for row in cli.rows()]
    assert traces[0] != traces[1]


def test_a_given_trace_links_a_reply_to_an_older_question(cli):
    cli.say("older", "--trace-id", "t-1")
    cli.say("newer", "--trace-id", "t-2")
    cli.say("answer", "--role", "assistant", "--trace-id", "t-1")
    assert [row["trace_id"] for row in cli.rows()] == ["t-1", "t-2", "t-1"]


def test_a_clock_set_back_cannot_put_a_reply_before_its_question(cli):
    cli.say("from the future", "--at", "2098-01-01T00:00:00Z")
    cli.say("answer", "--role", "assistant")
    question, answer = cli.rows()
    assert (question["role"], answer["role"]) == ("user", "assistant")
    assert answer["created_at"] >= question["created_at"]
    assert answer["trace_id"] == question["trace_id"]


def test_without_the_option_at_a_message_gets_the_current_time(cli):
    before = datetime.now(UTC).replace(microsecond=0)
    cli.say("one")
    stored = datetime.fromisoformat(cli.rows()[0]["created_at"])
    assert before <= stored <= datetime.now(UTC)


def test_a_future_time_in_one_instance_does_not_affect_another(cli):
    cli.say("from the future", "-i", "elsewhere", "--at", "2098-01-01T00:00:00Z")
    cli.say("now")
    assert cli.rows()[0]["created_at"] < "2098"


@pytest.mark.parametrize("time", ["yesterday-ish", "2026-13-01", "", "12"])
def test_an_invalid_time_is_wrong_usage(cli, time):
    cli("ingest", "--no-embed", "--at", time, stdin="x", code=2)
    assert not cli.rows()


# Bytes


def test_a_byte_order_mark_is_stripped(cli):
    result = cli("ingest", "--no-embed", stdin=b"\xef\xbb\xbfhello")
    assert result.err == ""
    assert cli("view").out == "user: hello\n"


@pytest.mark.parametrize(
    ("data", "count", "stored"),
    [
        (b"caf\xe9 is Latin-1", "1 invalid character", "caf\ufffd is Latin-1"),
        (b"gr\xfc\xdfe \xef\xbf\xbd", "2 invalid characters", "gr\ufffd\ufffde \ufffd"),
        (b"a NUL \x00 inside of a text", "1 invalid character", "a NUL \ufffd inside of a text"),
        (b"a surrogate \xed\xa0\x80 inside of a text", "3 invalid characters", None),
    ],
)
def test_invalid_utf8_is_replaced_with_a_note(cli, data, count, stored):
    result = cli("ingest", "--no-embed", stdin=data)
    assert result.out == "1\n"
    hint = "convert text in another encoding than UTF-8: iconv -f latin1 -t utf-8"
    assert result.err == f"note: {count} replaced by U+FFFD; {hint}\n"
    content = cli.rows()[0]["content"]
    assert "\ufffd" in content
    assert stored in (None, content)


def test_lone_surrogates_of_a_json_file_are_replaced_with_a_note(cli, tmp_path):
    file = tmp_path / "rows.jsonl"
    row = {"role": "user", "content": "half \ud83d of an emoji", "partition": "default"}
    row["created_at"] = "2026-05-09T14:23:01Z"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    result = cli("ingest", "--no-embed", str(file))
    assert cli.rows()[0]["content"] == "half \ufffd of an emoji"
    assert "replaced by U+FFFD in 1 message; convert text in another encoding" in result.err


def test_a_binary_file_fails_and_stores_nothing(cli, tmp_path):
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    for result in (
        cli("ingest", "--no-embed", str(file), code=1),
        cli("ingest", "--no-embed", stdin=file.read_bytes(), code=1),
    ):
        assert result.out == ""
        assert result.err.startswith("error: ")
        assert len(result.err.splitlines()) <= 2
    assert not cli.rows()


def test_text_of_every_unicode_plane_is_stored_exactly(cli):
    text = "naïve Ελληνικά 日本語 ไทย 👩‍👩‍👧 \u202e \u2028 e\u0301 \U000e0001."
    cli.say(text)
    assert cli("view").out == f"user: {text}\n"


def test_replacement_characters_in_the_input_are_not_reported(cli):
    result = cli("ingest", "--no-embed", stdin="an honest \ufffd in a text")
    assert (result.out, result.err) == ("1\n", "")


# Files


def test_a_file_is_imported_with_totals_on_stderr_and_nothing_on_stdout(cli, tmp_path):
    file = tmp_path / "chat.jsonl"
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    lines = [json.dumps(messages[0]), "{torn", json.dumps(messages[1]), json.dumps({"role": "bot"})]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = cli("ingest", "--no-embed", str(file))
    assert result.out == ""
    first, *reasons = result.err.splitlines()
    assert first == "imported 2, already there 0, skipped 2"
    assert len(reasons) == 2
    assert all(str(file) in reason for reason in reasons)
    assert "line 2" in reasons[0]
    assert "line 4" in reasons[1]


def test_importing_again_adds_only_what_is_new(cli, tmp_path):
    file = tmp_path / "chat.jsonl"
    line = json.dumps({"role": "user", "content": "said twice"})
    file.write_text(f"{line}\n{line}\n", encoding="utf-8")
    cli("ingest", "--no-embed", str(file))
    file.write_text(f'{line}\n{line}\n{{"role": "assistant", "content": "new"}}\n')
    result = cli("ingest", "--no-embed", str(file))
    assert result.err == "imported 1, already there 2, skipped 0\n"
    assert [row["content"] for row in cli.rows()] == ["said twice", "said twice", "new"]


def test_messages_that_earlier_commands_did_not_embed_are_named(cli, tmp_path):
    file, other = tmp_path / "chat.jsonl", tmp_path / "other.txt"
    rows = [json.dumps({"role": "user", "content": f"message {number}"}) for number in range(70)]
    file.write_text("\n".join(rows))
    other.write_text("one more")
    cli("ingest", "--no-embed", str(file), "-p", "work")
    assert "embed" not in cli("ingest", "--no-embed", str(file), "-p", "work").err
    again = cli("ingest", str(file), "-p", "work")
    assert again.err.endswith("note: 70 messages not embedded yet: reservoir embed\n")
    added = cli("ingest", str(other), "-p", "home")
    assert "note: also embedding 70 earlier messages; Ctrl-C keeps all messages" in added.err


def test_json_of_an_import_has_its_totals(cli, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("a note", encoding="utf-8")
    document = cli("ingest", "--no-embed", "--json", str(file)).document
    assert document["schema_version"] == 1
    assert (document["imported"], document["skipped"]) == (1, 0)


def test_a_file_without_valid_lines_names_each_line_and_has_a_hint(cli, tmp_path):
    file = tmp_path / "wrong.jsonl"
    file.write_text('{"role": "user", "content": "x"}\n' * 300)
    result = cli("ingest", "--format", "chatgpt", str(file), "--json", code=1)
    lines = result.err.splitlines()
    assert lines[0].endswith("skipped 300")
    assert "line 300: " in lines[300]
    assert lines[301].startswith("error: ")
    assert lines[302] == "hint: without --format the format is detected from the content"
    assert len(json.loads(result.out)["reasons"]) == 300


def test_a_missing_file_fails_before_anything_is_stored(cli, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("a note", encoding="utf-8")
    result = cli("ingest", "--no-embed", str(file), str(tmp_path / "absent.txt"), code=1)
    assert "absent.txt" in result.err
    assert not cli.rows()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"broken": ', "the document: not valid JSON in line 1"),
        ('\n{\n\n "broken": 1,\n "b"\n}\n', "the document: not valid JSON in line 6"),
        ('{"broken"\n{"a": 1}\n', "line 1: not valid JSON"),
        ('[{"a": 1', "entry 1: cut off or damaged, up to the end of the file"),
    ],
)
def test_invalid_json_is_reported_with_its_place(cli, tmp_path, text, error):
    file = tmp_path / "broken.json"
    file.write_text(text, encoding="utf-8")
    hint = "hint: --format text stores it as one message\n"
    assert cli("ingest", str(file), code=1).err == f"error: {file}, {error}\n{hint}"


def test_json_of_an_unknown_format_is_reported(cli, tmp_path):
    file = tmp_path / "other.json"
    for text in ('{"a": 1}', "[1, 2]", '{"a": 1}\n{"a": \n'):
        file.write_text(text, encoding="utf-8")
        error, hint = cli("ingest", str(file), code=1).err.splitlines()
        assert error.endswith("other.json has an unknown format")
        assert hint.startswith("hint: --format text stores it as one message; ")
        assert hint.endswith("reservoir ingest --help lists the formats")


def test_an_unknown_format_lists_the_known_ones(cli):
    result = cli("ingest", "--format", "morse", "-", stdin="x", code=2)
    assert "openai" in result.err


def test_json_of_view_can_be_imported_unchanged(cli, tmp_path):
    cli.say("question", "-i", "chat", "--at", "2026-05-09T14:23:01Z", "--trace-id", "t-1")
    cli.say("answer", "-i", "chat", "--role", "assistant")
    rows = cli.rows("-i", "chat")
    file = tmp_path / "rows.jsonl"
    file.write_text(cli("view", "0", "-i", "chat", "--jsonl").out, encoding="utf-8")
    os.remove(cli.db)
    cli("ingest", "--no-embed", str(file))
    assert cli.rows("-i", "chat") == rows


def test_stdin_can_hold_a_format_that_is_named(cli):
    line = '{"role": "assistant", "content": "hello"}\n'
    result = cli("ingest", "--format", "openai", "--no-embed", stdin=line)
    assert result.out == ""
    assert result.err == "imported 1, already there 0, skipped 0\n"
    assert cli("view").out == "assistant: hello\n"


# Without a model, and big


def test_without_a_model_a_message_is_stored_with_a_warning(cli):
    result = cli("ingest", stdin="still here")
    assert result.out == "1\n"
    assert result.err.startswith("warning: ")
    assert cli("view").out == "user: still here\n"


def test_megabytes_are_stored_exactly(cli):
    text = "".join(f"{number} lorem ipsum dolor\n" for number in range(50_000)).rstrip()
    assert len(text) > 1_150_000
    notes = cli("ingest", stdin=text).err
    assert "note: stdin is 1.2 MB, stored as one message; --format NAME reads a history" in notes
    assert "note" not in cli("ingest", stdin=text[:900_000], env={"RESERVOIR_DB": "other.db"}).err
    assert cli("view").out == f"user: {text}\n"


def start(cli, *arguments):
    return ForkedProcess(*arguments, env=cli.env, folder=cli.home.parent)


def test_two_imports_at_once_lose_nothing(cli, tmp_path):
    running = []
    for name in ("a", "b"):
        file = tmp_path / f"{name}.jsonl"
        rows = ({"role": "user", "content": f"{name} {number}"} for number in range(200))
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        running.append(start(cli, "ingest", "--no-embed", str(file)))
    assert [process.communicate(300) and process.returncode for process in running] == [0, 0]
    contents = {row["content"] for row in cli.rows()}
    assert contents == {f"{name} {number}" for name in "ab" for number in range(200)}


def test_many_concurrent_first_messages_create_one_store(cli):
    running = [start(cli, "ingest", "--no-embed") for _ in range(8)]
    outputs = {process.stdin.write(b"hello") and process.communicate(300)[0] for process in running}
    assert outputs == {f"{number}\n".encode() for number in range(1, 9)}
    assert [process.returncode for process in running] == [0] * 8
    assert [row["id"] for row in cli.rows()] == list(range(1, 9))


def test_a_time_more_than_a_day_ahead_is_kept_with_a_warning(cli, tmp_path):
    file = tmp_path / "rows.jsonl"
    row = {"role": "user", "content": "x", "created_at": "2200-01-01T00:00:00Z", "source": "s"}
    file.write_text(json.dumps({**row, "instance": "default", "source_id": "1"}) + "\n")
    warning = "warning: 1 message with a time more than a day ahead, kept as given\n"
    assert warning in cli("ingest", "--at", "2199-12-31", stdin="first").err
    native = ("ingest", str(file), "--format", "reservoir")
    assert warning in cli(*native).err
    assert warning not in cli(*native).err
    assert warning not in cli("ingest", stdin="now").err
    rows = cli("view", "0", "--json").document["messages"]
    assert [row["created_at"][:4] for row in rows[-2:]] == ["2199", "2200"]
    assert rows[0]["content"] == "now"


def test_handwritten_rows_keep_their_time_and_conversation(cli, tmp_path):
    rows = [
        {"role": role, "content": text, "created_at": moment, "conversation_id": "standup"}
        for role, text, moment in [
            ("user", "Who is on call?", "2026-02-03T09:00:00Z"),
            ("assistant", "Mara.", "2026-02-03T09:00:05Z"),
        ]
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    cli("ingest", "--no-embed", str(file))
    [standup] = cli("conversations", "--json").document["conversations"]
    assert (standup["id"], standup["messages"]) == ("standup", 2)
    assert standup["first"].startswith("2026-02-03T09:00:00")
    assert "imported 0, already there 2" in cli("ingest", "--no-embed", str(file)).err


def test_a_new_partition_beside_others_is_noted(cli, tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("The ferry to Oban leaves at nine.", encoding="utf-8")
    assert "new partition" not in cli("ingest", str(file), "-p", "life").err
    rehearsed = cli("ingest", str(file), "-p", "lief", "--dry-run").err
    assert "note: this would be a new partition lief\n" in rehearsed
    assert "new partition" not in cli("-q", "ingest", "-p", "quiet", stdin="said").err
    assert "note: new partition lief\n" in cli("ingest", str(file), "-p", "lief").err
    assert "new partition" not in cli("ingest", str(file), "-p", "lief").err
    assert "note: new partition typed\n" in cli("ingest", "-p", "typed", stdin="said").err
    assert "new partition" not in cli("ingest", "-p", "empty", stdin=" ").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--role", "bot"),
        ("--at", "never"),
        ("--format", "nope"),
        ("-p", "a\nb"),
        ("-i", "a\x1bb"),
        ("--trace-id", "a\x1bb"),
        ("--role", "user", "samples"),
    ],
)
def test_no_store_is_created_for_invalid_arguments(cli, tmp_path, arguments):
    store = tmp_path / "new" / "new.db"
    cli("--db", str(store), "ingest", "--no-embed", *arguments, stdin="x", code=2)
    assert not store.parent.exists()


def test_a_printed_trace_id_is_the_whole_one(cli):
    cli("ingest", "--no-embed", stdin="Which queue?")
    whole = cli.rows()[0]["trace_id"]
    shown = cli("view", "--timestamps").out.partition("[")[2].partition("]")[0]
    reply = cli(
        "ingest", "--no-embed", "--role", "assistant", "--trace-id", shown, stdin="The new one."
    )
    assert reply.err == f"note: {shown} is {whole}\n"
    cli("context", "And now?", "--save", "--trace-id", whole[:12])
    assert [row["trace_id"] for row in cli.rows()] == [whole] * 3


def test_a_printed_trace_id_with_two_meanings_is_refused(cli):
    traces = [f"40565047-{number}000-4000-8000-000000000000" for number in (1, 2)]
    for trace in traces:
        cli.say("question", "--trace-id", trace)
    reply = ("ingest", "--no-embed", "--role", "assistant", "--trace-id")
    assert "40565047 is not unique" in cli(*reply, "40565047", stdin="answer", code=2).err
    cli(*reply, "40565047-2", stdin="answer")
    assert [row["trace_id"] for row in cli.rows()] == [*traces, traces[1]]


def test_a_numbered_trace_is_not_another_that_begins_like_it(cli):
    for trace in ("session-10", "session-1", "s", "session-1", "ticket-10", "ticket-1"):
        cli("ingest", "--no-embed", "--trace-id", trace, stdin=trace)
    assert [row["trace_id"] for row in cli.rows()] == [row["content"] for row in cli.rows()]


def test_one_end_of_input_ends_a_typed_message(cli):
    typed = cli.talk("ingest", "--no-embed", answers=[("Ctrl-D", "one\ntwo\n\x04")])
    assert typed.code == 0
    assert cli.rows()[0]["content"] == "one\ntwo"


def test_the_first_file_imported_on_a_terminal_says_the_next_step(cli, tmp_path):
    files = [tmp_path / name for name in ("garden.md", "gate.md")]
    for file in files:
        file.write_text(f"# The {file.stem}\n")
    piped = cli("ingest", "--no-embed", "--dry-run", str(files[0]))
    first, second = (cli.on_terminal("ingest", "--no-embed", str(file)) for file in files)
    hints = ["next: reservoir context" in shown.err for shown in (piped, first, second)]
    assert hints == [False, True, False]


def test_the_next_step_names_the_partition_that_was_given(cli, tmp_path):
    file = tmp_path / "garden.md"
    file.write_text("# The garden\n")
    shown = cli.on_terminal("ingest", "--no-embed", "-p", "two words", str(file))
    assert "next: reservoir context \"your question\" -p 'two words'\n" in shown.err
