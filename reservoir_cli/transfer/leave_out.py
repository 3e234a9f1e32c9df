"""Leave out conversations marked ``DO NOT INDEX`` by the user, and those of excluded folders."""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator
from fnmatch import fnmatchcase

from reservoir_cli.transfer.detect_format import DetectedFile
from reservoir_cli.transfer.reading import foreign_databases
from reservoir_cli.transfer.reading.decompressed_file import SQLITE, File, Unreadable
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reading.json_stream import contains
from reservoir_cli.transfer.reports import ImportReport

_MARK = "DO NOT INDEX"  # excludes a conversation if it begins a line of a user's message
_MARKED_LINE = re.compile(r"^[^\S\n]*(?:<[^>\n]*>[^\S\n]*)*DO NOT INDEX\b", re.MULTILINE)
#: The format of Reservoir's own exports: messages that were already accepted once.
_OWN_FORMAT = "reservoir"


def marked_by(item: object) -> str | None:
    """Return the id of the conversation that a record marks as not to be stored, if it does."""
    if not isinstance(item, Record) or item.message.role != "user":
        return None
    content = item.message.content
    is_mark = _MARK in content and _MARKED_LINE.search(content)
    return item.message.conversation_id if is_mark else None


def is_marked(record: Record, marked: Container[str]) -> bool:
    """Return whether the conversation of a record, or the one its subagent works for, is marked."""
    conversation_id = record.message.conversation_id
    if not conversation_id:
        return False
    return any(
        identity in marked
        for identity in (conversation_id, conversation_id.partition("/")[0], record.parent)
        if identity
    )


def find_marked(files: Iterable[DetectedFile]) -> set[str]:
    """Return the ids of the conversations that are marked anywhere in some files."""
    return {
        conversation_id
        for detected in files
        if detected.importer.name != _OWN_FORMAT and may_contain_mark(detected.file)
        for record in detected.records()
        if (conversation_id := marked_by(record))
    }


def may_contain_mark(file: File) -> bool:
    """Return whether a file has to be parsed to find marks."""
    try:
        if file.path and file.head().startswith(SQLITE):
            return foreign_databases.may_contain(file.path, _MARK.encode())
        return contains(file, _MARK.encode())
    except (Unreadable, OSError):
        return True  # what can be read is imported


def leave_out(
    records: Iterable[Record | Skipped],
    marked: Container[str],
    excluded: Callable[[str], bool],
    report: ImportReport,
) -> Iterator[Record | Skipped]:
    """Yield the records of other conversations and folders; count those left out in a report."""
    for record in records:
        if isinstance(record, Skipped):
            yield record
        elif record.folder and excluded(record.folder):
            report.excluded += 1
        elif is_marked(record, marked):
            report.marked.add(str(record.message.conversation_id))
        else:
            yield record


def compile_exclusion(patterns: list[str]) -> Callable[[str], bool]:
    """Return a function that tests whether a path is excluded by a folder or a pattern.

    Tools record working folders without symbolic links, so links in the patterns are followed.
    """
    expanded = [os.path.expanduser(pattern).rstrip("/\\") for pattern in patterns]
    expanded += [os.path.realpath(pattern) for pattern in expanded if os.path.isabs(pattern)]
    folders = [f"{pattern}{os.sep}" for pattern in expanded]

    def excluded(path: str) -> bool:
        return any(
            path == pattern or path.startswith(folder) or fnmatchcase(path, pattern)
            for pattern, folder in zip(expanded, folders, strict=True)
        )

    return excluded if expanded else lambda path: False
