"""Where programs keep their settings on each system."""

import os
import sys
from pathlib import Path


def xdg_config() -> Path:
    """Return the folder of settings that Linux has, and some programs use everywhere."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def app_data() -> Path:
    """Return the folder in which desktop programs keep their settings on this system."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return xdg_config()
