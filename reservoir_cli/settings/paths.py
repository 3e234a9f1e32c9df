"""Paths of our settings, data, cache and log, and of other tools' histories.

``RESERVOIR_HOME`` moves all our files to one folder, except for compiled models, which all homes
share; ``RESERVOIR_CONFIG`` and ``RESERVOIR_DB`` move one file each. By default the platform's usual
folders are used.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.settings.store_location import check_location
from reservoir_cli.util.private_files import resolve_path
from reservoir_cli.util.read_files import read_regular

APP = "reservoir"


def config_file() -> Path:
    """Return the path of the settings file, ``reservoir.toml``; it need not exist."""
    if path := os.environ.get("RESERVOIR_CONFIG"):
        return expand_user(path)
    return (_home() or _platform_dir("config")) / "reservoir.toml"


def store_location(setting: str | None = None) -> str:
    """Return the default store: ``RESERVOIR_DB``, else the setting, else ``reservoir.db``.

    :param setting: the value of ``database``.
    :raises UsageError: ``RESERVOIR_DB`` is the URL of an unsupported server.
    """
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
    that all homes of the user share, if it is writable.
    """
    if folder := os.environ.get("RESERVOIR_MODEL_CACHE"):
        return expand_user(folder)
    own = cache_dir() / "models"
    if os.path.exists(own):
        return own
    shared = _platform_dir("cache") / "models"
    return shared if _is_writable(shared) else own


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


def claude_code_sessions() -> Path:
    """Return the folder of Claude Code's sessions; it need not exist."""
    return _tool_dir("CLAUDE_CONFIG_DIR", ".claude") / "projects"


def codex_sessions() -> Path:
    """Return the folder of Codex's sessions; it need not exist."""
    return _tool_dir("CODEX_HOME", ".codex") / "sessions"


def llm_log() -> Path:
    """Return the path of llm's log, as ``llm logs path`` prints it; it need not exist."""
    if folder := os.environ.get("LLM_USER_PATH"):
        return Path(folder) / "logs.db"
    return _app_dir("io.datasette.llm") / "logs.db"


def gemini_cli_sessions() -> Path:
    """Return the folder of Gemini CLI's sessions, one folder per project; it need not exist."""
    home = os.environ.get("GEMINI_CLI_HOME")
    return (expand_user(home) if home else Path.home()) / ".gemini" / "tmp"


def opencode_data() -> Path:
    """Return opencode's folder, which is the same on all platforms; it need not exist."""
    return _xdg_data_dir() / "opencode"


def copilot_cli_sessions() -> Path:
    """Return the folder of Copilot CLI's sessions; it need not exist."""
    return _tool_dir("COPILOT_HOME", ".copilot") / "session-state"


def editor_user_dir(app: str) -> Path:
    """Return the ``User`` folder of VS Code or an editor derived from it; it need not exist.

    :param app: the name of its folder, such as ``Code``.
    """
    return _app_dir(app) / "User"


def cline_tasks() -> Path:
    """Return the folder of Cline's tasks outside of editors; it need not exist."""
    if folder := os.environ.get("CLINE_DATA_DIR"):
        return expand_user(folder) / "tasks"
    return _tool_dir("CLINE_DIR", ".cline") / "data" / "tasks"


def goose_sessions() -> Path:
    """Return the folder of Goose's sessions; it need not exist."""
    root = Path(os.environ.get("GOOSE_PATH_ROOT", ""))
    if root.is_absolute():
        return root / "data" / "sessions"
    if sys.platform == "win32":
        return _app_dir("Block") / "goose" / "data" / "sessions"
    return _xdg_data_dir() / "goose" / "sessions"


def lm_studio_chats() -> Path:
    """Return the folder of LM Studio's conversations; it need not exist."""
    pointer = Path.home() / ".lmstudio-home-pointer"  # contains the folder if it was moved
    with suppress(OSError, ValueError):
        folder = Path(read_regular(pointer).decode().strip())
        if folder.is_absolute():
            return folder / "conversations"
    return Path.home() / ".lmstudio" / "conversations"


def aider_history() -> Path:
    """Return aider's history of the current project, else of the home folder; it need not exist."""
    if path := os.environ.get("AIDER_CHAT_HISTORY_FILE"):
        return expand_user(path)
    name = ".aider.chat.history.md"
    with suppress(OSError):  # the current folder was deleted
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / name).is_file():
                return folder / name
    return Path.home() / name


def zed_threads() -> Path:
    """Return the path of Zed's threads; it need not exist."""
    if sys.platform == "darwin":
        data = _app_dir("Zed")
    elif sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        data = (Path(local) if local else Path.home() / "AppData" / "Local") / "Zed"
    else:
        data = _xdg_data_dir("FLATPAK_XDG_DATA_HOME") / "zed"
    return data / "threads" / "threads.db"


def open_webui_data() -> Path:
    """Return the path of Open WebUI's database; it need not exist."""
    return _tool_dir("DATA_DIR", ".open-webui") / "webui.db"


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

    :param store: the store's files; none for a store on a server.
    """
    settings = [] if os.environ.get("RESERVOIR_CONFIG") else [config_file()]
    symlinked = (path.is_symlink() for path in settings)
    secrets = [token_file(), server_file()]
    return [*store, *log_files(), *secrets, *([] if any(symlinked) else settings)]


def refuse_store(path: Path, store: Iterable[Path]) -> None:
    """Refuse to overwrite the store or the files beside it.

    :param store: the store's files.
    :raises UsageError: the path is one of them.
    :raises OSError: the path is relative and the current folder no longer exists.
    """
    if resolve_path(path) in map(resolve_path, store):
        raise UsageError(f"{path} is the store itself", hint="name another file")


def _home() -> Path | None:
    """Return the folder that ``RESERVOIR_HOME`` names; it need not exist.

    :raises UsageError: it is not a folder.
    """
    named = os.environ.get("RESERVOIR_HOME")
    home = expand_user(named) if named else None
    if home and not os.path.isdir(home) and os.path.exists(home):
        raise UsageError(f"RESERVOIR_HOME is a file: {home}", hint="name a folder")
    return home


def _is_writable(folder: Path) -> bool:
    """Return whether a folder can be written, or created if it does not exist."""
    if not folder.is_absolute():  # there is no home folder
        return False
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def expand_user(path: str) -> Path:
    """Expand ``~`` in a path.

    :raises UsageError: there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(f"there is no home folder for {path}", hint="use a full path") from None


def _tool_dir(variable: str, default: str) -> Path:
    """Return another tool's folder: its environment variable, else one in the home folder."""
    folder = os.environ.get(variable)
    return expand_user(folder) if folder else Path.home() / default


def _xdg_data_dir(*variables: str) -> Path:
    """Return the XDG folder for data, which some tools use on all platforms.

    :param variables: variables that take precedence over ``XDG_DATA_HOME``.
    """
    values = (os.environ.get(variable) for variable in (*variables, "XDG_DATA_HOME"))
    folder = next(filter(None, values), None)
    return Path(folder) if folder else Path.home() / ".local" / "share"


def _app_dir(app: str) -> Path:
    """Return the folder of a program that ignores XDG variables on macOS."""
    if sys.platform == "darwin":  # platformdirs would use the variables
        return Path.home() / "Library" / "Application Support" / app
    import platformdirs

    return platformdirs.user_config_path(app, appauthor=False, roaming=True)


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
