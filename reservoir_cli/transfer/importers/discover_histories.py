"""Find the histories of other tools on this machine.

Only names, sizes and numbers of files are read here. Importers read the contents, once the user
has agreed.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reservoir_cli.settings.paths import expand_user
from reservoir_cli.util.read_files import read_regular

#: Endings of files of tools that changed from JSON documents to JSON Lines.
_BOTH = (".json", ".jsonl")
#: The folders of VS Code and its variants.
_EDITORS = ("Code", "Code - Insiders", "VSCodium")
#: Cline and its forks, with the ids of their extensions.
_EXTENSIONS = {
    "Cline": "saoudrizwan.claude-dev",
    "Roo Code": "rooveterinaryinc.roo-cline",
    "Kilo Code": "kilocode.kilo-code",
}
_TASK = "api_conversation_history.json"
#: The variable that names aider's history.
_AIDER_FILE = "AIDER_CHAT_HISTORY_FILE"


@dataclass(frozen=True, slots=True)
class History:
    """The location and size of a tool's history.

    :param tool: the tool's display name.
    :param form: the name of its importer, and the source of its messages.
    :param path: a folder or a file.
    :param files: the number of files to read; 0 without a history.
    :param size: the total size of the files in bytes.
    :param nearby: whether the current folder and those above it were searched first.
    """

    tool: str
    form: str
    path: Path
    files: int = 0
    size: int = 0
    nearby: bool = False


def look() -> list[History]:
    """Return all known locations, including those without a history."""
    return [
        _inspect("Claude Code", "claude-code", claude_code_sessions()),
        _inspect("Codex", "codex", codex_sessions(), (*_BOTH, ".jsonl.zst")),
        _inspect("llm", "llm", llm_log()),
        _inspect("Gemini CLI", "gemini-cli", gemini_cli_sessions(), _BOTH, "chats"),
        *_present(_opencode()),
        _inspect("Copilot CLI", "copilot-cli", copilot_cli_sessions()),
        *_present(_copilot_chat()),
        _inspect("Cursor", "cursor", editor_user_dir("Cursor") / "globalStorage/state.vscdb"),
        *_present(_cline()),
        *_present(_goose())[:1],
        _inspect("LM Studio", "lm-studio", lm_studio_chats(), (".conversation.json",)),
        _aider(),
        _inspect("Zed", "zed", zed_threads()),
        _inspect("Open WebUI", "open-webui", open_webui_data()),
    ]


def _present(locations: Iterator[History]) -> list[History]:
    """Return the locations of a tool that have a history; the first one if none has."""
    histories = list(locations)
    return [history for history in histories if history.files] or histories[:1]


def _opencode() -> Iterator[History]:
    """Yield opencode's database, the session files of versions without one, and Kilo's database.

    Kilo Code is built on opencode since it has stopped writing tasks.
    """
    database = os.environ.get("OPENCODE_DB") or "opencode.db"
    yield _inspect("opencode", "opencode", opencode_data() / database)
    yield _inspect("opencode", "opencode", opencode_data() / "storage" / "session", (".json",))
    database = os.environ.get("KILO_DB") or "kilo.db"
    yield _inspect("Kilo Code", "opencode", _xdg_data_dir() / "kilo" / database)


def _copilot_chat() -> Iterator[History]:
    """Yield the locations of sessions, by editor and kind of window."""
    for user_dir in map(editor_user_dir, _EDITORS):
        for place, inside in (
            ("workspaceStorage", "chatSessions"),
            ("globalStorage/emptyWindowChatSessions", None),
        ):
            yield _inspect("Copilot Chat", "copilot-chat", user_dir / place, _BOTH, inside)


def _cline() -> Iterator[History]:
    """Yield the locations of sessions and of tasks, by editor and extension."""
    yield _inspect("Cline", "cline", cline_sessions(), (".messages.json",))
    yield _inspect("Cline", "cline", cline_tasks(), (_TASK,))
    for editor in (*_EDITORS, "Cursor", "Windsurf"):
        for tool, extension in _EXTENSIONS.items():
            tasks = editor_user_dir(editor) / "globalStorage" / extension / "tasks"
            yield _inspect(tool, "cline", tasks, (_TASK,))


def _goose() -> Iterator[History]:
    """Yield Goose's database, and the session files of versions without one."""
    yield _inspect("Goose", "goose", goose_sessions() / "sessions.db")
    yield _inspect("Goose", "goose", goose_sessions())


def _aider() -> History:
    history = _inspect("aider", "aider", aider_history())
    return replace(history, nearby=not os.environ.get(_AIDER_FILE))


def _inspect(
    tool: str,
    form: str,
    path: Path,
    suffixes: tuple[str, ...] = (".jsonl",),
    inside: str | None = None,
) -> History:
    """Count the files in a location that an importer would read, without following links.

    :param suffixes: endings of the names of these files.
    :param inside: count only files below folders of this name.
    """
    if os.path.isfile(path):
        sizes = [path.stat().st_size]
    else:
        sizes = [
            size
            for folder, _, names in os.walk(path)
            if inside is None or inside in Path(folder).parts
            for size in _sizes(folder, names, suffixes)
        ]
    return History(tool, form, path, len(sizes), sum(sizes))


def _sizes(folder: str, names: list[str], suffixes: tuple[str, ...]) -> Iterator[int]:
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(suffixes) and os.path.isfile(path) and not os.path.islink(path):
            yield os.path.getsize(path)


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


def cline_sessions() -> Path:
    """Return the folder of Cline's sessions since version 4; it need not exist."""
    if folder := os.environ.get("CLINE_SESSION_DATA_DIR"):
        return expand_user(folder)
    return cline_tasks().with_name("sessions")


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
    if path := os.environ.get(_AIDER_FILE):
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
