"""The history of aider. The sample was written by aider 0.86's own code."""

from datetime import datetime

import pytest
from each import each
from reading import (
    SAMPLES,
    entries_by_file,
    file_of,
    last_conversation,
    read,
    records,
    roles_and_texts,
    skipped,
)

from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats import aider
from reservoir_cli.transfer.formats.aider import Aider

HISTORY = (SAMPLES / "aider.md").read_text(encoding="utf-8")
STARTED = "# aider chat started at 2026-05-09 12:00:00\n\n"


def test_the_project_of_a_history_is_its_folder(tmp_path):
    (tmp_path / "taskboard").mkdir()
    path = tmp_path / "taskboard" / ".aider.chat.history.md"
    path.write_text(HISTORY, encoding="utf-8")
    (tmp_path / "taskboard" / "README.md").write_text("# Notes", encoding="utf-8")
    by_name = entries_by_file(tmp_path)
    assert list(by_name) == ["taskboard/.aider.chat.history.md"]
    [first, *_, last] = records(by_name["taskboard/.aider.chat.history.md"])
    assert first.conversation is not None
    assert last.conversation is not None
    assert (first.conversation.project, first.conversation.model) == ("taskboard", "gpt-4o")
    assert last.conversation.model == "claude-sonnet-4-5"
    assert first.folder == last.folder == path.parent.as_posix()


@each("name", ["notes.md", ".aider.chat.history.md", "x"])
@each(
    ("text", "is_history"),
    [
        (HISTORY, True),
        ("\ufeff\n\n" + STARTED, True),
        (STARTED.replace("\n", "\r\n"), True),
        ("# Notes\n\n" + HISTORY, False),
        ("# aider chat started at noon\n\n#### Why?  \n", False),
        ("    " + STARTED.strip() + " and ended at once\n", False),
        ("## aider chat started at 2026-05-09 12:00:00\n", False),
        ("#### Why?  \n> a quote  \n", False),
    ],
)
def test_a_history_is_distinguished_from_a_document(name, text, is_history):
    form = choose(file_of(text, name)).name
    assert (form == "aider") == is_history
    assert form in ("aider", "markdown", "text")


def test_a_session_has_its_local_start_time():
    [message] = [record.message for record in records(read(STARTED + "#### Why?  \n"))]
    assert message.created_at == datetime(2026, 5, 9, 12).astimezone()


@each(
    ("prompt", "expected"),
    [
        ("/ask Why?", "Why?"),
        ("/architect Plan it", "Plan it"),
        ("/add a.py", None),
        ("/run pytest", None),
        ("!ls", None),
        ("<blank>", None),
        ("/ is a slash", "/ is a slash"),
        ("Why /add?", "Why /add?"),
    ],
)
def test_commands_and_their_output_are_left_out(prompt, expected):
    entries = read(f"{STARTED}#### {prompt}  \n\nSome words.\n\n")
    assert roles_and_texts(entries) == (
        [("user", expected), ("assistant", "Some words.")] if expected else []
    )


def test_message_ids_of_a_growing_history_do_not_change():
    imported = records(read(HISTORY))
    ids = [record.message.source_id for record in imported]
    lines = HISTORY.splitlines(keepends=True)
    for count in range(1, len(lines)):
        partial = records(read("".join(lines[:count]), Aider()))
        complete_ids = [record.message.source_id for record in partial[:-1]]
        assert complete_ids == ids[: len(complete_ids)]


@pytest.mark.parametrize("note", ["", "> Model: gpt-4o with diff edit format\n\n"])
def test_a_session_without_trailing_blanks_is_read(note):
    question = (
        "#### Why?\n####\n#### It fails.\n\nA race.\n\n> Tokens: 3k sent\n\n#### /run ls\n> a\n"
    )
    next_session = STARTED + "#### And?  \n\n#### A heading\n> a quote\n"
    assert roles_and_texts(read(STARTED + note + question + next_session)) == [
        ("user", "Why?\n\nIt fails."),
        ("assistant", "A race."),
        ("user", "And?"),
        ("assistant", "#### A heading\n> a quote"),
    ]


def test_the_same_question_in_two_sessions_is_stored_twice():
    later_header = STARTED.replace("12:00", "13:00")
    entries = read(f"{STARTED}#### Why?  \n{later_header}#### Why?  \n{STARTED}#### Why?  \n")
    ids = [record.message.source_id for record in records(entries)]
    assert len(set(ids)) == 3
    assert len({record.message.conversation_id for record in records(entries)}) == 3


def test_the_model_in_the_format_of_older_versions_is_read():
    models = "> Models: claude-3-5-sonnet-20240620 with diff edit format, weak model x  \n"
    assert (
        last_conversation(read(f"{STARTED}{models}#### Why?  \n")).model
        == "claude-3-5-sonnet-20240620"
    )


def test_a_message_too_large_for_memory_is_skipped(monkeypatch):
    monkeypatch.setattr(aider, "LARGEST", 100)
    entries = read(
        f"{STARTED}#### Why?  \n\n{'word ' * 15}\n{'word ' * 15}\n\n#### And?  \n{'x' * 300}\nyes\n"
    )
    assert roles_and_texts(entries) == [("user", "Why?"), ("user", "And?"), ("assistant", "yes")]
    assert skipped(entries) == [
        ("line 4", "larger than 64 MB".replace("64", "0")),
        ("line 9", "larger than 64 MB".replace("64", "0")),
    ]
