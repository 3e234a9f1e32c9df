"""Where files live, settings, data, cache and log, and how they are kept private.

``RESERVOIR_HOME`` moves them all into one folder; ``RESERVOIR_CONFIG`` and ``RESERVOIR_DB``
move one file. Otherwise each platform's own places are used. Where other tools keep what is theirs
is told here, too.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.settings.location import check_location

APP = "reservoir"
#: How the name of an unfinished file ends; a store has its log beside it.
_UNFINISHED = re.compile(r"\.\w{8}(-wal|-shm|-journal)?$")
#: A file that was begun so many seconds ago will not be finished.
_ABANDONED = 24 * 3_600


def config_file() -> Path:
    """The settings file, ``reservoir.toml``; it need not exist."""
    if own := os.environ.get("RESERVOIR_CONFIG"):
        return _expanded(own)
    return (_home() or _platform("config")) / "reservoir.toml"


def store_location(setting: str | None = None) -> str:
    """The store when none is named: what ``RESERVOIR_DB`` says, a setting, else ``reservoir.db``.

    :param setting: the value of ``database``.
    :raises UsageError: it is the URL of a server that no store can be on.
    """
    if own := os.environ.get("RESERVOIR_DB"):
        check_location(own, "RESERVOIR_DB")
    return own or setting or str((_home() or _platform("data")) / "reservoir.db")


def cache_dir() -> Path:
    """The folder for what can be made again; it need not exist."""
    home = _home()
    return home / "cache" if home else _platform("cache")


def models_dir() -> Path:
    """The folder of compiled embedding models; it need not exist."""
    return cache_dir() / "models"


def embedding_lock(store: str) -> Path:
    """What is locked while messages of a store are embedded; its folder need not exist."""
    import hashlib

    name = hashlib.sha256(os.fsencode(os.path.abspath(store))).hexdigest()[:16]
    return cache_dir() / f"embedding-{name}.lock"


def log_file() -> Path:
    """The log, ``reservoir.log``; it need not exist."""
    return (_home() or _platform("log")) / "reservoir.log"


def log_files() -> list[Path]:
    """The log and the older ones beside it, the newest first; they need not exist."""
    log = log_file()
    return [log, *(log.with_name(f"{log.name}.{number}") for number in (1, 2))]


def claude_code_sessions() -> Path:
    """Where Claude Code keeps its sessions; it need not exist."""
    return _of_tool("CLAUDE_CONFIG_DIR", ".claude") / "projects"


def codex_sessions() -> Path:
    """Where Codex keeps its sessions; it need not exist."""
    return _of_tool("CODEX_HOME", ".codex") / "sessions"


def llm_log() -> Path:
    """Where llm keeps its log, as ``llm logs path`` says; it need not exist."""
    if own := os.environ.get("LLM_USER_PATH"):
        return Path(own) / "logs.db"
    own_name = "io.datasette.llm"
    if sys.platform == "darwin":  # XDG variables, which platformdirs heeds there, llm does not
        return Path.home() / "Library" / "Application Support" / own_name / "logs.db"
    import platformdirs

    folder = platformdirs.user_config_path(own_name, appauthor=False, roaming=True)
    return folder / "logs.db"


def shown(path: Path) -> str:
    """A path as a person would write it: ``~`` stands for the home."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


def now() -> float:
    """Return seconds since 1970; ``time.time`` fails on a clock that stands in 2262 or later."""
    from datetime import UTC, datetime

    return datetime.now(UTC).timestamp()


def make_private_dir(folder: Path) -> None:
    """Make a folder, and those above it, for the user alone; one that exists is not touched."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def replace_private(path: Path, text: str) -> None:
    """Put a file in place whole or not at all, readable by the user alone.

    :raises OSError: the folder cannot be written; the old file is untouched then.
    """
    make_private_dir(real(path).parent)
    with (
        whole_private(path) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(text)


@contextmanager
def whole_private(path: Path) -> Iterator[Path]:
    """An empty file to be filled, which takes a path's place if nothing goes wrong.

    It lies beside it, is readable by the user alone, and is on the disk before it is renamed.

    :raises OSError: the folder cannot be written; the old file is untouched then.
    """
    import secrets

    path = real(path)  # a link stays a link: what it points at is replaced
    if path.exists() and not path.is_file():  # least of all /dev/null
        raise OSError(errno.EINVAL, "not a regular file")
    sweep_unfinished(path)
    # Named before it is made: whenever a signal ends the program, it is known what to remove.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        yield unfinished
        handle = os.open(unfinished, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def sweep_unfinished(path: Path) -> None:
    """Remove what killed processes left beside a path that they were about to replace."""
    import shutil
    from glob import escape

    beside = path.parent.glob(f".{escape(path.name)}.????????*")
    for each in (each for each in beside if _UNFINISHED.search(each.name)):
        with suppress(OSError):
            if now() - each.lstat().st_mtime > _ABANDONED:
                shutil.rmtree(each) if each.is_dir() else each.unlink()


def _sync_folder(folder: Path) -> None:
    """See to it that a new name in a folder outlives a power cut."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some file systems do not know it
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def one_at_a_time(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Do something that only one process should do at a time; a killed one is in nobody's way.

    :param path: a folder, or a file that is made for this and holds nothing. Never the store:
        to close it would take away SQLite's own locks.
    :param wait: until others have done; else it is ``False`` if somebody is at it.
    """
    handle, free = None, True
    if os.name == "posix":
        import fcntl

        # Where it cannot be made, or on a file system without locks, nobody is kept waiting.
        with suppress(OSError):
            mode = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
            handle = os.open(path, mode, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                free = False
    try:
        yield free
    finally:
        if handle is not None:
            os.close(handle)


def real(path: Path) -> Path:
    """A whole path without links; links that lead to each other stay.

    :raises OSError: it is relative to a folder that is gone.
    """
    return Path(os.path.realpath(path))


def tighten(files: Iterable[Path]) -> list[Path]:
    """Take from others what they may do with files of ours.

    Folders are the user's own business, and so is what belongs to another user.

    :returns: the files that were open to others.
    """
    if os.name != "posix":
        return []
    found = []
    for path in files:
        with suppress(OSError):
            state = path.stat()
            own = stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid()
            if own and state.st_mode & 0o077:
                path.chmod(stat.S_IMODE(state.st_mode) & 0o700)
                found.append(path)
    return found


def store_files(store: Path) -> list[Path]:
    """A store, and what SQLite keeps beside it; they need not exist."""
    with suppress(OSError):
        store = real(store)  # SQLite follows a link before it names them
    return [store.with_name(store.name + ending) for ending in ("", "-wal", "-shm", "-journal")]


def private_files(store: Iterable[Path]) -> list[Path]:
    """The files of ours: those of a store, the log, and the settings where they usually lie.

    Settings that are named, or linked from there, may be meant for others too.

    :param store: its files; there are none of one on a server.
    """
    settings = [] if os.environ.get("RESERVOIR_CONFIG") else [config_file()]
    linked = (each.is_symlink() for each in settings)
    return [*store, *log_files(), *([] if any(linked) else settings)]


def refuse_store(path: Path, store: Iterable[Path]) -> None:
    """Refuse to write over the store itself, or what lies beside it.

    :param store: its files.
    :raises UsageError: the path is one of them.
    :raises OSError: it is relative to a folder that is gone.
    """
    if real(path) in map(real, store):
        raise UsageError(f"{path} is the store itself", hint="name another file")


def _home() -> Path | None:
    home = os.environ.get("RESERVOIR_HOME")
    return _expanded(home) if home else None


def _expanded(path: str) -> Path:
    """A path with ``~`` as the home folder.

    :raises UsageError: there is no such home.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(f"there is no home folder for {path}", hint="name a whole path") from None


def _of_tool(variable: str, usual: str) -> Path:
    """The folder of another tool: what its own variable names, else below the home."""
    own = os.environ.get(variable)
    return _expanded(own) if own else Path.home() / usual


def _platform(kind: str) -> Path:
    # Imported here: with RESERVOIR_HOME set nothing of it is needed.
    import platformdirs

    folder = {
        "config": platformdirs.user_config_path,
        "data": platformdirs.user_data_path,
        "cache": platformdirs.user_cache_path,
        "log": platformdirs.user_log_path,
    }[kind]
    return folder(APP, appauthor=False)
