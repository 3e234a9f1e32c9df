"""A store on a failing disk: commands refuse, doctor detects, --repair or a backup restores."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import damaging
import pytest
from trials import Home, copied, faults, settle

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.maintenance import backup
from reservoir_cli.messages import Scope
from reservoir_cli.storage.copying.unfinished_copy import UNFINISHED_COPY
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.tables.summaries import Summaries, Summary


def test_random_damage_is_detected_repaired_or_restored(tmp_path: Path) -> None:
    home = damaging.build(tmp_path, 120)
    tally = damaging.damaged(home, 7, 5)
    assert tally.trials == 5
    assert tally.clean, tally


@pytest.fixture
def filled(person: Home) -> Home:
    """Return a home with three messages and an empty write-ahead log."""
    for number in range(3):
        person.must("ingest", "--no-embed", stdin=f"message number {number} about redis")
    settle(person.db)
    return person


def overwrite(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert len(old) == len(new)
    assert old in data
    path.write_bytes(data.replace(old, new))


def drop_from_index(path: Path) -> None:
    """Remove a row from an index, as a lost page does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = "CREATE INDEX messages_by_trace ON messages (partition, trace_id)"
        partial = f"{sql} WHERE id > 1"
        connection.execute("DROP INDEX messages_by_trace")
        connection.execute(partial)
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = 'messages_by_trace'", [sql]
        )
    settle(path)


def test_an_index_without_a_row_is_detected_and_rebuilt(filled: Home) -> None:
    before = filled.rows("*")
    drop_from_index(filled.db)
    checked = filled("doctor")
    assert checked.code == 1
    assert "missing from index messages_by_trace" in checked.out
    assert "reservoir doctor --repair" in checked.out
    assert filled("doctor", "--repair").code == 0
    assert filled("doctor").code == 0
    assert filled.rows("*") == before
    assert faults(filled.db) == []
    assert filled.db.stat().st_mode & 0o777 == 0o600
    assert not [path for path in filled.folder.iterdir() if path.name.startswith(".")]


def flip_a_bit_of_an_id(path: Path, number: int, bit: int) -> None:
    """Flip a bit of the id of one of three messages in its row, while the indexes keep the id."""
    with closing(sqlite3.connect(path)) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'")
    data = bytearray(path.read_bytes())
    page = (root - 1) * 4096
    place = page + 6 + 2 * number
    cell = page + int.from_bytes(data[place : place + 2], "big")
    while data[cell] & 0x80:  # the size of the row
        cell += 1
    assert data[cell + 1] == number
    data[cell + 1] ^= bit
    path.write_bytes(data)


@pytest.mark.parametrize(("number", "bit"), [(3, 4), (2, 8), (1, 32)])
def test_a_message_whose_id_is_damaged_gets_it_back(filled: Home, number: int, bit: int) -> None:
    filled.must("tag", str(number), "kept")
    settle(filled.db)
    before = filled.rows("*")
    flip_a_bit_of_an_id(filled.db, number, bit)
    assert filled("doctor").code == 1
    target = filled.folder / "saved.db"
    assert filled("doctor", "--salvage", str(target)).code == 0
    assert filled("doctor", "--repair").code == 0
    assert filled.rows("*") == before
    for store in (filled.db, target):
        found = filled.must("--db", str(store), "view", "--tag", "kept", "--json").out
        assert [row["id"] for row in json.loads(found)["messages"]] == [number]


def test_a_repair_yields_to_a_concurrent_writer(
    filled: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reservoir_cli.errors import StoreLockedError
    from reservoir_cli.storage.open_store import open_store
    from reservoir_cli.storage.sqlite.care import repair

    drop_from_index(filled.db)
    copy = repair.copy_tables

    def copy_then_another_writes(*connections: sqlite3.Connection) -> set[str]:
        lost = copy(*connections)
        filled.must("ingest", "--no-embed", stdin="said while it was repaired")
        return lost

    monkeypatch.setattr(repair, "copy_tables", copy_then_another_writes)
    with closing(open_store(str(filled.db))) as store:
        with pytest.raises(StoreLockedError, match="while it was repaired"):
            store.repair()
        monkeypatch.undo()
        assert filled.rows("content", "id = 4") == [("said while it was repaired",)]
        store.repair()
        assert store.problems() == []
    assert len(filled.rows()) == 4


def test_invalid_text_is_refused_detected_and_repaired(filled: Home) -> None:
    overwrite(filled.db, b"number 1 about", b"number \xff about")
    refused = filled("view", "0")
    assert (refused.code, refused.out) == (3, "")
    assert refused.is_one_line_error
    assert "corrupt" in refused.err
    assert "about" not in refused.err
    checked = filled("doctor")
    assert checked.code == 1
    assert "1 message cannot be read: 2" in checked.out
    mended = filled("doctor", "--repair")
    assert mended.code == 0
    assert "replaced by U+FFFD in messages 2" in mended.out
    assert filled.rows("content", "id = 2") == [("message number \ufffd about redis",)]
    assert len(filled.must("view", "0").out.splitlines()) == 3


def test_an_impossible_value_is_an_error_that_names_the_message(filled: Home) -> None:
    with closing(sqlite3.connect(filled.db)) as connection, connection:
        connection.execute("UPDATE messages SET tool_calls = '[{]' WHERE id = 3")
    refused = filled("view", "0")
    assert refused.code == 3
    assert refused.is_one_line_error
    assert "message 3 cannot be read" in refused.err
    assert filled("doctor").code == 1


def test_a_repair_that_cannot_read_a_message_changes_nothing_and_gives_a_hint(filled: Home) -> None:
    drop_from_index(filled.db)  # a reason to rewrite the index
    with closing(sqlite3.connect(filled.db)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE messages SET role = 'uses' WHERE id = 2")
    before = filled.rows("*")
    failed = filled("doctor", "--repair")
    assert failed.code == 1
    assert "not all messages can be read; it cannot be repaired" in failed.out
    assert filled.rows("*") == before
    assert not [path for path in filled.folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("column", ["ids", "codes", "flags"])
def test_unreadable_ranking_data_is_detected_and_rebuilt(tmp_path: Path, column: str) -> None:
    home = damaging.build(tmp_path, 20)
    ask = ("context", "redis?", "--budget", "300")
    before = home.must(*ask).out
    with closing(sqlite3.connect(home.db)) as connection, connection:
        connection.execute(f"UPDATE blocks SET {column} = x'010203'")
    answered = home(*ask)
    assert answered.code in (0, 3)
    assert answered.code == 0 or answered.is_one_line_error
    assert home("doctor").code == 1
    assert home("doctor", "--repair").code == 0
    assert home.must(*ask).out == before


def test_an_empty_store_with_a_log_is_refused(person: Home) -> None:
    person.must("ingest", "--no-embed", stdin="kept in the log")
    with closing(sqlite3.connect(person.db)) as reader:  # keeps the log from being truncated
        reader.execute("SELECT * FROM messages").fetchone()
        person.must("ingest", "--no-embed", stdin="kept in the log too")
        log = person.db.with_name("reservoir.db-wal").read_bytes()
        assert log
    person.db.write_bytes(b"")
    person.db.with_name("reservoir.db-wal").write_bytes(log)
    refused = person("ingest", "--no-embed", stdin="another")
    assert refused.code == 3
    assert refused.is_one_line_error
    assert "was emptied" in refused.err
    assert person.db.with_name("reservoir.db-wal").read_bytes() == log


def test_the_printed_recovery_steps_work(filled: Home, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    filled.must("backup", str(backup))
    before = filled.rows("*")
    data = filled.db.read_bytes()
    filled.db.write_bytes(data[: len(data) // 2])
    output = filled("doctor", "--repair").out
    assert "in a backup" in output or "copy a backup" in output
    for file in filled.folder.glob("reservoir.db*"):
        file.rename(tmp_path / f"away-{file.name}")
    filled.db.write_bytes(backup.read_bytes())
    assert filled("doctor").code == 0
    assert filled.rows("*") == before


@pytest.mark.parametrize(
    ("damage", "command"),
    [
        ("UPDATE messages SET partition = x'00ff' WHERE id = 2", ["partitions"]),
        ("UPDATE messages SET partition = x'00ff' WHERE id = 2", ["partitions", "--json"]),
        ("UPDATE messages SET created_at = 'then' WHERE id = 2", ["conversations"]),
        ("UPDATE messages SET created_at = 1e300 WHERE id = 2", ["partitions"]),
        ("DELETE FROM messages WHERE id > 5", ["search", "redis"]),
    ],
    ids=["partition", "partition in JSON", "time", "number", "row"],
)
def test_errors_of_damaged_rows_name_the_cause(
    tmp_path: Path, damage: str, command: list[str]
) -> None:
    home = damaging.build(tmp_path, 20)
    with closing(sqlite3.connect(home.db, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(damage)
    result = home(*command)
    assert result.code == 3
    assert result.is_one_line_error
    assert "is corrupt" in result.err
    assert "hint: run reservoir doctor --repair" in result.err
    assert home("doctor").code == 1


def zero_page(path: Path, number: int) -> None:
    """Fill a page of a file with zeros; the first page is number 1."""
    with path.open("r+b") as file:
        file.seek((number - 1) * 4096)
        file.write(bytes(4096))


def page_of(path: Path, text: str) -> int:
    """Return the number of the page that holds a text."""
    return path.read_bytes().index(text.encode()) // 4096 + 1


MADE_AGAIN = [
    *("messages_by_partition", "messages_by_instance", "messages_by_trace"),
    *("messages_by_conversation", "messages_by_tool_call", "sqlite_autoindex_messages_1"),
    *("messages_fts_data", "messages_fts_idx", "messages_fts_docsize", "messages_fts_config"),
    *("pending", "rebuilding", "blocks", "blocks_by_place", "messages_by_time"),
    *("context_runs", "context_runs_by_time", "sqlite_sequence"),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with a store with embeddings on many pages."""
    return damaging.build(tmp_path_factory.mktemp("sound"), 120)


@pytest.mark.parametrize("name", MADE_AGAIN)
def test_a_lost_page_of_derived_data_is_repaired(sound: Home, tmp_path: Path, name: str) -> None:
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection:
        [[page]] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", [name]
        ).fetchall()
        before = connection.execute("SELECT * FROM messages ORDER BY id").fetchall()
    zero_page(path, page)
    with closing(open_store(str(path))) as store:
        assert store.problems()
        assert store.repair() == ([], [])
        assert store.problems() == []
        assert store.holdings()["messages"] == 120
    assert faults(path) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM messages ORDER BY id").fetchall() == before


def test_a_repair_of_an_emptied_store_does_not_reuse_ids(filled: Home) -> None:
    filled.must("forget", "--id", "1", "--id", "2", "--id", "3", "--yes")
    settle(filled.db)
    with closing(sqlite3.connect(filled.db)) as connection:
        [[page]] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'messages_by_trace'"
        ).fetchall()
    zero_page(filled.db, page)
    filled.must("doctor", "--repair")
    filled.must("ingest", "--no-embed", stdin="said after the repair")
    assert filled.rows("id") == [(4,)]


def test_a_damaged_model_name_is_restored_from_the_vectors(sound: Home, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE properties SET value = 'inwented' WHERE key = 'embedding_model_id'"
        )
    with closing(open_store(str(path))) as store:
        assert store.problems()
        store.repair()
        assert store.active_model() == ("invented", "nobody/absent-model")
        assert store.problems() == []


@pytest.mark.parametrize("index_is_lost", [False, True])
def test_summaries_that_cannot_be_read_are_named_and_the_others_kept(
    sound: Home, tmp_path: Path, index_is_lost: bool
) -> None:
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    ids = [f"c{number:02}" for number in range(10)]
    with closing(open_store(str(path))) as store:
        for name in ids:  # each on a page of its own
            Summaries(store).put(Summary("p", "p", name, "", f"{name} " * 900, "extract", 0))
    settle(path)
    zero_page(path, page_of(path, "c04 c04"))
    if index_is_lost:
        with closing(sqlite3.connect(path)) as connection:
            [[root]] = connection.execute(
                "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_summaries_1'"
            )
        zero_page(path, root)
    result = sound("--db", str(path), "doctor", "--repair", "--json")
    [check] = [row for row in json.loads(result.out)["checks"] if row["name"] == "summaries"]
    lost = "the summaries of 1 conversation could not be read, and are deleted: c04"
    if index_is_lost:
        lost = "some summaries of conversations could not be read, and are deleted"
    assert (result.code, check["status"], check["detail"]) == (0, "note", lost)
    with closing(open_store(str(path))) as store:
        kept = [summary.conversation_id for summary in Summaries(store).read(Scope("p"))]
    assert kept == [name for name in ids if name != "c04"]


@pytest.fixture
def bad_page(sound: Home, tmp_path: Path) -> Home:
    """Return a home with a store that has lost a page of messages."""
    home = Home(tmp_path / "home")
    home.folder.mkdir(exist_ok=True)
    copied(sound.db, home.db)
    [[text]] = sound.rows("content", "id = 60")
    zero_page(home.db, page_of(home.db, text))
    return home


def test_readable_messages_of_a_damaged_store_are_salvaged(bad_page: Home, sound: Home) -> None:
    refused = bad_page("doctor", "--repair")
    assert refused.code == 1
    assert "without one, reservoir doctor --salvage FILE saves what can be read" in refused.out
    before, target = bad_page.db.read_bytes(), bad_page.folder / "saved.db"
    result = bad_page("doctor", "--salvage", str(target), "--json")
    document = json.loads(result.out)
    assert (result.code, document["incomplete"], document["mended"]) == (0, [], 0)
    assert document["saved"] + document["lost"] == 120
    assert 0 < document["lost"] < 20
    assert f"warning: {document['lost']} messages cannot be read" in result.err
    assert bad_page.db.read_bytes() == before
    assert target.stat().st_mode & 0o777 == 0o600
    assert bad_page("--db", str(target), "doctor").code == 0
    with closing(sqlite3.connect(target)) as connection:
        saved = connection.execute("SELECT id, content FROM messages").fetchall()
    assert set(saved) < set(sound.rows("id, content"))
    assert len(saved) == document["saved"]


def test_only_the_messages_of_a_bad_page_are_lost(tmp_path: Path) -> None:
    home, target = Home(tmp_path / "home"), tmp_path / "saved.db"
    for name in "abcde":  # each on a page of its own
        home.must("ingest", "--no-embed", stdin=f"{name}1 " * 1_200)
    settle(home.db)
    zero_page(home.db, page_of(home.db, "c1 c1"))
    lost = backup.salvage(str(home.db), target)
    assert (lost.saved, lost.messages) == (4, 1)


def test_lost_properties_are_named_with_a_command_for_the_new_store(
    sound: Home, tmp_path: Path
) -> None:
    path, target = tmp_path / "damaged.db", tmp_path / "saved here.db"
    copied(sound.db, path)
    settle(path)
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'properties'")
        [(page,)] = pages.fetchall()
        zero_page(path, page)
    result = sound("--db", str(path), "doctor", "--salvage", str(target))
    assert f"properties cannot be read: reservoir --db '{target}' embed rebuilds" in result.err


def test_lost_marks_are_named_and_the_others_salvaged(sound: Home, tmp_path: Path) -> None:
    path, target = tmp_path / "marked.db", tmp_path / "saved.db"
    copied(sound.db, path)
    sound.must("--db", str(path), "tag", "1", "decision")
    sound.must("--db", str(path), "pin", "2")
    settle(path)
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'tags'")
        for (page,) in pages.fetchall():
            zero_page(path, page)
    result = sound("--db", str(path), "doctor", "--salvage", str(target), "--json")
    assert (result.code, json.loads(result.out)["incomplete"]) == (0, ["tags"])
    assert "warning: some tags cannot be read" in result.err
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT message_id FROM pins").fetchall() == [(2,)]


def test_a_message_with_damaged_tool_calls_is_salvaged_without_them(
    sound: Home, tmp_path: Path
) -> None:
    path, target = tmp_path / "damaged.db", tmp_path / "saved.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE messages SET tool_calls = '{' WHERE id = 7")
    lost = backup.salvage(str(path), target)
    assert (lost.saved, lost.messages, lost.tables) == (120, 0, ("tool_calls",))


def test_a_store_without_messages_is_not_copied(sound: Home, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE messages")
    refused = sound("--db", str(path), "backup", str(tmp_path / "backup.db"))
    assert refused.code == 3
    assert refused.is_one_line_error


def test_a_truncated_store_is_salvaged_as_far_as_possible(sound: Home, tmp_path: Path) -> None:
    path, target = tmp_path / "short.db", tmp_path / "saved.db"
    data = sound.db.read_bytes()
    last = max(data.rindex(content.encode()) for (content,) in sound.rows("content"))
    path.write_bytes(data[: (last // 4096 + 1) * 4096])
    assert path.stat().st_size < len(data)
    assert sound("--db", str(path), "view").code == 3
    lost = backup.salvage(str(path), target)
    assert (lost.saved, lost.messages) == (120, 0)  # the embeddings are at the end of the file
    with closing(sqlite3.connect(target)) as connection:
        saved = connection.execute("SELECT id, content FROM messages ORDER BY id").fetchall()
    assert saved == sound.rows("id, content")


def test_wherever_a_store_ends_every_message_is_saved_or_counted_as_lost(tmp_path: Path) -> None:
    data = damaging.build(tmp_path).db.read_bytes()
    path, target = tmp_path / "cut.db", tmp_path / "saved.db"
    for size in range(4096, len(data), len(data) // 24):
        path.write_bytes(data[:size])
        try:
            lost = backup.salvage(str(path), target)
        except StoreCorruptError:
            assert not target.exists()
            continue
        assert lost.saved
        assert lost.saved + lost.messages >= 400, size
        target.unlink()


def test_an_unfinished_copy_is_salvaged_as_unfinished(sound: Home, tmp_path: Path) -> None:
    path, target = tmp_path / "half.db", tmp_path / "saved.db"
    copied(sound.db, path)
    with closing(open_store(str(path))) as store:
        store.set_property(
            UNFINISHED_COPY, '{"source": "/elsewhere.db", "step": "messages", "after": 9}'
        )
    refused = sound("--db", str(path), "backup", str(target), "--yes")
    assert (refused.code, target.exists()) == (3, False)
    assert "is a copy that is not finished" in refused.err
    assert backup.salvage(str(path), target).saved == 120
    with closing(open_store(str(target))) as store:
        assert store.get_property(UNFINISHED_COPY) is None
        assert store.problems() == []


def test_salvage_without_messages_creates_no_file(sound: Home, tmp_path: Path) -> None:
    path, target = tmp_path / "rootless.db", tmp_path / "saved.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection:
        [[root]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")
    zero_page(path, root)
    with pytest.raises(StoreCorruptError, match="nothing of the store can be read"):
        backup.salvage(str(path), target)
    assert not target.exists()


def test_a_file_that_is_not_a_store_cannot_be_salvaged(tmp_path: Path) -> None:
    (tmp_path / "noise.db").write_bytes(bytes(range(256)) * 64)
    with pytest.raises(StoreCorruptError, match="nothing of the store can be read"):
        backup.salvage(str(tmp_path / "noise.db"), tmp_path / "saved.db")
    assert [path.name for path in tmp_path.iterdir()] == ["noise.db"]


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--salvage", "there"], 1), (["--salvage", "."], 1), (["--salvage", "new", "--repair"], 2)],
    ids=["there", "folder", "repair"],
)
def test_salvage_overwrites_no_file(
    bad_page: Home, options: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bad_page.folder)
    Path("there").write_text("mine", encoding="utf-8")
    refused = bad_page("doctor", *options)
    assert refused.code == code
    assert refused.is_one_line_error
    assert "hint: " in refused.err
    assert Path("there").read_text(encoding="utf-8") == "mine"
    assert not Path("new").exists()


def test_a_damaged_store_does_not_replace_a_good_backup(bad_page: Home, sound: Home) -> None:
    backup = bad_page.folder / "backup.db"
    copied(sound.db, backup)
    before = backup.read_bytes()
    refused = bad_page("backup", str(backup), "--yes")
    assert refused.code == 3
    assert refused.is_one_line_error
    assert backup.read_bytes() == before
    assert not [path for path in backup.parent.iterdir() if path.name.startswith(".backup")]


def test_a_text_of_zeros_is_reported(person: Home) -> None:
    person.must("ingest", "--no-embed", stdin="a long text about redis " * 400 + "and its end")
    settle(person.db)
    zero_page(person.db, page_of(person.db, "and its end"))
    assert person("view", "0").code == 3
    assert person("doctor").code == 1
    mended = person("doctor", "--repair")
    assert "replaced by U+FFFD in messages 1" in mended.out
    assert person("doctor").code == 0
    assert "\0" not in person.must("view", "0").out
