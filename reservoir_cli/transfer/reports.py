"""What imports and exports report when they are done."""

import shlex
from collections import Counter
from dataclasses import dataclass, field

from reservoir_cli.redaction import Mode, describe_secrets
from reservoir_cli.settings.config import Config, masking_command

#: So many reasons are kept; of a file in which everything is wrong, the others are only counted.
_REASONS = 1_000


@dataclass
class ImportReport:
    """What an import did, or with a dry run would do.

    :param already: messages that were stored before.
    :param forgotten: messages that were forgotten once, and stay so.
    :param expired: messages that are older than ``retention_days``, and left out.
    :param renewed: messages that were stored before, and are longer now.
    :param contexts: contexts printed by Reservoir that were removed from new messages.
    :param ahead: messages whose time is more than a day ahead.
    :param mended: messages in which bytes that are no text were replaced by U+FFFD.
    :param secrets: how many secrets of each kind were found in what was imported.
    :param modes: what was done about secrets, in one partition or another.
    :param passed_over: files of a folder or zip that hold no messages.
    :param conversations: ids of the conversations that were read, whether new or not.
    :param reasons: why something was skipped, and where, up to a thousand.
    :param unreadable: sources that hold nothing but what was skipped.
    """

    imported: int = 0
    already: int = 0
    skipped: int = 0
    forgotten: int = 0
    expired: int = 0
    renewed: int = 0
    contexts: int = 0
    ahead: int = 0
    mended: int = 0
    passed_over: int = 0
    secrets: Counter[str] = field(default_factory=Counter)
    modes: set[Mode] = field(default_factory=set)
    conversations: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Everything that was read, whatever became of it."""
        stored = self.imported + self.already + self.renewed
        return stored + self.skipped + self.forgotten + self.expired + self.contexts

    def add(self, other: "ImportReport") -> None:
        """Add what another import did."""
        self.imported += other.imported
        self.already += other.already
        self.skipped += other.skipped
        self.forgotten += other.forgotten
        self.expired += other.expired
        self.renewed += other.renewed
        self.contexts += other.contexts
        self.ahead += other.ahead
        self.mended += other.mended
        self.passed_over += other.passed_over
        self.secrets += other.secrets
        self.modes |= other.modes
        self.conversations |= other.conversations
        self.reasons += other.reasons[: _REASONS - len(self.reasons)]
        self.unreadable += other.unreadable

    def skip(self, reason: str) -> None:
        """Count something that is no message."""
        self.skipped += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(reason)

    def line(self, *, dry_run: bool = False) -> str:
        """Return the one line a person reads."""
        done = "would import" if dry_run else "imported"
        line = f"{done} {self.imported:,}, already there {self.already:,}, skipped {self.skipped:,}"
        line += f", renewed {self.renewed:,}" if self.renewed else ""
        return f"{line}, contexts taken out {self.contexts:,}" if self.contexts else line


@dataclass
class ExportReport:
    """What an export wrote so far.

    :param left_out: messages that a format has no place for: thinking.
    :param masked: messages with a secret that is redacted.
    """

    messages: int = 0
    left_out: int = 0
    masked: int = 0


#: What was done about the secrets that were found.
_DONE_ABOUT = {
    Mode.MASK: "masked in what is printed",
    Mode.REMOVE: "removed before they are stored",
}


def report_secrets(
    secrets: Counter[str], modes: set[Mode], config: Config, partition: str | None
) -> str:
    """Return what was found, and what was done about it; nothing yet without ``modes``."""
    modes = modes - {Mode.OFF}
    done = "found"
    if modes == {Mode.MARK}:
        command = masking_command(config, partition)
        done = f"marked; {command} hides them in what is printed"
    elif len(modes) == 1:
        done = _DONE_ABOUT[min(modes)]
    elif modes:
        done = "found; reservoir config tells of each partition what is done about them"
    note = f"{describe_secrets(secrets)} {done}"
    if not modes & {Mode.MARK, Mode.MASK}:  # nothing of them is stored
        return note
    where = f"-p {shlex.quote(partition)}" if partition else "--all-partitions"
    return f"{note}; see them with: reservoir view 0 --secrets {where}"
