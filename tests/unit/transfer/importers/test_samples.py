"""Every message of a sample arrives: its role, its words, its time, its conversation, in order."""

import json
import sqlite3
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest
from llm_logs import newer_log, older_log
from reading import SAMPLES, found_in, records, skipped, told

from reservoir_cli.messages import DOCUMENT_SOURCES
from reservoir_cli.transfer.importers import find

BREAD, UNTITLED = "conv-bread", "conv-untitled"
#: The history of aider was written by the code of aider 0.86. Those of Cline, Goose, LM Studio and
#: Open WebUI are written by hand.
STARTER = "1778328000000"
#: Sessions that Gemini CLI 0.61 and 0.36 and Copilot CLI 1.0.102 wrote, and that were resumed. What
#: is damaged in them, and those of Copilot Chat, are written by hand.
OLDER = "8f425d7e-ee6b-4e1a-8623-2438afdadc59"
GEMINI = "a5bf75b4-0cba-4462-bee5-a7c0a44ab4be"
COPILOT = "cac23ba7-0e8d-449c-a6d4-d2fc755b1837"
TOLD: dict[str, list[tuple[Any, ...]]] = {
    "chatgpt.json": [
        (
            "user",
            "[file schedule.pdf]\n[image]\nHow often do I feed a sourdough starter?",
            "14:13:30",
            BREAD,
        ),
        ("assistant", "Twice a day in a warm kitchen.", "14:13:31", BREAD),
        ("system", "Warm kitchens need two feedings.", "14:13:31", BREAD),
        ("user", "Compute the hydration of 350 g water and 500 g flour.", "14:14:20", BREAD),
        ("assistant", "python(print(350 / 500))", "14:14:21", BREAD),
        ("tool", "0.7", "14:14:22", BREAD),
        ("assistant", "70 percent.", "14:14:23", BREAD),
        ("user", "Thanks! 🍞", "14:14:24", BREAD),
        ("user", "Untitled question", "18:00:00", UNTITLED),
        ("assistant", "Untitled answer", "18:00:00", UNTITLED),
    ],
    "claude.json": [
        (
            "user",
            "[file notes.txt]\nSKIP LOCKED, maybe?\n[image]\n[file load.csv]\n"
            "Can Postgres be a queue?",
            "10:00:01",
            "cl-1",
        ),
        ("assistant", "Let me look.", "10:00:09", "cl-1"),
        ("system", "They want FOR UPDATE SKIP LOCKED.", "10:00:09", "cl-1"),
        ("tool", "SELECT … FOR UPDATE SKIP LOCKED\n[image]", "10:00:09", "cl-1"),
        ("assistant", "Yes, with SKIP LOCKED.", "10:00:09", "cl-1"),
        ("user", "Only the text field", "10:00:09", "cl-1"),
        ("assistant", "repl()", "10:05:00", "cl-1"),
        ("tool", "", "10:05:00", "cl-1"),
        ("assistant", "Done.", "10:05:00", "cl-1"),
        ("user", "No time of my own", "08:00:00", "cl-2"),
    ],
    "claude-code.jsonl": [
        ("user", "Why does sync drop rows?", "09:00:01", "5e55"),
        ("assistant", "I will read the code.", "09:00:03", "5e55"),
        ("system", "Look at the cursor.", "09:00:03", "5e55"),
        ("tool", "def sync(): ...", "09:00:06", "5e55"),
        ("assistant", "The cursor skips a page.", "09:00:09", "5e55"),
        ("user", "[image]\nLike on this screenshot?", "09:01:00", "5e55"),
        ("assistant", "Exactly so.", "09:01:02", "5e55"),
        ("assistant", "And a second line without ids.", "09:01:03", "5e55"),
        ("user", "Find all callers of sync()", "09:03:00", "5e55/ag7"),
        ("assistant", "There are three.", "09:03:04", "5e55/ag7"),
        ("user", "And the last question?", None, "5e55"),
    ],
    "codex.jsonl": [
        ("user", "Why is the build red?", "12:00:01", "sess-1"),
        ("assistant", 'shell({"command":["make"]})', "12:00:03", "sess-1"),
        ("tool", '{"output":"1 failed","metadata":{"exit_code":1}}', "12:00:04", "sess-1"),
        ("assistant", "apply_patch(*** Begin Patch)", "12:00:05", "sess-1"),
        ("tool", "Done\n[image]", "12:00:06", "sess-1"),
        ("assistant", "A test pinned the old cursor.", "12:00:07", "sess-1"),
        ("user", "Fix it\nand commit.", None, "sess-1"),
    ],
    "sharegpt.jsonl": [
        ("system", "Be brief.", None, "sg-1"),
        ("user", "Weather in Oslo?", None, "sg-1"),
        ("assistant", 'weather({"city": "Oslo"})', None, "sg-1"),
        ("tool", "rain", None, "sg-1"),
        ("assistant", "It rains.", None, "sg-1"),
        ("user", "Hello", None, "first"),
        ("assistant", "Hi", None, "first"),
        ("assistant", "no json", None, "first"),
        ("user", "Hello", None, "first"),
        ("assistant", "Hi", None, "first"),
    ],
    "openai.jsonl": [
        ("system", "Be brief.", None, "first"),
        ("user", "What is this?\n[image]\n[file a.pdf]", None, "first"),
        ("assistant", 'look({"at": 1})', None, "first"),
        ("tool", "a cat", None, "first"),
        ("assistant", "A cat.", None, "first"),
        ("user", "Second conversation", None, "first"),
        ("user", "A bare line", None, "first"),
    ],
    "anthropic.json": [
        ("system", "Be brief.", None, "first"),
        ("user", "Read the file", None, "first"),
        ("assistant", "Reading.", None, "first"),
        ("system", "I need the tool.", None, "first"),
        ("tool", "hello", None, "first"),
        ("user", "Go on\n[file b.pdf]", None, "first"),
        ("assistant", "It says hello.", None, "first"),
    ],
    "reservoir.jsonl": [
        ("user", "Why Redis?", "14:23:01", "k1"),
        ("assistant", "It was there.", "14:23:05", "k1"),
        ("assistant", "f({})", "14:23:01", "k1"),
        ("tool", "5", "14:23:01", "k1"),
    ],
    "original.jsonl": [
        ("user", "Hello", "14:23:01", None),
        ("assistant", "Hi there", "14:23:02", None),
    ],
    "gemini-cli.jsonl": [
        ("user", "How long is a brown pelican?", "04:25:26", GEMINI),
        ("assistant", "A brown pelican is 1.2 m long.", "04:25:26", GEMINI),
        ("system", "Answering\nThe pelican is known.", "04:25:26", GEMINI),
        ("user", "Read the notes. What do pelicans eat?", "04:25:28", GEMINI),
        ("assistant", "I will read it.", "04:25:28", GEMINI),
        ("system", "Reading\nI need the file.", "04:25:28", GEMINI),
        ("tool", "Pelicans eat fish.\n", "04:25:28", GEMINI),
        ("assistant", "The file says: pelicans eat fish.", "04:25:28", GEMINI),
        ("user", "How heavy is it?", "04:25:30", GEMINI),
        ("assistant", "About three kilos.", "04:25:31", GEMINI),
    ],
    "gemini-cli.json": [
        ("user", "How long is a brown pelican?", "04:59:03", OLDER),
        ("assistant", "A brown pelican is 1.2 m long.", "04:59:04", OLDER),
        ("system", "Answering\nThe pelican is known.", "04:59:04", OLDER),
        ("user", "Read the notes. What do pelicans eat?", "04:59:28", OLDER),
        ("assistant", "I will read it.", "04:59:28", OLDER),
        ("system", "Reading\nI need the file.", "04:59:28", OLDER),
        ("tool", "Pelicans eat fish.\n", "04:59:28", OLDER),
        ("assistant", "The file says: pelicans eat fish.", "04:59:28", OLDER),
        ("user", "Like this one?\n[image]", "04:59:31", OLDER),
    ],
    "copilot-chat.jsonl": [
        (
            "user",
            "[image]\n[file birds.md]\nHow long is a brown pelican?",
            "09:00:01",
            "chat-1",
        ),
        ("assistant", "A brown pelican is `birds.md` says 1.2 m long.", "09:00:01", "chat-1"),
        ("system", "They mean the bird.", "09:00:01", "chat-1"),
        ("user", "Read the notes. What do pelicans eat?", "09:01:01", "chat-1"),
        ("assistant", "I will read them.", "09:01:01", "chat-1"),
        ("tool", "Pelicans eat fish.", "09:01:01", "chat-1"),
        ("assistant", 'run_in_terminal({"command": "ls"})', "09:01:01", "chat-1"),
        ("tool", "notes.txt", "09:01:01", "chat-1"),
        ("assistant", "They say: pelicans eat fish.", "09:01:01", "chat-1"),
        ("assistant", "It ended well.", "09:03:01", "chat-1"),
    ],
    "copilot-chat.json": [
        ("user", "How heavy is it?", "09:03:21", "chat-2"),
        ("assistant", "About three kilos.", "09:03:21", "chat-2"),
        ("user", "And a wing?", "09:03:22", "chat-2"),
        ("assistant", 'mcp_birds_size({"part":"wing"})', "09:03:22", "chat-2"),
        ("tool", "1 m", "09:03:22", "chat-2"),
    ],
    "copilot-cli.jsonl": [
        ("user", "How long is a brown pelican?", "04:25:43", COPILOT),
        ("assistant", "A brown pelican is 1.2 m long.", "04:25:43", COPILOT),
        ("system", "I should think of pelicans.", "04:25:43", COPILOT),
        ("user", "Read the notes. What do pelicans eat?", "04:26:16", COPILOT),
        ("assistant", "I will read it.", "04:26:16", COPILOT),
        ("system", "I should think of pelicans.", "04:26:16", COPILOT),
        ("tool", "Pelicans eat fish.\n", "04:26:16", COPILOT),
        ("assistant", "The file says: pelicans eat fish.", "04:26:16", COPILOT),
        ("system", "I should think of pelicans.", "04:26:16", COPILOT),
        ("user", "How heavy is it?", "04:26:17", COPILOT),
        ("assistant", "About three kilos.", "04:26:17", COPILOT),
        ("system", "I should think of pelicans.", "04:26:17", COPILOT),
    ],
    "cline.json": [
        (
            "user",
            "Why does sync drop rows? See 'sync.py' (see below for file content)\n"
            '<file_content path="sync.py">\ndef sync(): ...\n</file_content>',
            "12:00:01",
            "first",
        ),
        ("assistant", "I will read the tests.", "12:00:01", "first"),
        ("system", "Look at the tests.", "12:00:01", "first"),
        ("tool", "def test_sync(): ...\n\n    assert rows", "12:00:20", "first"),
        ("assistant", "Now I run them.", "12:00:40", "first"),
        ("system", "Run them.", "12:00:40", "first"),
        ("tool", "1 failed\n[image]", "12:00:50", "first"),
        ("assistant", "[ERROR is no part of it]\nThe cursor skips a page.", "12:01:00", "first"),
        ("user", "Fix it, please. 🍞", "12:01:30", "first"),
        ("assistant", "With a test?", "12:01:40", "first"),
        ("user", "With a test.", "12:01:50", "first"),
        ("assistant", "Done.", "12:02:00", "first"),
    ],
    "goose.jsonl": [
        ("user", "Why does sync drop rows?", "12:00:01", "goose"),
        ("assistant", "I will look.", "12:00:03", "goose"),
        ("system", "Look at the cursor.", "12:00:03", "goose"),
        ("tool", "def sync(): ...", "12:00:04", "goose"),
        ("assistant", "The cursor skips a page.", "12:00:06", "goose"),
        ("user", "Like here? 🍞\n[image]", "12:00:07", "goose"),
        ("assistant", 'developer__text_editor({"path": "sync.py"})', "12:00:08", "goose"),
        ("tool", "no such file", "12:00:09", "goose"),
        ("assistant", "Exactly.", "12:00:10", "goose"),
    ],
    "lm-studio.json": [
        ("system", "Be brief.", "12:00:00", STARTER),
        (
            "user",
            "[image]\n[file notes.pdf]\nHow often do I feed a starter?",
            "12:00:00",
            STARTER,
        ),
        ("assistant", "Let me compute.", "12:00:03", STARTER),
        ("system", "Warm kitchens need two.", "12:00:03", STARTER),
        ("tool", '{"stdout":"2"}', "12:00:03", STARTER),
        ("assistant", "Twice a day.", "12:00:03", STARTER),
        ("user", "Thanks! 🍞", "12:00:03", STARTER),
        ("assistant", "With pleasure.", "12:01:00", STARTER),
    ],
    "aider.md": [
        ("user", "Why does sync drop rows?\nIt loses the last page.", "12:00:00", "first"),
        (
            "assistant",
            "The cursor skips a page:\n\n# The fault\n\n#### Where\n\n> offset += size\n\n"
            "app.py\n```python\n<<<<<<< SEARCH\n    offset += size + 1\n=======\n"
            "    offset += size\n>>>>>>> REPLACE\n```",
            "12:00:00",
            "first",
        ),
        ("user", "Is there a test for it? 🍞", "12:00:00", "first"),
        ("assistant", "Not yet.", "12:00:00", "first"),
        ("user", "Write one.", "09:00:00", "first"),
        ("assistant", "Done.", "09:00:00", "first"),
    ],
    "open-webui.json": [
        ("user", "[image]\n[file map.pdf]\nWeather in Oslo?", "12:00:01", "owu-1"),
        ("assistant", "Let me look.", "12:00:02", "owu-1"),
        ("system", 'Look it up\nwith "care".', "12:00:02", "owu-1"),
        ("tool", "rain", "12:00:02", "owu-1"),
        ("assistant", "It rains.", "12:00:02", "owu-1"),
        ("user", "And 2 + 2? 🍞", "12:00:10", "owu-1"),
        ("assistant", "code_interpreter(```python\nprint(2 + 2)\n```)", "12:00:11", "owu-1"),
        ("tool", '{"stdout": "4"}', "12:00:11", "owu-1"),
        ("assistant", "Four.", "12:00:11", "owu-1"),
        ("user", "Search for it", "12:00:20", "owu-1"),
        ("assistant", 'search_web({"q": "2+2"})', "12:00:21", "owu-1"),
        ("system", "A search, then.", "12:00:21", "owu-1"),
        ("tool", "4", "12:00:21", "owu-1"),
        ("assistant", "Still four.", "12:00:21", "owu-1"),
        ("user", "Of an old version", "12:33:20", "owu-2"),
        ("assistant", "Without a tree", "12:33:20", "owu-2"),
    ],
    "note.md": [("user", "# Sourdough\n\nFeed it *twice* a day. 🍞", None, None)],
    "note.txt": [("user", "Feed the starter.", None, None)],
}

SKIPPED = {
    "chatgpt.json": [
        ("entry 1, message 12", "unknown role"),
        ("entry 1, message 13", "not a message"),
        ("entry 3", "not a JSON object"),
        ("entry 4", "no mapping of messages"),
    ],
    "claude.json": [
        ("entry 1, message 6", "unknown sender"),
        ("entry 1, message 8", "not a message"),
        ("entry 3", "no list of messages"),
        ("entry 4", "not a JSON object"),
    ],
    "claude-code.jsonl": [
        ("line 18", "content is neither a text nor a list of blocks"),
        ("line 19", "not a message"),
        ("line 20", "no type"),
        ("line 21", "not a JSON object"),
        ("line 23", "not valid JSON"),
    ],
    "codex.jsonl": [
        ("line 15", "unknown role"),
        ("line 16", "not an item"),
        ("line 17", "a tool call without a name"),
        ("line 20", "no type"),
        ("line 21", "not valid JSON"),
    ],
    "sharegpt.jsonl": [
        ("line 2, message 3", "unknown role"),
        ("line 2, message 4", "value is not a text"),
        ("line 2, message 5", "empty"),
        ("line 2, message 6", "not a message"),
        ("line 4", "no list of messages"),
        ("line 6", "not valid JSON"),
    ],
    "openai.jsonl": [
        ("line 1, message 6", "unknown role"),
        ("line 1, message 7", "not a message"),
        ("line 4", "empty"),
        ("line 5", "not a JSON object"),
        ("line 6", "not valid JSON"),
    ],
    "anthropic.json": [
        ("the document, message 5", "unknown role"),
        ("the document, message 6", "empty"),
        ("the document, message 7", "content is neither a text nor a list of blocks"),
        ("the document, message 8", "not a message"),
    ],
    "reservoir.jsonl": [
        ("line 5", "unknown role"),
        ("line 6", "no content"),
        ("line 7", "created_at is not a time"),
        ("line 8", "not a JSON object"),
        ("line 9", "not valid JSON"),
    ],
    "original.jsonl": [("line 3", "no content")],
    "cline.json": [
        ("entry 14", "unknown role"),
        ("entry 15", "content is neither a text nor a list of blocks"),
        ("entry 16", "a tool call without a name"),
        ("entry 17", "not a JSON object"),
    ],
    "goose.jsonl": [
        ("line 10", "unknown role"),
        ("line 11", "content is not a list"),
        ("line 12", "not a JSON object"),
        ("line 13", "not valid JSON"),
    ],
    "lm-studio.json": [
        ("the document, message 5", "no versions"),
        ("the document, message 6", "unknown role"),
        ("the document, message 7", "not a message"),
    ],
    "aider.md": [],
    "open-webui.json": [
        ("entry 1, message 7", "unknown role"),
        ("entry 1, message 8", "content is neither a text nor a list of parts"),
        ("entry 3", "no history of messages"),
        ("entry 4", "not a JSON object"),
    ],
    "gemini-cli.jsonl": [("line 29", "no type"), ("line 30", "not valid JSON")],
    "gemini-cli.json": [
        ("the document, message 8", "not a message"),
        ("the document, message 9", "content is neither a text nor a list of parts"),
    ],
    "copilot-chat.jsonl": [
        ("request 4", "not a request"),
        ("request 5", "no text"),
        ("line 11", "a change that does not fit"),
        ("line 12", "a change that does not fit"),
        ("line 13", "not valid JSON"),
    ],
    "copilot-chat.json": [],
    "copilot-cli.jsonl": [
        ("line 25", "no type"),
        ("line 26", "content is not a text"),
        ("line 27", "not valid JSON"),
    ],
    "note.md": [],
    "note.txt": [],
}

ABOUT = {
    "chatgpt.json": {
        BREAD: ("Feeding a starter", "chatgpt", "gpt-5"),
        UNTITLED: (None, "chatgpt", None),
    },
    "claude.json": {"cl-1": ("Postgres queue", "claude", None), "cl-2": (None, "claude", None)},
    "claude-code.jsonl": {
        "5e55": ("Fixing the sync bug", "claude-code", "claude-sonnet-4-5"),
        "5e55/ag7": (None, "claude-code", "claude-sonnet-4-5"),
    },
    "codex.jsonl": {"sess-1": (None, "codex", "gpt-5-codex")},
    "gemini-cli.jsonl": {GEMINI: ("Pelicans and their size", "gemini-cli", "gemini-2.5-pro")},
    "gemini-cli.json": {OLDER: ("Pelicans and their food", "gemini-cli", "gemini-2.5-pro")},
    "copilot-chat.jsonl": {"chat-1": ("Pelicans and their size", "copilot-chat", "gpt-5")},
    "copilot-chat.json": {
        "chat-2": ("Pelicans and their weight", "copilot-chat", "claude-sonnet-4-5")
    },
    "copilot-cli.jsonl": {COPILOT: (None, "copilot-cli", "m1")},
    "reservoir.jsonl": {"k1": ("Redis", "cli", "gpt-4o")},
    "goose.jsonl": {"goose": ("Sync drops rows", "goose", None)},
    "lm-studio.json": {STARTER: ("Starter", "lm-studio", "qwen3")},
    "open-webui.json": {
        "owu-1": ("Weather", "open-webui", "gpt-4o"),
        "owu-2": (None, "open-webui", None),
    },
}


#: Conversations that are named by their first message.
LISTS = ("sharegpt.jsonl", "openai.jsonl", "anthropic.json", "cline.json", "aider.md")


def read(name: str) -> list[Any]:
    [found] = found_in(SAMPLES / name).values()
    return found


def local(time: Any) -> Any:
    return time.astimezone()


def by_first(name: str) -> list[tuple[Any, ...]]:
    """The messages as rows; a conversation that is named by its first message is ``first``."""
    rows, firsts = [], set()
    for each in records(read(name)):
        message = each.message
        if message.source_id == message.conversation_id:
            firsts.add(message.conversation_id)
        if message.source == "aider":  # writes local times
            each = replace(each, message=replace(message, created_at=local(message.created_at)))
        row = told(each)
        if message.source in DOCUMENT_SOURCES:  # they have the time of their file
            row = (*row[:2], None, row[3])
        rows.append((*row[:3], "first") if row[3] in firsts else row)
    return rows


@pytest.mark.parametrize("name", TOLD)
def test_every_message_arrives_as_it_was_said(name: str) -> None:
    assert by_first(name) == TOLD[name]


@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_no_message_is_skipped_with_its_place(name: str) -> None:
    def place(row: tuple[str, str]) -> list[int]:
        return [int(word) for word in row[0].replace(",", "").split() if word.isdigit()]

    assert sorted(skipped(read(name)), key=place) == SKIPPED[name]


@pytest.mark.parametrize("name", ABOUT)
def test_titles_and_models_arrive(name: str) -> None:
    last = {
        each.conversation.id: each.conversation for each in records(read(name)) if each.conversation
    }
    assert {key: (c.title, c.source, c.model) for key, c in last.items()} == ABOUT[name]


@pytest.mark.parametrize("name", TOLD)
def test_every_message_has_an_identity_of_its_own_that_stays(name: str) -> None:
    def ids() -> list[tuple[Any, ...]]:
        found = records(read(name))
        return [
            (each.message.source, each.message.source_id, each.message.trace_id) for each in found
        ]

    once = ids()
    assert ids() == once
    assert len({each[:2] for each in once}) == len(once)
    assert all(source and source_id for source, source_id, _ in once)


@pytest.mark.parametrize(
    "name", [each for each in TOLD if each in (*ABOUT, *LISTS) and each != "reservoir.jsonl"]
)
def test_a_question_and_all_that_follows_up_to_the_next_share_a_trace(name: str) -> None:
    questions: dict[str | None, str | None] = {}
    for each in records(read(name)):
        message = each.message
        if message.role == "user":
            assert message.trace_id not in questions.values()
            questions[message.conversation_id] = message.trace_id
        elif message.conversation_id in questions:
            assert message.trace_id == questions[message.conversation_id]


@pytest.mark.parametrize("name", TOLD)
def test_each_result_names_the_call_it_answers(name: str) -> None:
    found = [each.message for each in records(read(name))]
    asked = [call.id for each in found for call in each.tool_calls]
    assert [each.tool_call_id for each in found if each.role == "tool"] == asked[
        : sum(each.role == "tool" for each in found)
    ]


@pytest.mark.parametrize("name", TOLD)
def test_thinking_is_no_part_of_what_anybody_said(name: str) -> None:
    thoughts = ("Warm kitchens", "They want FOR", "Look at the", "I need the tool")
    thoughts += ("Answering\n", "Reading\n", "They mean", "I should think")
    thoughts += ("Run them", "Look it up", "A search")
    for each in records(read(name)):
        thinks = each.message.content.startswith(thoughts)
        assert thinks == (each.message.name == "thinking")
        assert not thinks or each.message.role == "system"


INSTANCES = {
    "chatgpt.json": "chatgpt",
    "claude.json": "claude",
    "claude-code.jsonl": "claude-code",
    "codex.jsonl": "codex",
    "gemini-cli.jsonl": "gemini-cli",
    "gemini-cli.json": "gemini-cli",
    "copilot-chat.jsonl": "copilot-chat",
    "copilot-chat.json": "copilot-chat",
    "copilot-cli.jsonl": "copilot-cli",
    "sharegpt.jsonl": "sharegpt",
    "openai.jsonl": None,
    "anthropic.json": None,
    "cline.json": "cline",
    "goose.jsonl": "goose",
    "lm-studio.json": "lm-studio",
    "aider.md": "aider",
    "open-webui.json": "open-webui",
    "note.md": None,
    "note.txt": None,
}


@pytest.mark.parametrize(("name", "instance"), INSTANCES.items())
def test_a_format_is_known_by_its_content_and_has_its_instance(
    name: str, instance: str | None, tmp_path: Any
) -> None:
    renamed = tmp_path / f"anything{(SAMPLES / name).suffix}"
    renamed.write_bytes((SAMPLES / name).read_bytes())
    with ExitStack() as open_files:
        [found] = find(renamed, None, open_files)[0]
    expected = {"note.md": "markdown", "note.txt": "text"}.get(name, name.split(".")[0])
    assert (found.importer.name, found.importer.instance) == (expected, instance)


@pytest.mark.parametrize("name", [each for each in TOLD if each.endswith(".json")])
def test_how_a_document_is_laid_out_changes_nothing(name: str, tmp_path: Any) -> None:
    document = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    dense = tmp_path / name
    dense.write_text("\ufeff" + json.dumps(document, separators=(",", ":")), encoding="utf-8")
    [found] = found_in(dense).values()
    assert records(found) == records(read(name))


# The log of llm is a database, which the tests write themselves


def log_rows(found: list[Any]) -> list[tuple[Any, ...]]:
    assert skipped(found) == []
    return [told(each) for each in records(found)]


LOG = [
    ("system", "Be brief.", "08:00:00", "c1"),
    ("user", "[image]\n[file b.txt]\nThe fragment.\nWhat is it?", "08:00:00", "c1"),
    ("assistant", "A pelican.", "08:00:00", "c1"),
    ("user", "How tall?", "08:01:00", "c1"),
    ("assistant", 'measure({"what": "pelican"})', "08:01:00", "c1"),
    ("tool", "1.5 m", "08:01:30", "c1"),
    ("assistant", "A metre and a half.", "08:01:30", "c1"),
    ("user", "Alone", "09:00:00", "r4"),
    ("assistant", "Indeed", "09:00:00", "r4"),
]


def test_the_older_log_of_llm_arrives(tmp_path: Any) -> None:
    [found] = found_in(older_log(tmp_path / "logs.db")).values()
    assert log_rows(found) == LOG
    first = records(found)[0]
    assert first.conversation is not None
    assert (first.conversation.title, first.conversation.model) == ("Birds", "gpt-4o-mini")


def test_the_newer_log_of_llm_arrives(tmp_path: Any) -> None:
    [found] = found_in(newer_log(tmp_path / "logs.db")).values()
    assert log_rows(found) == [
        ("system", "Be brief.", "10:00:00", "t1"),
        ("user", "The fragment. What is it?\n[image]", "10:00:00", "t1"),
        ("assistant", "A pelican.", "10:00:00", "t1"),
        ("system", "It has a beak.", "10:00:00", "t1"),
        ("user", "How tall?", "10:01:00", "t1"),
        ("assistant", 'measure({"what": "pelican"})', "10:01:00", "t1"),
        ("tool", "1.5 m", "10:02:00", "t1"),
        ("assistant", "A metre and a half.", "10:02:00", "t1"),
        # A fork shares the beginning of the first, and only its own messages are new.
        ("user", "How heavy?", "11:00:00", "t2"),
        ("assistant", "Ten kilos.", "11:00:00", "t2"),
    ]


def test_a_log_of_both_generations_gives_each_message_once(tmp_path: Any) -> None:
    path = newer_log(older_log(tmp_path / "logs.db"), also_older="turn-1")
    [found] = found_in(path).values()
    assert len(log_rows(found)) == len(LOG) + 10


def test_rows_without_ids_do_not_hide_the_others(tmp_path: Any) -> None:
    path = newer_log(older_log(tmp_path / "logs.db"))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("INSERT INTO turns (id, thread_id) VALUES (NULL, NULL)")
        log.execute("INSERT INTO responses (id, prompt) VALUES (NULL, 'x')")
    [found] = found_in(path).values()
    assert len(records(found)) == len(LOG) + 10
    assert skipped(found) == [("response 6", "no id"), ("turn 1", "no id")]


def test_a_log_that_has_lost_a_column_is_read_up_to_there(tmp_path: Any) -> None:
    path = newer_log(older_log(tmp_path / "logs.db"))
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("ALTER TABLE messages RENAME COLUMN hash TO digest")
    [found] = found_in(path).values()
    assert [told(each) for each in records(found)] == LOG
    assert [place for place, _ in skipped(found)] == ["what follows"]


def test_a_log_that_cannot_be_written_to_is_read_and_nothing_lies_beside_it(tmp_path: Any) -> None:
    path = older_log(tmp_path / "logs.db")
    before = path.read_bytes()
    path.chmod(0o400)
    assert len(found_in(path)[""]) == len(LOG)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["logs.db"]
