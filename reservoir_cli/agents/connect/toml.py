"""Edit TOML settings of other programs in place, with the interface of :mod:`jsonc`."""

import tomllib
from collections.abc import Callable
from typing import Any

from reservoir_cli.agents.connect.jsonc import Path
from reservoir_cli.util import edit_toml

_MARK = "\ufeff"  #: The byte order mark that some editors write at the beginning of a file.


def loads(text: str) -> Any:
    """Parse a text."""
    return tomllib.loads(text.removeprefix(_MARK))


def assign(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; missing tables are added."""
    names = [str(step) for step in path]
    return _edit_lines(text, lambda lines: edit_toml.set_value(lines, names, value))


def remove(text: str, path: Path) -> str:
    """Return the text without the value at a path."""
    names = [str(step) for step in path]

    def edit(lines: str) -> str:
        if (rest := edit_toml.remove(lines, names)) is None:
            raise LookupError(path)
        return rest

    return _edit_lines(text, edit)


def _edit_lines(text: str, edit: Callable[[str], str]) -> str:
    """Edit a text as one with LF line endings, unless it has both kinds."""
    mark = _MARK if text.startswith(_MARK) else ""
    text = text.removeprefix(_MARK)
    is_crlf = "\n" in text and text.count("\r\n") == text.count("\n")
    edited = edit(text.replace("\r\n", "\n") if is_crlf else text)
    return mark + (edited.replace("\n", "\r\n") if is_crlf else edited)
