"""The folders in which programs keep their data on each platform."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from reservoir_cli.settings.paths import expand_user

#: Editors derived from VS Code, by the name of their folder.
EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
#: The folders of their servers and of Flatpak's builds, below the home folder.
_SERVERS = (
    ".vscode-server/data",
    ".vscode-server-insiders/data",
    ".vscodium-server/data",
    ".cursor-server/data",
    ".windsurf-server/data",
    ".local/share/code-server",
    ".var/app/com.visualstudio.code/config/Code",
    ".var/app/com.visualstudio.code.insiders/config/Code - Insiders",
    ".var/app/com.vscodium.codium/config/VSCodium",
)


def tool_dir(variable: str, default: str | Path) -> Path:
    """Return a program's folder: its environment variable, else one, perhaps in the home folder."""
    folder = os.environ.get(variable)
    return expand_user(folder) if folder else Path.home() / default


def xdg_data_dir(*variables: str) -> Path:
    """Return the XDG folder for data; other ``variables`` take precedence."""
    values = (os.environ.get(variable) for variable in (*variables, "XDG_DATA_HOME"))
    folder = next(filter(None, values), None)
    return Path(folder) if folder else Path.home() / ".local" / "share"


def app_dir(app: str) -> Path:
    """Return the folder of a program that ignores XDG variables on macOS."""
    if sys.platform == "darwin":  # platformdirs would use the variables
        return Path.home() / "Library" / "Application Support" / app
    import platformdirs

    return platformdirs.user_config_path(app, appauthor=False, roaming=True)


def editor_user_dir(app: str) -> Path:
    """Return the ``User`` folder of an editor by the name of its folder, such as ``Code``."""
    return app_dir(app) / "User"


def editor_user_dirs() -> Iterator[Path]:
    """Yield the ``User`` folders of VS Code, its variants, and their servers."""
    yield from map(editor_user_dir, EDITORS)
    for folder in _SERVERS:
        yield Path.home() / folder / "User"


def claude_config_dirs() -> list[Path]:
    """Return the folders of Claude Code: those in its variable, or its usual two."""
    value = os.environ.get("CLAUDE_CONFIG_DIR", "")
    names = [value] if os.path.isdir(value) else re.split(rf"[,{os.pathsep}]", value)
    folders = [expand_user(name.strip()) for name in names if name.strip()]
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folders or [Path.home() / ".claude", config / "claude"]
