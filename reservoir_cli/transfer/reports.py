"""The reports of imports and exports."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from reservoir_cli.redaction import Mode, describe_secrets
from reservoir_cli.settings.config import Config, masking_command
from reservoir_cli.util.progress import counted

_REASONS = 1_000  # at most this many reasons are kept; further skipped records are only counted
_NAMES = 3  # at most this many files are named in a note


@dataclass
class ImportReport:
    """The counts of an import, or of a dry run.

    :param already: messages that were stored before, and repeated ones.
    :param repeated: messages that a dry run has seen before as new ones.
    :param restored: messages among those imported that were forgotten earlier.
    :param renewed: stored messages that were replaced because they are longer now.
    :param excluded: messages of folders that a source excludes.
    :param ahead: messages whose time is more than a day in the future.
    :param mended: messages in which bytes that are not text were replaced by U+FFFD.
    :param passed_over: files of a folder or zip that are not read.
    :param nothing: how many files gave nothing, by format and reason.
    :param undated: messages whose time is there and could not be read.
    :param marked: ids of conversations marked ``DO NOT INDEX``, and not imported.
    :param unreadable: sources with skipped records only.
    """

    imported: int = 0
    already: int = 0
    skipped: int = 0
    forgotten: int = 0
    restored: int = 0
    expired: int = 0
    excluded: int = 0
    renewed: int = 0
    contexts: int = 0
    ahead: int = 0
    mended: int = 0
    passed_over: int = 0
    undated: int = 0
    secrets: Counter[str] = field(default_factory=Counter)
    modes: set[Mode] = field(default_factory=set)
    conversations: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    nothing: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    repeated: int = field(default=0, compare=False)

    @property
    def total(self) -> int:
        """Count everything that was read, stored or not; a marked conversation counts as one."""
        stored = self.imported + self.already + self.renewed + len(self.marked)
        left_out = self.skipped + self.forgotten + self.expired + self.excluded
        return stored + left_out + self.contexts

    def add(self, other: "ImportReport") -> None:
        """Add the counts of another report."""
        for name, value in vars(other).items():
            if isinstance(value, set):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)
        del self.reasons[_REASONS:]

    def skip(self, reason: str) -> None:
        """Count a skipped record."""
        self.skipped += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(reason)

    def reason_lines(self) -> list[str]:
        """Return where and why records were skipped, a line each, and how many more there are."""
        more = self.skipped - len(self.reasons)
        return [f"  {reason}" for reason in self.reasons] + (
            [f"  and {more:,} more"] if more else []
        )

    def notes(self, *, all_names: bool = False) -> list[str]:
        """Return what was not chosen or could not be read, a sentence each."""
        most = None if all_names else _NAMES
        notes = [
            f"{counted(count, 'file')} of {form} gave nothing: {reason}"
            for (form, reason), count in sorted(self.nothing.items())
        ]
        if self.links:
            notes.append(describe_links(self.links, most))
        if self.passed_over:
            names = _list_names(self.ignored, most)
            notes.append(f"{counted(self.passed_over, 'other file')} ignored: {names}")
        if self.undated:
            times = counted(self.undated, "time")
            whose = "its message has" if self.undated == 1 else "these messages have"
            notes.append(f"{times} could not be read; {whose} the time of the one before")
        return notes

    def line(self, *, dry_run: bool = False) -> str:
        """Return the summary in one line."""
        verb = "would import" if dry_run else "imported"
        line = f"{verb} {self.imported:,}, already there {self.already:,}, skipped {self.skipped:,}"
        line += f", renewed {self.renewed:,}" if self.renewed else ""
        return f"{line}, contexts removed {self.contexts:,}" if self.contexts else line


def describe_links(links: Sequence[str], most: int | None = _NAMES) -> str:
    """Return how many links were passed over, and the paths of some of them, or all."""
    count = counted(len(links), "link")
    return f"{count} passed over, name the target to import it: {_list_names(links, most)}"


def _list_names(names: Sequence[str], most: int | None) -> str:
    first = names[:most]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more:,} more (--json names all)" if more else "")


@dataclass
class ExportReport:
    """The counts of an export so far.

    :param left_out: thinking, which most formats cannot represent.
    :param quoted: messages of roles that the format has no place for, quoted as the user's.
    :param missing: messages that other commands moved or deleted before they were written.
    """

    messages: int = 0
    left_out: int = 0
    quoted: int = 0
    masked: int = 0
    missing: int = 0


#: How the secrets that were found are handled.
_HANDLING = {Mode.MASK: "masked in output", Mode.REMOVE: "removed before storing"}


def report_secrets(
    secrets: Counter[str], modes: set[Mode], config: Config, partition: str | None
) -> str:
    """Describe the secrets found and how they are handled; without modes for a dry run."""
    modes = modes - {Mode.OFF}
    handling = "found"
    if modes == {Mode.MARK}:
        command = masking_command(config, partition)
        handling = f"marked; {command} hides them in output"
    elif len(modes) == 1:
        handling = _HANDLING[min(modes)]
    elif modes:
        handling = "found; reservoir config shows how each partition handles them"
    note = f"{describe_secrets(secrets)} {handling}"
    if not modes & {Mode.MARK, Mode.MASK}:  # nothing of them is stored
        return note
    where = f"-p {shlex.quote(partition)}" if partition else "--all-partitions"
    verb = "see them" if Mode.MARK in modes else "see the messages"
    return f"{note}; {verb} with: reservoir view 0 --secrets {where}"
