"""Our files are private under any umask; folders of the user are not changed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Home

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the modes of POSIX files")
UMASKS = [0o000, 0o022, 0o077, 0o777]
#: Every command that creates a file or a folder.
MAKING = [
    ["ingest", "--no-embed"],
    ["context", "word?", "--budget", "40", "--save"],
    ["config", "--set", "partition=work"],
    ["config", "--set", "recent_context_size=7"],
    ["export", "--all-partitions", "-o", "out/export.jsonl"],
    ["backup", "out/copy.db", "-y"],
    ["forget", "--match", "nothing like it", "--all-partitions", "-y"],
    ["doctor", "--repair"],
]


@pytest.fixture
def out(home: Home) -> Path:
    """Return a folder of the user that others can access."""
    folder = home.folder / "out"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def everything(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if not path.is_symlink():
            yield path


@pytest.mark.parametrize("umask", UMASKS, ids=oct)
def test_new_files_are_private(home, out, umask):
    for command in MAKING:
        result = home(*command, stdin="word " * 300, umask=umask)
        assert result.code == 0, result
        # This holds while a store is open, too: SQLite gives the files beside it the same mode.
        for path in everything(home.folder):
            if path != out:
                assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert (home.home / "reservoir.log").stat().st_size
    assert mode(out) == 0o755
    assert {path.name for path in out.iterdir()} == {"export.jsonl", "copy.db"}


def test_permissions_of_our_files_are_fixed_with_a_note(home):
    for command in MAKING[:3]:
        home(*command, stdin="word " * 300)
    ours = [home.home / name for name in ("reservoir.db", "reservoir.log", "reservoir.toml")]
    for file in ours:
        file.chmod(0o664)
    home.home.chmod(0o755)
    result = home("view", "1")
    fixed = "reservoir.db, reservoir.log, reservoir.toml were readable by other users"
    assert f"fixed permissions: {fixed}" in result.err
    assert [mode(path) for path in ours] == [0o600] * 3
    assert mode(home.home) == 0o755  # the mode of an existing folder is the user's choice
    assert "permissions" not in home("view", "1").err


def test_no_permission_is_added(home):
    home("ingest", "--no-embed", stdin="hello")
    (home.home / "reservoir.db").chmod(0o444)
    assert home("view").out.endswith("hello\n")
    assert mode(home.home / "reservoir.db") == 0o400


def test_permissions_of_a_symlinked_store_are_fixed(home):
    home("ingest", "--no-embed", stdin="hello")
    (home.home / "reservoir.db").rename(home.folder / "real.db")
    (home.home / "reservoir.db").symlink_to(home.folder / "real.db")
    (home.folder / "real.db").chmod(0o644)
    assert "fixed permissions: real.db was readable by other users" in home("view").err
    assert mode(home.folder / "real.db") == 0o600
    assert (home.home / "reservoir.db").is_symlink()
    home("ingest", "--no-embed", stdin="more")
    assert not (home.home / "reservoir.db-wal").exists()


def test_files_of_other_users_are_not_touched(home):
    home("ingest", "--no-embed", stdin="hello")
    shared = home.folder / "shared.toml"
    shared.write_text("recent_context_size = 5\n")
    note = home.folder / "note.md"
    note.write_text("a note")
    for file in (shared, note):
        file.chmod(0o644)
    (home.home / "reservoir.toml").symlink_to(shared)
    for command in (
        ["view"],
        ["--config", str(shared), "view"],
        ["ingest", "--no-embed", str(note)],
    ):
        assert "permissions" not in home(*command).err
    assert "permissions" not in home("view", env={"RESERVOIR_CONFIG": str(shared)}).err
    home("--db", str(note), "view")
    assert mode(shared) == mode(note) == 0o644
