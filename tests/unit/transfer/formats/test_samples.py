"""Every message of a sample is imported with role, text, time and conversation, in order."""

import json
import shutil
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from each import each
from reading import SAMPLES, entries_by_file, records, row_of, skipped
from samples_of_programs import FILES, PROGRAMS, REASONS, THOUGHTS
from samples_told import ABOUT, SKIPPED, TOLD

from reservoir_cli.messages import DOCUMENT_SOURCES
from reservoir_cli.transfer.detect_format import find

TOLD, SKIPPED, ABOUT = TOLD | FILES, SKIPPED | REASONS, ABOUT | PROGRAMS
#: Programs that record no times: their messages have that of the file.
TIMELESS = (*DOCUMENT_SOURCES, "cursor", "continue")
#: Samples whose conversations are named by their first message.
LISTS = ("sharegpt.jsonl", "openai.jsonl", "anthropic.json", "cline.json", "aider.md")


def read(name: str) -> list[Any]:
    [entries] = entries_by_file(SAMPLES / name).values()
    return entries


def local(time: Any) -> Any:
    return time.astimezone()


def by_first(name: str) -> list[tuple[Any, ...]]:
    """Return messages as rows; a conversation named by its first message becomes ``first``."""
    rows, firsts = [], set()
    for record in records(read(name)):
        message = record.message
        if message.source_id == message.conversation_id:
            firsts.add(message.conversation_id)
        if message.source == "aider":  # this format has local times
            record = replace(record, message=replace(message, created_at=local(message.created_at)))
        row = row_of(record)
        if message.source in TIMELESS:
            row = (*row[:2], None, row[3])
        rows.append((*row[:3], "first") if row[3] in firsts else row)
    return rows


@each("name", TOLD)
def test_every_message_is_imported(name):
    assert by_first(name) == TOLD[name]


@each("name", SKIPPED)
def test_other_records_are_skipped_with_their_position(name):
    def place(row: tuple[str, str]) -> list[int]:
        return [int(word) for word in row[0].replace(",", "").split() if word.isdigit()]

    assert sorted(skipped(read(name)), key=place) == SKIPPED[name]


@each("name", ABOUT)
def test_titles_and_models_are_imported(name):
    last = {
        record.conversation.id: record.conversation
        for record in records(read(name))
        if record.conversation
    }
    assert {
        key: (conversation.title, conversation.source, conversation.model)
        for key, conversation in last.items()
    } == ABOUT[name]


@each("name", TOLD)
def test_every_message_has_a_stable_unique_id(name):
    def ids() -> list[tuple[Any, ...]]:
        imported = records(read(name))
        return [
            (record.message.source, record.message.source_id, record.message.trace_id)
            for record in imported
        ]

    identities = ids()
    assert ids() == identities
    assert len({row[:2] for row in identities}) == len(identities)
    assert all(source and source_id for source, source_id, _ in identities)


@each("name", [name for name in TOLD if name in (*ABOUT, *LISTS) and name != "reservoir.jsonl"])
def test_a_question_and_all_messages_up_to_the_next_share_a_trace(name):
    questions: dict[str | None, str | None] = {}
    for record in records(read(name)):
        message = record.message
        if message.role == "user":
            assert message.trace_id not in questions.values()
            questions[message.conversation_id] = message.trace_id
        elif message.conversation_id in questions:
            assert message.trace_id == questions[message.conversation_id]


@each("name", TOLD)
def test_each_result_names_the_call_it_answers(name):
    messages = [record.message for record in records(read(name))]
    call_ids = [call.id for message in messages for call in message.tool_calls]
    assert [message.tool_call_id for message in messages if message.role == "tool"] == call_ids[
        : sum(message.role == "tool" for message in messages)
    ]


@each("name", TOLD)
def test_thinking_is_not_part_of_a_message(name):
    thoughts = ("Warm kitchens", "They want FOR", "Look at the", "I need the tool")
    thoughts += ("Answering\n", "Reading\n", "They mean", "I should think")
    thoughts += ("Run them", "Look it up", "A search", *THOUGHTS)
    for record in records(read(name)):
        thinks = record.message.content.startswith(thoughts)
        assert thinks == (record.message.name == "thinking")
        assert not thinks or record.message.role == "system"


INSTANCES = {
    **{name: name.split(".")[0] for name in FILES},
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


@each("name, instance", INSTANCES.items())
def test_a_format_is_detected_by_content_and_has_its_instance(name, instance, tmp_path):
    renamed = tmp_path / f"anything{(SAMPLES / name).suffix}"
    renamed.write_bytes((SAMPLES / name).read_bytes())
    with ExitStack() as open_files:
        [detected] = find(renamed, None, open_files).files
    expected = {"note.md": "markdown", "note.txt": "text"}.get(name, name.split(".")[0])
    assert (detected.importer.name, detected.importer.instance) == (expected, instance)


@each("name", [name for name in TOLD if name.endswith(".json")])
def test_the_layout_of_a_document_does_not_matter(name, tmp_path):
    document = json.loads((SAMPLES / name).read_text(encoding="utf-8"))
    dense = tmp_path / name
    dense.write_text("\ufeff" + json.dumps(document, separators=(",", ":")), encoding="utf-8")
    shutil.copystat(SAMPLES / name, dense)
    [entries] = entries_by_file(dense).values()
    assert records(entries) == records(read(name))
