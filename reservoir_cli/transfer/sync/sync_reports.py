"""The reports of a sync."""

from dataclasses import dataclass, field

from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.sync.history_sources import Source


@dataclass
class SourceReport:
    """The report of a sync for one source."""

    source: Source
    files: int = 0
    read: int = 0  #: Files read because they are new or have changed.
    held: int = 0  #: Files whose last turn is unfinished, and left for a later sync.
    failures: list[str] = field(default_factory=list)
    imports: ImportReport = field(default_factory=ImportReport)

    @property
    def read_total(self) -> int:
        """Count what was read of the files so far, stored or not, and files read in part."""
        return self.imports.total + self.held


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The report of a sync; one is ``busy`` if another sync was running, and did nothing."""

    sources: tuple[SourceReport, ...] = ()
    busy: bool = False

    @property
    def imported(self) -> int:
        """Count the messages that are new or were replaced."""
        return sum(source.imports.imported + source.imports.renewed for source in self.sources)
