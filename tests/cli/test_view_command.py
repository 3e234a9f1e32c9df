import json
import re

import pytest
from builders import full_width
from contract import ROW
from each import each

AT = "2026-05-09T14:23:01Z"
TRACE = "1b2c3d4e-0000-4000-8000-000000000000"


@pytest.fixture
def filled_cli(cli):
    cli.say("first line\n  second line", "--at", AT, "--trace-id", TRACE)
    cli.say("an answer", "--role", "assistant", "--at", "2026-05-09T14:23:02Z")
    return cli


@each(
    ("options", "shown"),
    [
        ((), "user: first line\n  second line\nassistant: an answer\n"),
        (("--oneline",), "user: first line\\n  second line\nassistant: an answer\n"),
        (
            ("1", "--timestamps", "--oneline", "--role", "user"),
            "2026-05-09T14:23:01+00:00 [1b2c3d4e] user: first line\\n  second line\n",
        ),
    ],
)
def test_piped_messages_are_role_and_content_and_keep_their_newlines(filled_cli, options, shown):
    result = filled_cli("view", *options)
    assert (result.out, result.err) == (shown, "")


def test_timestamps_puts_utc_time_and_short_trace_before_each_message(filled_cli):
    shown = filled_cli("view", "--timestamps").out
    assert shown.startswith(
        "2026-05-09T14:23:01+00:00 [1b2c3d4e] user: first line\n  second line\n"
    )
    form = r"2026-05-09T14:23:02\+00:00 \[[0-9a-f]{8}\] assistant: an answer\n"
    assert re.search(form, shown)


def test_ten_are_shown_unless_a_count_is_given_and_zero_shows_all(cli):
    cli.store(*({"content": f"message {number}"} for number in range(12)))
    lines = [f"user: message {number}" for number in range(12)]
    assert cli("view").out.splitlines() == lines[2:]
    assert cli("view", "3").out.splitlines() == lines[9:]
    assert cli("view", "0").out.splitlines() == lines


def test_messages_are_ordered_by_time_then_id(cli):
    cli.say("later", "--at", "2026-03-01T00:00:00Z")
    cli.say("same time, second id", "--at", "2026-02-01T00:00:00Z")
    cli.say("same time, third id", "--at", "2026-02-01T00:00:00Z")
    contents = [row["content"] for row in cli.rows()]
    assert contents == ["same time, second id", "same time, third id", "later"]


def test_json_is_one_document_with_every_field_of_a_row(filled_cli):
    document = filled_cli("view", "--json").document
    assert list(document) == ["schema_version", "messages"]
    assert document["schema_version"] == 1
    first, second = document["messages"]
    assert tuple(first) == ROW
    assert (first["id"], first["trace_id"]) == (1, TRACE)
    assert (first["partition"], first["instance"], first["source"]) == ("default", "default", "cli")
    assert first["created_at"] == "2026-05-09T14:23:01+00:00"
    assert first["tokens"] > 0
    assert second["role"] == "assistant"


def test_jsonl_is_one_row_a_line_without_an_envelope(filled_cli):
    shown = filled_cli("view", "--jsonl").out
    rows = [json.loads(line) for line in shown.splitlines()]
    assert rows == filled_cli.rows()
    assert shown.count("\n") == 2


def test_json_and_jsonl_together_are_wrong_usage(cli):
    assert "--jsonl" in cli("view", "--json", "--jsonl", code=2).err


def test_without_a_store_view_prints_nothing_and_creates_none(cli):
    result = cli("view")
    assert (result.out, result.err) == (
        "",
        "note: nothing is stored yet: reservoir init, or reservoir ingest FILE\n",
    )
    assert not cli.db.exists()


def test_an_empty_result_is_zero_bytes_of_jsonl_and_one_document_of_json(cli):
    assert cli("view", "--jsonl").out == ""
    assert cli("view", "--json").document == {"schema_version": 1, "messages": []}


def test_an_empty_view_says_where_messages_are(cli):
    cli.store(*({"content": f"m{number}", "instance": "chatgpt"} for number in range(812)))
    result = cli("view", "-i", "claude")
    assert result.out == ""
    assert result.err == (
        "note: nothing in default/claude; 812 messages in default/chatgpt (-i chatgpt)\n"
    )
    result = cli("view", "-p", "work")
    assert result.out == ""
    assert result.err == "note: nothing in work; 812 messages in default (-p default)\n"
    for count, partition in enumerate(("garden", "taxes", "travel"), 1):
        for _ in range(count):
            cli.say("one", "-p", partition)
    assert cli("view", "-p", "music").err == (
        "note: nothing in music; 812 messages in default (-p default), 3 messages in travel "
        "(-p travel), 2 messages in taxes (-p taxes), 1 in 1 other partition\n"
    )


def test_an_empty_view_of_a_partition_names_one_with_messages(cli):
    cli.say("hello", "-p", "work", "-i", "backend")
    notes = cli("view").err
    assert notes == "note: nothing in default; 1 message in work (-p work)\n"


@pytest.mark.parametrize("command", [["view"], ["search", "--keyword", "hello"], ["conversations"]])
def test_a_misspelt_partition_gets_similar_names(cli, command):
    cli.store(
        *({"content": "fullest", "partition": "kitchen"} for _ in range(3)),
        *({"content": "near", "partition": "Work", "instance": instance} for instance in "ab"),
        {"content": "near", "partition": "workx"},
    )
    notes = cli(*command, "-p", "wrok").err
    assert notes.startswith("note: nothing in wrok; ")
    assert notes.endswith("; 2 messages in Work (-p Work), 1 message in workx (-p workx)\n")
    assert "3 messages in kitchen" in cli(*command, "-p", "xyz").err
    assert cli("view", "-p", "kitchen", "-i", "wrok").err.startswith(
        "note: nothing in kitchen/wrok; 3"
    )


def test_a_filter_that_matches_nothing_does_not_suggest_other_partitions(cli):
    cli.say("here", "--at", AT)
    cli.say("there", "-i", "other", "--at", AT)
    result = cli("view", "--role", "tool")
    assert (result.out, result.err) == ("", "note: no message in default matches --role\n")


def test_a_view_of_an_exact_text(cli):
    cli.say("parsing the rows", "--at", AT)
    cli.say("call Parse_Rows(50%)", "--at", AT)
    assert cli("view", "--match", "parse_rows(50%").out == "user: call Parse_Rows(50%)\n"
    assert "matches --match" in cli("view", "--match", "parse-rows").err
    assert "contradicts" in cli("view", "--match", "x", "--id", "1", code=2).err
    assert "needs a text" in cli("view", "--match", "", code=2).err


def test_a_view_shows_the_whole_partition_by_default(cli):
    cli.say("mine", "--at", "2026-01-01T00:00:00Z")
    cli.say("next door", "-i", "other", "--at", "2026-01-02T00:00:00Z")
    cli.say("another house", "-p", "work", "--at", "2026-01-03T00:00:00Z")
    assert cli("view").out == "user: mine\nuser: next door\n"
    assert cli("view", "-i", "default").out == "user: mine\n"
    assert cli("view", "-i", "other").out == "user: next door\n"
    assert cli("view", "--all-partitions").out == (
        "user: mine\nuser: next door\nuser: another house\n"
    )
    assert cli("view", "-p", "work").out == "user: another house\n"


def test_an_id_is_searched_in_all_instances_of_the_partition(cli):
    number = cli.say("next door", "-i", "other")
    assert cli("view", "--id", str(number)).out == "user: next door\n"


def test_an_id_of_another_partition_is_not_found(cli):
    number = cli.say("another house", "-p", "work")
    result = cli("view", "--id", str(number), code=1)
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert cli("view", "--id", str(number), "-p", "work").out == "user: another house\n"


def test_several_ids_are_shown_in_order_of_time(filled_cli):
    assert [row["id"] for row in filled_cli.rows("--id", "2", "--id", "1")] == [1, 2]
    assert filled_cli("view", "--id", "1", "--id", "7", code=1).out == ""


def test_filters_by_trace_role_and_time_narrow_what_is_shown(filled_cli):
    assert [row["id"] for row in filled_cli.rows("--trace-id", TRACE)] == [1, 2]
    assert [row["id"] for row in filled_cli.rows("--role", "assistant")] == [2]
    assert [row["id"] for row in filled_cli.rows("--since", "2026-05-09T14:23:02Z")] == [2]
    assert [row["id"] for row in filled_cli.rows("--until", "2026-05-09T14:23:01Z")] == [1]


def test_a_day_is_part_of_since_and_not_of_until(cli):
    cli.say("on the day before", "--at", "2026-05-08T12:00:00")
    cli.say("on the day", "--at", "2026-05-09T12:00:00")
    assert cli("view", "--since", "2026-05-09").out == "user: on the day\n"
    assert cli("view", "--until", "2026-05-09").out == "user: on the day before\n"


def test_since_and_until_accept_ages(cli):
    cli.say("long ago", "--at", "400d")
    cli.say("this morning", "--at", "3h")
    assert cli("view", "--since", "7d").out == "user: this morning\n"
    assert cli("view", "--until", "12h").out == "user: long ago\n"


def test_typed_times_without_a_zone_are_local_and_shown_as_utc(cli):
    cli("ingest", "--no-embed", "--at", "2026-05-09T10:00", stdin="x", env={"TZ": "EST5"})
    assert cli("view", "--timestamps").out.startswith("2026-05-09T15:00:00+00:00 [")
    shown = cli("view", "--since", "2026-05-09T10:00:01", env={"TZ": "EST5"}).out
    assert shown == ""


def test_a_conversation_of_an_import_can_be_viewed_alone(cli):
    cli.store(
        {"content": "in it", "conversation_id": "c1"},
        {"content": "not in it", "conversation_id": "c2"},
    )
    assert cli("view", "--conversation", "c1").out == "user: in it\n"


def test_control_characters_are_raw_in_a_pipe(cli):
    cli.say("red \x1b[31m bell \x07 tab\t")
    assert cli("view").out.startswith("user: red \x1b[31m bell \x07 tab")


def test_ids_may_be_shortened_and_numbers_may_have_a_hash(cli):
    cli.store(
        {"content": "a", "trace_id": "abc-1", "conversation_id": "conv-1", "instance": "x"},
        {"content": "b", "trace_id": "abd-2", "conversation_id": "conv-12"},
    )
    assert cli("view", "--trace-id", "abc").out == "user: a\n"
    assert cli("view", "--conversation", "conv-12").out == "user: b\n"
    assert cli("view", "--conversation", "conv-1").out == "user: a\n"
    assert cli("view", "--id", "#2").out == "user: b\n"
    errors = cli("view", "--trace-id", "ab", code=2).err
    assert errors.startswith("error: --trace-id ab is not unique: abc-1, abd-2\nhint: ")
    for option in ("--id", "--around"):
        error = cli("view", option, "two", code=2).err
        assert error.startswith(f"error: {option}: 'two' is not a message number\n")


def test_a_message_is_shown_with_its_neighbours(cli):
    cli.store(
        *({"content": f"m{number}", "conversation_id": "c"} for number in range(9)),
        {"content": "another", "conversation_id": "d"},
    )
    assert cli("view", "3", "--around", "5").out == "user: m3\nuser: m4\nuser: m5\n"
    assert cli("view", "3", "--around", "#9").out == "user: m6\nuser: m7\nuser: m8\n"
    assert cli("view", "0", "--around", "1").out.count("\n") == 9
    assert cli("view", "--around", "99", code=1).err.startswith(
        "error: no message 99 in default\nhint: on a"
    )


def test_quiet_suppresses_notes_before_and_after_the_command(cli):
    cli.say("hello", "-p", "work")
    assert cli("view").err.startswith("note: ")
    assert (cli("view", "-q").err, cli("--quiet", "view").err) == ("", "")
    notes = cli("context", "what?", "-q", "-p", "work").err
    assert notes.startswith("warning: ")
    assert notes.count("\n") == 1
    assert cli("view", "--role", "bot", "-q", code=2).err.startswith("error: ")


def test_full_width_digits_are_digits_in_every_number(cli):
    for number in range(12):
        cli.say(f"message {number}")
    assert cli("view", full_width("1")).out == "user: message 11\n"
    for typed in (full_width("12"), full_width("#12")):
        assert cli("view", "--id", typed).out == "user: message 11\n"
    hint = cli("view", full_width("#12"), code=2).err.splitlines()[-1]
    assert hint == "hint: reservoir view --id 12"
    assert cli("view", "--since", full_width("1d"), "1").out == "user: message 11\n"
    assert "of 1,000 tokens" in cli("context", "hello", "--budget", full_width("1,000")).err
    cli(
        "config",
        "set",
        f"recency_weight={full_width('0.5')}",
        f"retention_days={full_width('30d')}",
    )
    values = [cli("config", "get", key).out for key in ("recency_weight", "retention_days")]
    assert values == ["0.5\n", "30\n"]
