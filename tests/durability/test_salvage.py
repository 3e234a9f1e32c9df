"""What ``doctor --salvage`` saves of a store that is beyond repair, and what it says is lost."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from damaging import page_of, zero_page
from trials import Home, copied, settle

from reservoir_cli.errors import StoreCorruptError
from reservoir_cli.maintenance import backup
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.properties import UNFINISHED_COPY


@pytest.fixture
def bad_page(sound: Home, tmp_path: Path) -> Home:
    """Return a home with a store that has lost a page of messages."""
    home = Home(tmp_path / "home")
    home.folder.mkdir(exist_ok=True)
    copied(sound.db, home.db)
    [[text]] = sound.rows("content", "id = 60")
    zero_page(home.db, page_of(home.db, text))
    return home


def test_readable_messages_of_a_damaged_store_are_salvaged(bad_page, sound):
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


def test_only_the_messages_of_a_bad_page_are_lost(tmp_path):
    home, target = Home(tmp_path / "home"), tmp_path / "saved.db"
    for name in "abcde":  # each on a page of its own
        home.must("ingest", "--no-embed", stdin=f"{name}1 " * 1_200)
    settle(home.db)
    zero_page(home.db, page_of(home.db, "c1 c1"))
    lost = backup.salvage(str(home.db), target)
    assert (lost.saved, lost.messages) == (4, 1)


def test_lost_properties_are_named_with_a_command_for_the_new_store(sound, tmp_path):
    path, target = tmp_path / "damaged.db", tmp_path / "saved here.db"
    copied(sound.db, path)
    settle(path)
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'properties'")
        [(page,)] = pages.fetchall()
        zero_page(path, page)
    result = sound("--db", str(path), "doctor", "--salvage", str(target))
    assert f"properties cannot be read: reservoir --db '{target}' embed rebuilds" in result.err


def test_lost_marks_are_named_and_the_others_salvaged(sound, tmp_path):
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


def test_a_message_with_damaged_tool_calls_is_salvaged_without_them(sound, tmp_path):
    path, target = tmp_path / "damaged.db", tmp_path / "saved.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE messages SET tool_calls = '{' WHERE id = 7")
    lost = backup.salvage(str(path), target)
    assert (lost.saved, lost.messages, lost.tables) == (120, 0, ("tool_calls",))


def test_a_store_without_messages_is_not_copied(sound, tmp_path):
    path = tmp_path / "damaged.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE messages")
    refused = sound("--db", str(path), "backup", str(tmp_path / "backup.db"))
    assert refused.code == 3
    assert refused.is_one_line_error


def test_a_truncated_store_is_salvaged_as_far_as_possible(sound, tmp_path):
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


def test_wherever_a_store_ends_every_message_is_saved_or_counted_as_lost(sound, tmp_path):
    data = sound.db.read_bytes()
    path, target = tmp_path / "cut.db", tmp_path / "saved.db"
    for size in range(4096, len(data), len(data) // 24):
        path.write_bytes(data[:size])
        try:
            lost = backup.salvage(str(path), target)
        except StoreCorruptError:
            assert not target.exists()
            continue
        assert lost.saved
        assert lost.saved + lost.messages >= 120, size
        target.unlink()


@pytest.mark.parametrize("letter", [b"\xec", b"q"])
def test_a_store_with_a_damaged_schema_is_refused_and_salvaged(sound, tmp_path, letter):
    home, target = Home(tmp_path / "home"), tmp_path / "saved.db"
    home.folder.mkdir(exist_ok=True)
    copied(sound.db, home.db)
    data = home.db.read_bytes()
    row = b"indexmessages_by_time"  # its name, and then its statement
    assert data.count(row) == data.count(b"CREATE INDEX messages_by_time ") == 1
    data = data.replace(b"CREATE INDEX messages_by_time ", b"CREQTE INDEX messages_by_time ")
    home.db.write_bytes(data.replace(row, b"indexmess" + letter + row[10:]))
    for command in (["view"], ["search", "word"], ["ingest", "--no-embed"]):
        result = home(*command, stdin="word")
        assert (result.code, " is corrupt\nhint: " in result.err) == (3, True), command
    assert home("doctor", "--repair").code == 1
    assert backup.salvage(str(home.db), target).messages == 0
    with closing(sqlite3.connect(target)) as connection:
        saved = connection.execute("SELECT id, content FROM messages").fetchall()
    assert saved == sound.rows("id, content")


def test_an_unfinished_copy_is_salvaged_as_unfinished(sound, tmp_path):
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


def test_salvage_without_messages_creates_no_file(sound, tmp_path):
    path, target = tmp_path / "rootless.db", tmp_path / "saved.db"
    copied(sound.db, path)
    with closing(sqlite3.connect(path)) as connection:
        [[root]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'")
    zero_page(path, root)
    with pytest.raises(StoreCorruptError, match="nothing of the store can be read"):
        backup.salvage(str(path), target)
    assert not target.exists()


def test_a_file_that_is_not_a_store_cannot_be_salvaged(tmp_path):
    (tmp_path / "noise.db").write_bytes(bytes(range(256)) * 64)
    with pytest.raises(StoreCorruptError, match="nothing of the store can be read"):
        backup.salvage(str(tmp_path / "noise.db"), tmp_path / "saved.db")
    assert [path.name for path in tmp_path.iterdir()] == ["noise.db"]


@pytest.mark.parametrize(
    ("options", "code"),
    [(["--salvage", "there"], 1), (["--salvage", "."], 1), (["--salvage", "new", "--repair"], 2)],
    ids=["there", "folder", "repair"],
)
def test_salvage_overwrites_no_file(bad_page, options, code, monkeypatch):
    monkeypatch.chdir(bad_page.folder)
    Path("there").write_text("mine", encoding="utf-8")
    refused = bad_page("doctor", *options)
    assert refused.code == code
    assert refused.is_one_line_error
    assert "hint: " in refused.err
    assert Path("there").read_text(encoding="utf-8") == "mine"
    assert not Path("new").exists()


def test_a_damaged_store_does_not_replace_a_good_backup(bad_page, sound):
    backup = bad_page.folder / "backup.db"
    copied(sound.db, backup)
    before = backup.read_bytes()
    refused = bad_page("backup", str(backup), "--yes")
    assert refused.code == 3
    assert refused.is_one_line_error
    assert backup.read_bytes() == before
    assert not [path for path in backup.parent.iterdir() if path.name.startswith(".backup")]
