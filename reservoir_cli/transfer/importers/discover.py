"""Where other tools keep their histories on this machine, and whether something is there.

Only names, sizes and numbers of files are looked at; what they hold is read by the importers,
after somebody said yes.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reservoir_cli.settings import paths


@dataclass(frozen=True, slots=True)
class History:
    """The history of a tool, as far as it can be seen from outside.

    :param tool: what people call it.
    :param form: the importer that reads it, and the source of its messages.
    :param path: a folder or a file.
    :param files: how many there are to read; 0 where there is no history.
    :param size: their bytes.
    """

    tool: str
    form: str
    path: Path
    files: int = 0
    size: int = 0


def look() -> list[History]:
    """All places that are known, each with what lies there."""
    return [
        _seen("Claude Code", "claude-code", paths.claude_code_sessions()),
        _seen("Codex", "codex", paths.codex_sessions()),
        _seen("llm", "llm", paths.llm_log()),
    ]


def _seen(tool: str, form: str, path: Path) -> History:
    """List the files of a place that an importer would read; do not follow links in it."""
    if path.suffix == ".db":
        sizes = [path.stat().st_size] if os.path.isfile(path) else []
    else:
        sizes = [size for where, _, names in os.walk(path) for size in _sizes(where, names)]
    return History(tool, form, path, len(sizes), sum(sizes))


def _sizes(folder: str, names: list[str]) -> Iterator[int]:
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".jsonl") and os.path.isfile(path) and not os.path.islink(path):
            yield os.path.getsize(path)
