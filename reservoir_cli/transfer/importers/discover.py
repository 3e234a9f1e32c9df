"""Find the histories of other tools on this machine.

Only names, sizes and numbers of files are read here. Importers read the contents, once the user
has agreed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reservoir_cli.settings import paths

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


@dataclass(frozen=True, slots=True)
class History:
    """The location and size of a tool's history.

    :param tool: the tool's display name.
    :param form: the name of its importer, and the source of its messages.
    :param path: a folder or a file.
    :param files: the number of files to read; 0 without a history.
    :param size: the total size of the files in bytes.
    """

    tool: str
    form: str
    path: Path
    files: int = 0
    size: int = 0


def look() -> list[History]:
    """Return all known locations, including those without a history."""
    return [
        _inspect("Claude Code", "claude-code", paths.claude_code_sessions()),
        _inspect("Codex", "codex", paths.codex_sessions()),
        _inspect("llm", "llm", paths.llm_log()),
        _inspect("Gemini CLI", "gemini-cli", paths.gemini_cli_sessions(), _BOTH, "chats"),
        *_opencode(),
        _inspect("Copilot CLI", "copilot-cli", paths.copilot_cli_sessions()),
        *_copilot_chat(),
        _inspect("Cursor", "cursor", paths.editor_user_dir("Cursor") / "globalStorage/state.vscdb"),
        *_cline(),
        _goose(),
        _inspect("LM Studio", "lm-studio", paths.lm_studio_chats(), (".conversation.json",)),
        _inspect("aider", "aider", paths.aider_history()),
        _inspect("Zed", "zed", paths.zed_threads()),
        _inspect("Open WebUI", "open-webui", paths.open_webui_data()),
    ]


def _opencode() -> list[History]:
    """Return opencode's database, and the session files of versions without one."""
    data = paths.opencode_data()
    older = _inspect("opencode", "opencode", data / "storage" / "session", (".json",))
    newer = _inspect("opencode", "opencode", data / "opencode.db")
    return [history for history in (newer, older) if history.files] or [newer]


def _copilot_chat() -> list[History]:
    """Return the locations with sessions, by editor and kind of window; at least one location."""
    tool, form = "Copilot Chat", "copilot-chat"
    histories = [
        _inspect(tool, form, paths.editor_user_dir(editor) / place, _BOTH, inside)
        for editor in _EDITORS
        for place, inside in (
            ("workspaceStorage", "chatSessions"),
            ("globalStorage/emptyWindowChatSessions", None),
        )
    ]
    return [history for history in histories if history.files] or histories[:1]


def _cline() -> list[History]:
    """Return the locations with tasks, by editor and extension; at least one location."""
    default = _inspect("Cline", "cline", paths.cline_tasks(), (_TASK,))
    histories = [
        _inspect(tool, "cline", storage / extension / "tasks", (_TASK,))
        for editor in (*_EDITORS, "Cursor", "Windsurf")
        for storage in (paths.editor_user_dir(editor) / "globalStorage",)
        for tool, extension in _EXTENSIONS.items()
    ]
    return [history for history in (default, *histories) if history.files] or [default]


def _goose() -> History:
    """Return Goose's database, or the session files of versions without one."""
    older = _inspect("Goose", "goose", paths.goose_sessions())
    newer = _inspect("Goose", "goose", paths.goose_sessions() / "sessions.db")
    return older if older.files and not newer.files else newer


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
    if path.suffix in (".db", ".vscdb", ".md"):
        sizes = [path.stat().st_size] if os.path.isfile(path) else []
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
