"""``reservoir init`` for a user with histories of other tools, at a terminal."""

import json
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from builders import full_width

IMPORTERS = Path(__file__).parents[1] / "unit" / "transfer" / "formats"
READ, WHICH, WHERE, RUN = "Read them", "Import which", "Partition to keep", "Run it?"
TOOLS = {"claude-code": 11, "codex": 7, "llm": 2}


@pytest.fixture
def machine(cli, tmp_path):
    """Return a home with sessions of Claude Code and Codex and a log of llm in the usual places."""
    home = tmp_path / "person"
    claude, codex = home / ".claude/projects/-src", home / ".codex/sessions/2026/05/09"
    log = home / ".config/io.datasette.llm/logs.db"
    for folder in (claude, codex, log.parent):
        folder.mkdir(parents=True)
    shutil.copy(IMPORTERS / "samples/claude-code.jsonl", claude / "5e55.jsonl")
    (claude / "notes.md").write_text("no session")
    shutil.copy(IMPORTERS / "samples/codex.jsonl", codex / "rollout-1.jsonl")
    say_to_llm(log, "r1", "Which bird has a pouch?", "A pelican.")
    cli.env["HOME"] = str(home)
    return cli


def say_to_llm(log, identity, prompt, response):
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, "
            "system TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT)"
        )
        connection.execute(
            "INSERT INTO responses VALUES (?, 'gpt', ?, NULL, ?, 'c1', '2026-03-01T08:00:00')",
            (identity, prompt, response),
        )


def stored(cli):
    """Return how many messages each instance holds."""
    messages = cli.messages() if cli.db.exists() else ()
    return dict(Counter((message.partition, message.instance) for message in messages))


def everything(partition="default"):
    return {(partition, tool): count for tool, count in TOOLS.items()}


def rows(shown):
    """Return the rows of the table: number, tool, conversations, messages, new."""
    matches = re.findall(r"(?m)^(\d) +(Claude Code|Codex|llm) +(\d+) +(\d+) +(\d+)", shown)
    return [(tool, *map(int, counts)) for _, tool, *counts in matches]


def test_enter_at_every_prompt_imports_everything_and_asks_a_first_question(machine):
    result = machine.talk("init", answers=[(prompt, "\n") for prompt in (READ, WHICH, WHERE, RUN)])
    assert result.code == 0
    assert "Claude Code: 1 file, 6.0 kB, ~/.claude/projects\n" in result.out
    assert rows(result.out) == [("Claude Code", 2, 11, 11), ("Codex", 1, 7, 7), ("llm", 1, 2, 2)]
    assert stored(machine) == everything()
    [command] = re.findall(r"now try: (.*)\n", result.out)
    # The question comes from these histories, and the shown command gives the shown result.
    question = re.fullmatch(r'reservoir context "(.*)" --budget 1000', command)[1]
    assert question in [row["content"] for row in machine.rows()]
    agents = "let these agents search the store: "
    assert f"{agents}reservoir connect claude, reservoir connect codex\n" in result.out
    second = machine.shell(command)
    assert second.out.strip().endswith(question)
    assert second.out.strip() in result.out
    assert machine("stats", "--json").document["runs"] == 2
    settings = (machine.home / "reservoir.toml").read_text()
    assert settings.count('partition = "default"') == 3
    assert '[sources.claude-code]\ntool = "claude-code"\npath = "~/.claude/projects"' in settings
    assert "imported 0, already there 0" in machine("sync", "llm", "--no-embed").err


def test_the_named_command_says_why_entries_were_skipped(machine):
    session = Path(machine.env["HOME"], ".claude/projects/-src/5e55.jsonl")
    session.write_text(f"torn line\n{session.read_text()}")
    shown = machine("init", "--yes", "--no-embed").err
    [command] = re.findall(r"(?m)^note: why some were skipped: (.*claude-code.*)$", shown)
    assert f"{session}, line 1: not valid JSON" in machine.shell(command).err


def test_a_history_that_gave_nothing_is_named_with_the_reason(machine):
    chats = Path(machine.env["HOME"], ".qwen/projects/x/chats")
    chats.mkdir(parents=True)
    (chats / "s.jsonl").write_text('{"foo": 1}\n')
    shown = machine("init", "--yes", "--no-embed").err
    assert "note: qwen-code: 1 record skipped, and none read\n" in shown
    [command] = re.findall(r"(?m)^note: why some were skipped: (.*qwen.*)$", shown)
    shown = machine("-c", command, command=("bash",), code=1).err
    assert f"{chats}/s.jsonl, the document: no type\n" in shown


def test_agents_that_are_installed_and_not_connected_are_suggested(machine):
    sessions = Path(machine.env["HOME"], ".local/share/kilo/kilo.db")  # in opencode's format
    sessions.parent.mkdir(parents=True)
    with closing(sqlite3.connect(sessions)) as database:
        database.executescript((IMPORTERS / "dumps/opencode.sql").read_text(encoding="utf-8"))
    result = machine("init", "--yes", "--no-embed")
    assert "Kilo Code: imported " in result.err
    assert "reservoir connect claude, reservoir connect codex\n" in result.err
    machine("connect", "codex")
    result = machine("init", "--yes", "--no-embed", "-p", "other")
    assert "let these agents search the store: reservoir connect claude\n" in result.err


def test_the_first_question_is_an_answered_one_if_there_is_one(machine):
    home = Path(machine.env["HOME"])
    shutil.rmtree(home / ".claude")
    shutil.rmtree(home / ".codex")
    log = home / ".config/io.datasette.llm/logs.db"
    question = ("r2", "Is this one left open?", "", "c2", "2026-01-01T08:00:00")
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("INSERT INTO responses VALUES (?, 'gpt', ?, NULL, ?, ?, ?)", question)
    result = machine("init", "--yes", "--no-embed", "--json")
    assert "Which bird has a pouch?" in result.document["try"]
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE responses SET response = ''")
    result = machine("init", "--yes", "--no-embed", "--json", "-p", "other")
    assert "Is this one left open?" in result.document["try"]


def test_it_estimates_the_time_of_embedding_and_says_that_it_can_be_interrupted(
    machine, compiled_models
):
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.executemany(
            "INSERT INTO responses VALUES (?, 'gpt', ?, NULL, 'Yes.', 'c2', '2026-03-02T08:00:00')",
            [(f"m{number}", f"Is it {number}?") for number in range(60)],
        )
    machine.env.pop("RESERVOIR_EMBEDDING_MODEL")
    machine.env["RESERVOIR_MODEL_CACHE"] = str(compiled_models)
    result = machine("init", "--yes")
    assert "the newest first; after Ctrl-C, reservoir embed does the rest" in result.err
    assert re.search(r"note: 76 messages to go, about \d+ s\n", result.err)
    assert machine("embed").err.startswith("embedded 0 messages")


def test_selected_sources_go_to_the_typed_partition_which_becomes_the_default(machine):
    answers = [
        (READ, "y\n"),
        (WHICH, "7\n"),
        (WHICH, f"{full_width('3')}, 2\n"),
        (WHERE, "work\n"),
        (RUN, "n\n"),
    ]
    result = machine.talk("init", answers=answers)
    assert result.code == 0
    assert "type numbers from 1 to 3, such as 1,2,3, or none" in result.out
    assert stored(machine) == {("work", "codex"): 7, ("work", "llm"): 2}
    assert machine("config", "--get", "partition").out == "work\n"
    assert " -p " not in re.findall(r"now try: (.*)\n", result.out)[0]


def test_a_resumed_session_that_repeats_another_is_counted_once(machine):
    session = Path(machine.env["HOME"], ".claude/projects/-src/5e55.jsonl")
    shutil.copy(session, session.with_name("resumed.jsonl"))
    answers = [(READ, "\n"), (WHICH, "1\n"), (WHERE, "work\n"), (RUN, "n\n")]
    result = machine.talk("init", "--no-embed", answers=answers)
    assert rows(result.out)[0] == ("Claude Code", 2, 11, 11)
    assert stored(machine) == {("work", "claude-code"): 11}


def test_an_answer_that_is_not_a_list_of_numbers_is_asked_for_again(machine):
    wrong = ["1,x", "2x", "2-1", "1-4", "1-2-3", "1,,x", "9" * 500, "-1", "1.2"]
    asked = [(WHICH, f"{answer}\n") for answer in (*wrong, "2-3, 2")]
    answers = [(READ, "\n"), *asked, (WHERE, "\n"), (RUN, "n\n")]
    result = machine.talk("init", "--no-embed", answers=answers)
    assert result.code == 0
    assert result.out.count("type numbers from 1 to 3, such as 1,2,3, or none") == len(wrong)
    assert stored(machine) == {("default", "codex"): 7, ("default", "llm"): 2}


def test_a_name_that_no_partition_may_have_is_refused_before_anything_is_read(machine):
    result = machine("init", "-p", "a\nb", "--yes", code=2)
    assert result.err.startswith("error: a name cannot ")
    assert "found" not in result.err
    assert not machine.home.exists()


def test_a_second_run_reports_known_messages_and_adds_only_new_ones(machine):
    machine("init", "--yes", "--no-embed")
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    say_to_llm(log, "r2", "How heavy is it?", "Ten kilos.")
    result = machine.talk(
        "init", answers=[(READ, "\n"), (WHICH, "\n"), (WHERE, "\n"), (RUN, "n\n")]
    )
    assert rows(result.out) == [("Claude Code", 2, 11, 0), ("Codex", 1, 7, 0), ("llm", 1, 4, 2)]
    assert "by number, or none? [3]" in result.out
    assert "llm: imported 2, already there 2, skipped 0" in result.out
    assert stored(machine) == {**everything(), ("default", "llm"): 4}
    last = machine.talk("init", answers=[(READ, "\n"), (RUN, "n\n")])
    assert (last.code, "nothing new for default" in last.out) == (0, True)


def test_messages_of_the_default_partition_are_not_copied_to_another_unasked(machine):
    machine("init", "--yes", "--no-embed")
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    say_to_llm(log, "r2", "How heavy is it?", "Ten kilos.")
    prompt = "a second time? [y/N]"
    answers = [
        (READ, "\n"),
        (WHICH, "\n"),
        (WHERE, "x\n"),
        (prompt, "\n"),
        (WHERE, "\n"),
        (RUN, "n\n"),
    ]
    result = machine.talk("init", answers=answers)
    assert "2 messages are already stored" in result.out
    assert {partition for partition, _ in stored(machine)} == {"default"}


def test_a_configured_source_goes_to_its_own_partition(machine):
    machine("init", "--yes", "--no-embed", "-p", "agents")
    machine("config", "set", "partition=work")
    result = machine("init", "--yes", "--no-embed", "--json")
    assert "note: nothing new for agents\nnote: to store them in another partition" in result.err
    assert {row["partition"] for row in result.document["histories"] if row["files"]} == {"agents"}
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    say_to_llm(log, "r2", "How heavy is it?", "Ten kilos.")
    assert "imported 2, already there 2" in machine("init", "--yes", "--no-embed").err
    say_to_llm(log, "r3", "Does it fly?", "It does.")
    prompt = "Partition to keep them in [agents]:"
    result = machine.talk(
        "init", answers=[(READ, "\n"), (WHICH, "\n"), (prompt, "\n"), (RUN, "n\n")]
    )
    assert "llm: imported 2, already there 4" in result.out
    assert stored(machine) == {**everything("agents"), ("agents", "llm"): 6}
    assert machine("config", "get", "partition").out == "work\n"


def test_messages_of_another_partition_are_not_stored_again(machine):
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    machine("ingest", "--no-embed", "-p", "agents", str(log))
    say_to_llm(log, "r2", "How heavy is it?", "Ten kilos.")
    machine("init", "--yes", "--no-embed")
    expected = {place: count for place, count in everything().items() if place[1] != "llm"}
    # A conversation goes on where it is.
    assert stored(machine) == {**expected, ("agents", "llm"): 4}


def test_a_named_partition_gets_a_copy_and_later_messages(machine):
    machine("init", "--yes", "--no-embed", "-p", "agents")
    result = machine("init", "--yes", "--no-embed", "-p", "work")
    assert "note: llm goes to work from now on; its messages in agents stay there\n" in result.err
    assert stored(machine) == {**everything("agents"), **everything("work")}
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    say_to_llm(log, "r2", "How heavy is it?", "Ten kilos.")
    machine("sync", "--no-embed")
    assert stored(machine)["work", "llm"] == 4


def test_a_named_partition_that_has_everything_becomes_the_default_for_later_messages(machine):
    machine("init", "--yes", "--no-embed", "-p", "work")
    machine("init", "--yes", "--no-embed", "-p", "agents")
    result = machine("init", "--yes", "--no-embed", "-p", "work")
    assert "note: nothing new for work\n" in result.err
    assert machine("config", "get", "partition").out == "work\n"
    assert machine("config", "get", "sources.llm.partition").out == "work\n"


def test_conversations_that_two_partitions_have_are_counted(machine):
    before = machine("init", "--dry-run", "--json").document["histories"]
    for name in ("agents", "work"):
        machine("init", "--yes", "--no-embed", "-q", "-p", name)
    after = machine("init", "--dry-run", "--json").document["histories"]
    counts = ("tool", "conversations", "messages")
    assert [[row[name] for name in counts] for row in after] == [
        [row[name] for name in counts] for row in before
    ]
    assert not any(row["new"] for row in after)


def test_histories_in_another_language_than_that_of_the_model_are_noted(machine):
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    for number in range(20):
        say_to_llm(log, f"g{number}", f"Was ist die {number}. Zahl?", "Das ist nicht schwer.")
    machine.env["RESERVOIR_EMBEDDING_MODEL"] = "all-MiniLM-L6-v2"
    result = machine("init", "--yes", "--no-embed")
    assert "for other languages: reservoir embed --model intfloat/" in result.err


def test_the_way_back_from_a_deleted_partition_is_named(machine):
    machine("init", "--yes", "--no-embed", "-p", "wrogn")
    machine("partitions", "delete", "wrogn", "--yes")
    result = machine("init", "--yes", "--no-embed", "-p", "right")
    assert "note: nothing new for right\n" in result.err
    for tool, count in TOOLS.items():
        note = f"note: {tool}: forgotten or edited earlier, and not imported: {count} messages; "
        command = re.findall(rf"(?m)^{note}(reservoir ingest .*) imports them$", result.err)
        machine.shell(f"{command[0]} --no-embed")
    assert stored(machine) == everything("right")
    assert "forgotten" not in machine("init", "--yes", "--no-embed", "-p", "right").err


def test_each_of_several_histories_of_a_tool_is_a_source(machine):
    home, user = Path(machine.env["HOME"]), ".config/Code/User/globalStorage"
    for folder in (".cline/data/tasks", f"{user}/rooveterinaryinc.roo-cline/tasks"):
        task = home / folder / "1767225600000"
        task.mkdir(parents=True)
        sample = IMPORTERS / "samples/cline.json"
        shutil.copy(sample, task / "api_conversation_history.json")
    machine("init", "--yes", "--no-embed")
    paths = [machine("config", "get", f"sources.{name}.path").out for name in ("cline", "cline-2")]
    assert paths == ["~/.cline/data/tasks\n", f"~/{user}/rooveterinaryinc.roo-cline/tasks\n"]
    machine("init", "--yes", "--no-embed")
    assert "cline-3" not in machine("config", "list").out


def test_folders_that_the_settings_exclude_are_left_out(machine):
    folder = f"{machine.env['HOME']}/.claude/projects/-src"
    for excluded, note in ((folder, ""), ("/src", ": in excluded folders, and not imported: ")):
        machine("config", "set", f"sources.claude-code.exclude={excluded}")
        result = machine("init", "-p", "code", "--yes", "--no-embed", "--json")
        [claude] = [row for row in result.document["histories"] if row["format"] == "claude-code"]
        assert [claude[key] for key in ("messages", "new", "imported")] == [0, 0, 0]
        assert f"claude-code{note}" in result.err
        assert "stay there" not in result.err
    assert {instance for _, instance in stored(machine)} == {"codex", "llm"}


def test_a_marked_session_is_neither_announced_as_new_nor_imported(machine):
    session = Path(machine.env["HOME"], ".claude/projects/-src/private.jsonl")
    message = {"role": "user", "content": "DO NOT INDEX this: my salary is 9."}
    line = {"type": "user", "sessionId": "6f66", "uuid": "m1", "cwd": "/src", "message": message}
    session.write_text(json.dumps(line | {"timestamp": "2026-06-01T09:00:00.000Z"}) + "\n", "utf-8")
    for new in (11, 0):
        result = machine("init", "--yes", "--no-embed", "--json")
        [claude] = [row for row in result.document["histories"] if row["format"] == "claude-code"]
        counts = [claude[key] for key in ("messages", "new", "imported", "marked")]
        assert counts == [11, new, new, 1]
        note = "claude-code: marked DO NOT INDEX, and not imported: 1 conversation\n"
        assert result.err.count(note) == 1
    result = machine("ingest", "--dry-run", str(session.parent))
    assert "note: marked DO NOT INDEX, and not imported: 1 conversation\n" in result.err


def test_a_conversation_marked_as_not_to_be_stored_is_reported(machine):
    [chat] = Path(machine.env["HOME"]).rglob("rollout-1.jsonl")
    item = {"type": "input_text", "text": "DO NOT INDEX this one"}
    payload = {"type": "message", "role": "user", "content": [item]}
    with chat.open("a", encoding="utf-8") as file:
        line = {"timestamp": "2026-05-09T12:00:00Z", "type": "response_item", "payload": payload}
        file.write("\n" + json.dumps(line) + "\n")  # the last line is unfinished
    result = machine("init", "--yes", "--no-embed")
    assert "note: codex: marked DO NOT INDEX, and not imported: 1 conversation\n" in result.err
    assert {instance for _, instance in stored(machine)} == {"claude-code", "llm"}


def test_histories_that_sync_reads_are_not_said_to_be_unread(machine):
    machine("init", "--yes", "--no-embed")
    synced = "found on this machine, and kept up to date by reservoir sync:\n  Claude Code: "
    result = machine("init", "--yes", "--no-embed")
    assert synced in result.err
    assert "not read yet" not in result.err
    machine("config", "unset", *(f"sources.codex.{key}" for key in ("tool", "path", "partition")))
    result = machine("init", "--dry-run")
    assert synced in result.err
    assert "found on this machine, and not read yet:\n  Codex: 1 file" in result.err


REFUSED = {
    "no to reading": ([(READ, "n\n")], 1),
    "none of them": ([(READ, "y\n"), (WHICH, "none\n")], 1),
    "to no partition": ([(READ, "y\n"), (WHICH, "\n"), (WHERE, "none\n")], 1),
    "end of input at the first question": ([(READ, "\x04")], 1),
    "end of input at the second question": ([(READ, "\n"), (WHICH, "\x04")], 1),
    "end of input at the third question": ([(READ, "\n"), (WHICH, "\n"), (WHERE, "\x04")], 1),
    "interrupted at the first question": ([(READ, "\x03")], 130),
    "interrupted at the third question": ([(READ, "\n"), (WHICH, "\n"), (WHERE, "\x03")], 130),
}


@pytest.mark.parametrize(("answers", "code"), REFUSED.values(), ids=REFUSED)
def test_declining_imports_nothing_and_creates_nothing(machine, answers, code):
    result = machine.talk("init", answers=answers)
    assert result.code == code
    assert "Traceback" not in result.out
    assert result.out.endswith(("\nnote: nothing was imported\n", "\nnote: nothing was read\n"))
    assert not machine.home.exists()


def test_an_interrupted_import_is_consistent_and_the_next_one_finishes_it(machine):
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    count = 2_500
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.executemany(
            "INSERT INTO responses VALUES (?, 'gpt', ?, NULL, 'Yes.', 'c2', '2026-03-02T08:00:00')",
            [(f"m{number}", f"Is it {number}?") for number in range(count)],
        )
    connection.close()
    answers = [(READ, "\n"), (WHICH, "3\n"), (WHERE, "work\n"), ("reading", "\x03")]
    result = machine.talk("init", "--no-embed", answers=answers)
    assert result.code == 130
    assert "Traceback" not in result.out
    machine("doctor")
    machine("init", "--yes", "--no-embed")
    assert stored(machine) == {**everything("work"), ("work", "llm"): 2 + 2 * count}


def test_nothing_is_opened_before_consent(machine, tmp_path):
    # Audit hooks see every file that is opened.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        f"log = os.open({str(tmp_path / 'opened')!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "def hook(event, arguments):\n"
        "    if event in ('open', 'sqlite3.connect'):\n"
        "        os.write(log, f'{arguments[0]}\\n'.encode())\n"
        "sys.addaudithook(hook)\n"
    )
    env, opened = {"PYTHONPATH": str(tmp_path)}, tmp_path / "opened"
    histories = ("5e55.jsonl", "rollout-1.jsonl", "logs.db")
    machine.talk("init", answers=[(READ, "n\n")], env=env)
    assert not any(path in opened.read_text() for path in histories)
    machine.talk("init", "--dry-run", answers=[(READ, "y\n")], env=env)
    assert all(path in opened.read_text() for path in histories)


def test_without_a_terminal_the_option_yes_is_needed_and_nothing_is_asked(machine):
    result = machine("init", stdin="y\n", code=2)
    assert "claude-code" in result.err.lower() or "Claude Code" in result.err
    question = "Read them to see what they contain?"
    assert result.err.endswith(
        f"error: cannot ask without a terminal: {question}\nhint: add --yes\n"
    )
    assert machine("init", "--json", code=2).document["error"]["kind"] == "usage"
    result = machine("init", "--yes", "--no-embed", "-p", "work")
    assert result.out == ""
    assert stored(machine) == everything("work")
    assert machine("config", "--get", "partition").out == "work\n"


def test_a_dry_run_shows_everything_and_creates_nothing(machine):
    document = machine("init", "--yes", "--dry-run", "--json").document
    counts = ("files", "conversations", "messages", "already_there", "new", "imported", "skipped")
    assert document["schema_version"] == 1
    assert document["partition"] == "default"
    histories = [history for history in document["histories"] if history["files"]]
    assert [(history["format"], *(history[name] for name in counts)) for history in histories] == [
        ("claude-code", 1, 2, 11, 0, 11, 0, 5),
        ("codex", 1, 1, 7, 0, 7, 0, 5),
        ("llm", 1, 1, 2, 0, 2, 0, 0),
    ]
    assert (document["try"], document["dry_run"]) == (None, True)
    assert machine("init", "--dry-run", "--json").document == document  # no terminal to ask on
    accepted = machine.talk("init", "--dry-run", answers=[(READ, "\n")])
    assert len(rows(accepted.out)) == 3
    assert not machine.home.exists()


def test_an_unreadable_history_does_not_stop_the_others(machine):
    log = Path(machine.env["HOME"], ".config/io.datasette.llm/logs.db")
    log.write_bytes(b"SQLite format 3\0" + bytes(2_000))
    result = machine("init", "--yes", "--no-embed", "--json", code=1)
    assert "logs.db" in result.err
    assert stored(machine) == {
        key: count for key, count in everything().items() if "llm" not in key
    }
    failed = [history["format"] for history in result.document["histories"] if history["error"]]
    assert failed == ["llm"]


def test_an_unreadable_folder_is_named_although_nothing_is_new(machine, as_owner):
    machine("init", "--yes", "--no-embed")
    locked = Path(machine.env["HOME"], ".claude/projects/locked")
    locked.mkdir(mode=0)
    try:
        result = machine("init", "--yes", "--no-embed", command=(*as_owner, "reservoir"))
    finally:
        locked.chmod(0o700)
    assert f"cannot read {locked}: Permission denied" in result.err
    assert "nothing new" in result.err


def test_variables_of_the_tools_locate_their_histories(machine, tmp_path):
    home = Path(machine.env["HOME"])
    elsewhere = tmp_path / "elsewhere"
    shutil.move(home / ".claude", elsewhere / "c")
    shutil.move(home / ".codex", elsewhere / "x")
    shutil.move(home / ".config/io.datasette.llm", elsewhere / "l")
    machine.env |= {
        "CLAUDE_CONFIG_DIR": str(elsewhere / "c"),
        "CODEX_HOME": str(elsewhere / "x"),
        "LLM_USER_PATH": str(elsewhere / "l"),
    }
    machine("init", "--yes", "--no-embed")
    assert stored(machine) == everything()
