"""Read the end of a client's transcript: what was said last, and which messages it has already."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reservoir_cli.util.read_files import open_regular

_READ = 1 << 20  #: How much of the end is read, in bytes.
_TURNS = 12  #: The most turns that are returned.
#: What earlier hooks printed, as the client keeps it, and the numbers of the messages in it.
_FRAME = re.compile(
    r"\[Reservoir context\]((?:(?!\[Reservoir context\]).)*?)\[/Reservoir [a-z]{7}\]", re.DOTALL
)
_NUMBER = re.compile(r"\[#([0-9]{1,19})\] (?:quoted [0-9-]+, )?(?:user|assistant|tool)")
#: Texts of clients that are no turns, such as the output of a command or a reminder.
_INTERNAL = ("<", "[Request interrupted", "Caveat:")
#: Entries with which clients mark that the session was compacted.
_COMPACTIONS = ("compact_boundary", "compacted", "context_compacted")
_NOTHING: tuple[tuple[str, str], ...] = ()


class SessionEnd(NamedTuple):
    """The end of a session, since it was compacted last."""

    talk: tuple[tuple[str, str], ...] = _NOTHING
    recalled: frozenset[int] = frozenset()


def read_transcript(path: str | None) -> SessionEnd:
    """Read the transcript of a session; empty if it is missing or has another form."""
    lines = _read_end(path) if path else []
    talk: list[tuple[str, str]] = []
    recalled: set[int] = set()
    for line in lines:
        entry = _parse(line)
        if _is_compaction(entry):
            talk, recalled = [], set()
            continue
        recalled.update(quoted_numbers(_texts(entry)))
        turn = _turn(entry)
        if turn:
            talk.append(turn)
    return SessionEnd(tuple(talk[-_TURNS:]), frozenset(recalled))


def quoted_numbers(texts: Iterable[str]) -> tuple[int, ...]:
    """Return the ids of the messages that recalls in these texts quote."""
    return tuple(
        int(number)
        for text in texts
        for frame in _FRAME.findall(text)
        for number in _NUMBER.findall(frame)
    )


def _read_end(path: str) -> list[bytes]:
    """Return the last whole lines of a file; none if it is no regular file."""
    try:
        with open_regular(Path(path)) as file:
            start = max(0, os.fstat(file.fileno()).st_size - _READ)
            file.seek(start)
            lines = file.read(_READ).splitlines()
    except (OSError, ValueError):
        return []
    return lines[1:] if start else lines


def _parse(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _is_compaction(entry: dict[str, Any]) -> bool:
    kinds = (entry.get("type"), entry.get("subtype"), _object(entry.get("payload")).get("type"))
    return bool(entry.get("isCompactSummary")) or any(kind in _COMPACTIONS for kind in kinds)


def _turn(entry: dict[str, Any]) -> tuple[str, str] | None:
    if entry.get("isMeta") or entry.get("isSidechain"):
        return None
    message = _object(entry.get("message")) or _object(entry.get("payload"))
    role = message.get("role")
    if role not in ("user", "assistant"):
        return None
    text = "\n".join(_contents(message.get("content"))).strip()
    if not text or text.startswith(_INTERNAL):
        return None
    return str(role), text


def _contents(content: Any) -> Iterator[str]:
    """Yield the texts of a message, without tool calls, results and thoughts."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        block = _object(block)
        if block.get("type") in ("text", "input_text", "output_text"):
            text = block.get("text")
            if isinstance(text, str):
                yield text


def _texts(value: Any, depth: int = 8) -> Iterable[str]:
    """Yield all texts of an entry, wherever a client puts what a hook printed."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for member in value.values():
            yield from _texts(member, depth - 1)
    elif depth and isinstance(value, list):
        for member in value:
            yield from _texts(member, depth - 1)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
