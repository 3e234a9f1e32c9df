"""The database of Cursor."""

import json
import sqlite3
from contextlib import closing

import pytest
from databases import CURSOR, create_database
from reading import entries_by_file, records, row_of, skipped


def test_the_database_of_cursor_is_imported(tmp_path):
    [entries] = entries_by_file(create_database(tmp_path, "cursor")).values()
    assert [row_of(record) for record in records(entries)] == CURSOR
    assert skipped(entries) == [
        ("conversation c1, message 6", "not a message"),
        ("conversation c1, message 7", "unknown type"),
        ("conversation c4", "not a JSON object"),
    ]
    last = [record.conversation for record in records(entries) if record.conversation]
    conversations = {conversation.id: conversation for conversation in last}
    assert {
        key: (conversation.title, conversation.model, conversation.project, conversation.branch)
        for key, conversation in conversations.items()
    } == {
        "c1": ("Pelicans and their size", "claude-opus-4-7", "pelicans", "pelicans"),
        "c2": (None, None, "birds", None),
    }
    [call] = [call for record in records(entries) for call in record.message.tool_calls]
    assert (call.id, call.name, call.arguments) == (
        "tool_1",
        "read_file_v2",
        '{"targetFile":"notes.txt"}',
    )


def test_a_conversation_that_cursor_did_not_name_has_no_title(tmp_path):
    path = create_database(tmp_path, "cursor")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE cursorDiskKV SET value = json_set(value, '$.name', 'New Agent') "
            "WHERE key = 'composerData:c1'"
        )
    [entries] = entries_by_file(path).values()
    titles = {record.conversation.title for record in records(entries) if record.conversation}
    assert titles == {None}


def test_a_message_that_cursor_keeps_only_as_rich_text_is_imported(tmp_path):
    def block(*children: object) -> dict[str, object]:
        return {"type": "paragraph", "children": [*children, None]}

    link = {"type": "link", "children": [{"type": "text", "text": "the list"}]}
    space, line = {"type": "text", "text": " "}, {"type": "linebreak"}
    words = [{"type": "text", "text": words} for words in ("Read", "please.", "How many birds?")]
    first = block(words[0], space, {"type": "mention", "text": "@birds.txt"}, line, words[1])
    rich = {"root": {"children": [first, block(link), block(words[2])]}}
    path = create_database(tmp_path, "cursor")
    with closing(sqlite3.connect(path)) as database, database:
        for bubble, value in (("b1", json.dumps(rich)), ("b5", "no json")):
            database.execute(
                "UPDATE cursorDiskKV SET value = json_set(value, '$.text', '', '$.richText', ?) "
                "WHERE key = 'bubbleId:c1:' || ?",
                (value, bubble),
            )
    [entries] = entries_by_file(path).values()
    asked = [record.message for record in records(entries) if record.message.role == "user"]
    assert [message.content for message in asked if message.conversation_id == "c1"] == [
        "[image]\nRead @birds.txt\nplease.\nthe list\nHow many birds?"
    ]


@pytest.mark.parametrize("place", ["composer", "header"])
def test_a_subagent_of_cursor_names_the_conversation_it_works_for(place, tmp_path):
    about = {"subagentInfo": {"parentComposerId": "c3", "rootParentConversationId": "c1"}}
    path = create_database(tmp_path, "cursor")
    with closing(sqlite3.connect(path)) as database, database:
        if place == "header":
            database.execute("CREATE TABLE composerHeaders (composerId TEXT, value TEXT)")
            row = ("c2", json.dumps(about))
            database.execute("INSERT INTO composerHeaders VALUES (?, ?)", row)
        else:
            database.execute(
                "UPDATE cursorDiskKV SET value = json_patch(value, ?) WHERE key = ?",
                (json.dumps(about), "composerData:c2"),
            )
    [entries] = entries_by_file(path).values()
    parents = {record.message.conversation_id: record.parent for record in records(entries)}
    assert parents == {"c1": None, "c2": "c1"}
