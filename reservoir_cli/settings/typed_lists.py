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
        return tomllib.loads(f"items = {text}")["items"]
    except tomllib.TOMLDecodeError:
        return None
