"""Where files live, settings, data, cache and log, and how they are kept private.

``RESERVOIR_HOME`` moves them all into one folder; ``RESERVOIR_CONFIG`` and ``RESERVOIR_DB``
move one file. Otherwise each platform's own places are used. Where other tools keep what is theirs
is told here, too.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reservoir_cli.errors import UsageError

APP = "reservoir"


def config_file() -> Path:
    """The settings file, ``reservoir.toml``; it need not exist."""
    if own := os.environ.get("RESERVOIR_CONFIG"):
        return Path(own).expanduser()
    return (_home() or _platform("config")) / "reservoir.toml"


def store_location() -> str:
    """The default store: the path of ``reservoir.db``, or what ``RESERVOIR_DB`` names."""
    if own := os.environ.get("RESERVOIR_DB"):
        return own
    return str((_home() or _platform("data")) / "reservoir.db")


def cache_dir() -> Path:
    """The folder for what can be made again; it need not exist."""
    home = _home()
    return home / "cache" if home else _platform("cache")


def models_dir() -> Path:
    """The folder of compiled embedding models; it need not exist."""
    return cache_dir() / "models"


def log_file() -> Path:
    """The log, ``reservoir.log``; it need not exist."""
    return (_home() or _platform("log")) / "reservoir.log"


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
    make_private_dir(path.resolve().parent)
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
    import tempfile

    path = path.resolve()  # a link stays a link: what it points at is replaced
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(name)
        handle = os.open(name, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def refuse_store(path: Path, store: Path) -> None:
    """Refuse to write over the store itself, or what lies beside it.

    :raises UsageError: the path is one of its files.
    """
    own = [store.with_name(store.name + ending).resolve() for ending in ("", "-wal", "-shm")]
    if path.resolve() in own:
        raise UsageError(f"{path} is the store itself", hint="name another file")


def _home() -> Path | None:
    home = os.environ.get("RESERVOIR_HOME")
    return Path(home).expanduser() if home else None


def _of_tool(variable: str, usual: str) -> Path:
    """The folder of another tool: what its own variable names, else below the home."""
    own = os.environ.get(variable)
    return Path(own).expanduser() if own else Path.home() / usual


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
