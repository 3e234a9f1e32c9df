"""Paths of our settings, data, cache and log.

``RESERVOIR_HOME`` moves all our files to one folder, except for compiled models, which all homes
share; ``RESERVOIR_CONFIG`` and ``RESERVOIR_DB`` move one file each. By default the platform's usual
folders are used.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.settings.store_locations import check_location, is_on_a_server
from reservoir_cli.util.private_files import resolve_path

APP = "reservoir"


def config_file() -> Path:
    """Return the path of the settings file, ``reservoir.toml``; it need not exist."""
    if path := os.environ.get("RESERVOIR_CONFIG"):
        return expand_user(path)
    return (_home() or _platform_dir("config")) / "reservoir.toml"


def store_location(setting: str | None = None) -> str:
    """Return the default store: ``RESERVOIR_DB``, else the setting, else ``reservoir.db``."""
    if location := os.environ.get("RESERVOIR_DB"):
        check_location(location, "RESERVOIR_DB")
    return location or setting or str((_home() or _platform_dir("data")) / "reservoir.db")


def connections_file() -> Path:
    """Return the path of the records of ``connect``'s changes; it need not exist."""
    return (_home() or _platform_dir("data")) / "connections.json"


def token_file() -> Path:
    """Return the path of the token of ``serve``; it need not exist."""
    return (_home() or _platform_dir("data")) / "serve.token"


def server_file() -> Path:
    """Return the path of the list of running servers; it need not exist."""
    return (_home() or _platform_dir("data")) / "serve.json"


def cache_dir() -> Path:
    """Return the folder for data that can be rebuilt; it need not exist."""
    home = _home()
    return home / "cache" if home else _platform_dir("cache")


def models_dir() -> Path:
    """Return the folder of compiled embedding models; it need not exist.

    It is ``RESERVOIR_MODEL_CACHE``, else ``cache/models`` of the home if that exists, else a folder
    that all homes of the user share, unless only the home's can be written.
    """
    if folder := os.environ.get("RESERVOIR_MODEL_CACHE"):
        return expand_user(folder)
    own = cache_dir() / "models"
    if os.path.exists(own):
        return own
    shared = _platform_dir("cache") / "models"
    return shared if is_writable(shared) or not is_writable(own) else own


def embedding_lock(store: str) -> Path:
    """Return the lock file held while a store is embedded; its folder need not exist."""
    return _lock("embedding", store)


def sync_lock(store: str) -> Path:
    """Return the lock file held while a store is synced; its folder need not exist."""
    return _lock("sync", store)


def _lock(kind: str, store: str) -> Path:
    import hashlib

    name = hashlib.sha256(os.fsencode(os.path.abspath(store))).hexdigest()[:16]
    return cache_dir() / f"{kind}-{name}.lock"


def log_file() -> Path:
    """Return the path of the log, ``reservoir.log``; it need not exist."""
    return (_home() or _platform_dir("log")) / "reservoir.log"


def log_files() -> list[Path]:
    """Return the log and its rotated predecessors, the newest first; they need not exist."""
    log = log_file()
    return [log, *(log.with_name(f"{log.name}.{number}") for number in (1, 2))]


def abbreviate_home(path: Path) -> str:
    """Return a path with ``~`` in place of the home folder."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


def store_files(store: Path) -> list[Path]:
    """Return a store's file and the files that SQLite creates beside it; they need not exist."""
    with suppress(OSError):
        store = resolve_path(store)  # SQLite names them after a link's target
    return [store.with_name(store.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]


def private_files(store: Iterable[Path]) -> list[Path]:
    """Return our private files: those of a store, the log, and the settings at their default path.

    Settings that ``RESERVOIR_CONFIG`` names, or that are symlinked, may be shared with other users.
    """
    settings = [] if os.environ.get("RESERVOIR_CONFIG") else [config_file()]
    symlinked = (path.is_symlink() for path in settings)
    secrets = [token_file(), server_file()]
    return [*store, *log_files(), *secrets, *([] if any(symlinked) else settings)]


def refuse_own_files(path: Path, store: Iterable[Path], settings: Path) -> None:
    """Refuse to overwrite the store, the settings, the logs and other files of Reservoir."""
    target = resolve_path(path)
    if target in map(resolve_path, store):
        raise UsageError(f"{path} is the store itself", hint="name another file")
    own = {
        "settings file": [config_file(), settings],
        "log": log_files(),
        "own file": [token_file(), server_file(), connections_file()],
    }
    for kind, files in own.items():
        if target in map(resolve_path, files):
            raise UsageError(f"{path} is Reservoir's {kind}", hint="name another file")


def _home() -> Path | None:
    """Return the folder that ``RESERVOIR_HOME`` names; it need not exist."""
    named = os.environ.get("RESERVOIR_HOME")
    home = expand_user(named) if named else None
    # One look: between two, another process may create the folder.
    with suppress(OSError):
        if home and not stat.S_ISDIR(home.stat().st_mode):
            raise UsageError(f"RESERVOIR_HOME is a file: {home}", hint="name a folder")
    return home


def is_writable(folder: Path) -> bool:
    """Return whether a folder can be written, or created if it does not exist."""
    if not folder.is_absolute():  # there is no home folder
        return False
    existing = next((path for path in (folder, *folder.parents) if os.path.exists(path)), None)
    # Windows may have no such drive.
    return existing is not None and existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def expand_user(path: str) -> Path:
    """Expand ``~`` in a path."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(f"there is no home folder for {path}", hint="use a full path") from None


def _platform_dir(kind: str) -> Path:
    # Imported here: it is not needed if RESERVOIR_HOME is set.
    import platformdirs

    folder = {
        "config": platformdirs.user_config_path,
        "data": platformdirs.user_data_path,
        "cache": platformdirs.user_cache_path,
        "log": platformdirs.user_log_path,
    }[kind]
    return folder(APP, appauthor=False)


def file_identity(location: str) -> tuple[int, int] | None:
    """Return the device and inode of a store's file; ``None`` if missing, zeros on a server."""
    if is_on_a_server(location):
        return (0, 0)
    try:
        status = Path(location).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
