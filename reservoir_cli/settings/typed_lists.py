"""Parse lists that are typed on the command line or set in the environment."""

import tomllib
from typing import Any


def parse_list(text: str) -> Any:
    """Return a list whose items are separated by commas, or written as in the settings file.

    Items in brackets may have any type; ``None`` if they cannot be parsed.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        parsed = tomllib.loads(f"items = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):  # the latter if nested too deeply
        return None
    return parsed["items"] if len(parsed) == 1 else None
