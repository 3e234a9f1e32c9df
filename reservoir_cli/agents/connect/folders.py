"""The folders in which programs keep their settings on each platform."""

import os
import sys
from pathlib import Path


def xdg_config() -> Path:
    """Return the XDG folder for settings, which some programs use on all platforms."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def app_data() -> Path:
    """Return the folder in which desktop programs keep their settings on this platform."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return xdg_config()
