"""The first stage of an import: records with their times, without contexts of Reservoir."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reservoir_cli.messages import Message, Scope
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reports import ImportReport
from reservoir_cli.transfer.returned_contexts import is_excerpt, remove_contexts
from reservoir_cli.util.clock import is_far_ahead

Origin = tuple[str | None, str | None]  # source and source id of a message


class RecordReader:
    """Reads the records of one file, batch by batch.

    :ivar contexts: how many contexts were removed from each message of the last batch.
    :ivar context_titles: ids and titles of conversations whose title was made from a context.
    """

    def __init__(
        self, scope_of: Callable[[Record], Scope], report: ImportReport, where: str, now: datetime
    ) -> None:
        self.contexts: Counter[Origin] = Counter()
        self.context_titles: set[tuple[str, str]] = set()
        self._scope_of, self._report, self._where = scope_of, report, where
        self._clock = _Clock(now)

    def read(self, batch: Sequence[Record | Skipped]) -> dict[Scope, list[Record]]:
        """Return the records of a batch by scope, in the order of the file."""
        self.contexts.clear()
        records: list[Record] = []
        for item in batch:
            if isinstance(item, Skipped):
                self._report.skip(f"{self._where}, {item.place}: {item.reason}")
            elif cleaned := self._remove_contexts(item):
                records.append(cleaned)
        self._clock.look_ahead(record.message for record in records)
        groups: dict[Scope, list[Record]] = {}
        for record in records:
            timed = replace(record, message=self._clock.set_time(record.message))
            groups.setdefault(self._scope_of(record), []).append(timed)
        return groups

    def _remove_contexts(self, record: Record) -> Record | None:
        """Return a record without contexts printed by Reservoir; ``None`` if nothing remains."""
        message, count = remove_contexts(record.message)
        if not count:
            return record
        conversation, content = record.conversation, record.message.content
        if conversation and conversation.title and is_excerpt(conversation.title, content):
            self.context_titles.add((conversation.id, conversation.title))
        if message is None:
            self._report.contexts += count
            return None
        self.contexts[message.source, message.source_id] += count
        return replace(record, message=message, vectors=None)


@dataclass
class _Clock:
    """Gives records the previous time, or the first or the import's; none that is far ahead."""

    now: datetime
    previous: datetime | None = None
    begun: bool = False

    def look_ahead(self, messages: Iterable[Message]) -> None:
        if not self.begun:
            self.previous = next(filter(None, map(self._usable_time, messages)), None)
        self.begun = True

    def set_time(self, message: Message) -> Message:
        if message.created_at is None:
            return replace(message, created_at=self.previous)
        self.previous = self._usable_time(message) or self.previous
        return message

    def _usable_time(self, message: Message) -> datetime | None:
        return None if is_far_ahead(message.created_at, self.now) else message.created_at
