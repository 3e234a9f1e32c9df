"""Ingest messages into a store: every import goes through here, and is redacted and embedded."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from reservoir_cli.errors import ReservoirError, TextRemainsError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.redaction import Mode, Redactor
from reservoir_cli.retrieval.embed_messages import Indexer
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import ApproximateCounter, TokenCounter, storing_counter
from reservoir_cli.transfer.reports import ImportReport, report_secrets
from reservoir_cli.transfer.returned_contexts import remove_contexts
from reservoir_cli.util.clock import is_far_ahead
from reservoir_cli.util.progress import Progress, counted, no_progress


class Added(NamedTuple):
    """Messages of one scope after they were redacted, with their secrets by kind.

    :param stored: the stored message, or ``None`` if it was stored before; per message.
    """

    messages: list[Message]
    secrets: list[Counter[str]]
    stored: list[StoredMessage | None]

    def secrets_of(self, new: Sequence[bool]) -> Counter[str]:
        """Count the secrets of the new messages, by kind."""
        total: Counter[str] = Counter()
        for secrets, is_new in zip(self.secrets, new, strict=True):
            total += secrets if is_new else Counter()
        return total


class Ingestor:
    """Ingests messages into one store."""

    def __init__(
        self,
        store: Store,
        config: Config,
        redactor: Redactor,
        indexer: Indexer,
        *,
        notify: Callable[[str], None] = lambda _: None,
        progress: Progress = no_progress,
    ) -> None:
        self.store, self.redactor, self.indexer = store, redactor, indexer
        self.config, self.notify, self.progress = config, notify, progress
        self._counters: dict[str, TokenCounter] = {}

    def ingest(
        self, scope: Scope, messages: Sequence[Message], *, embed: bool = True, pair: bool = False
    ) -> list[StoredMessage]:
        """Store messages, and return the new ones; ``pair`` links replies to open questions."""
        now = datetime.now(UTC)
        cleaned = [remove_contexts(message) for message in messages]
        if contexts := sum(result.contexts for result in cleaned):
            has_message = any(result.contexts and result.message for result in cleaned)
            rest = "their questions kept" if has_message else "nothing else to store"
            self.notify(f"contexts removed, {rest}: {contexts:,}")
        remaining = [result.message for result in cleaned if result.message]
        added = self.add(scope, remaining, now, pair=pair)
        report = ImportReport(modes={self.redactor.mode(str(scope.partition))})
        new = [stored is not None for stored in added.stored]
        report.ahead = sum(
            is_far_ahead(stored.created_at, now) for stored in added.stored if stored
        )
        report.secrets = added.secrets_of(new)
        self.report(report, report.modes, scope.partition)
        if embed:
            self.indexer.embed_if_possible(scope, newest=len(added.stored))
        return [stored for stored in added.stored if stored is not None]

    def edit(self, old: StoredMessage, text: str) -> None:
        """Replace and embed a text; ReservoirError if a reader keeps the old one in the files."""
        edited = replace(old.as_new(), content=text, secrets=())
        message, secrets = self.redactor.scan(edited, old.partition)
        # Only the text changes: keep the source and its id, even if they contain a secret.
        message = replace(message, source=old.source, source_id=old.source_id)
        counter = self.counter(old.partition)
        erased = self.store.edit(old.key, message, counter=counter, now=datetime.now(UTC))
        modes = {self.redactor.mode(old.partition)}
        self.report(ImportReport(modes=modes, secrets=secrets), modes, old.partition)
        self.indexer.embed_if_possible(Scope(old.partition), newest=1)
        if not erased:
            raise TextRemainsError("the text is replaced, but parts of the old one")

    def report(self, report: ImportReport, modes: set[Mode], partition: str | None) -> None:
        """Notify the user of secrets and of times in the future among imported messages."""
        if report.ahead:
            messages = counted(report.ahead, "message")
            self.notify(f"{messages} with a time more than a day ahead, kept as given")
        if report.secrets:
            self.notify(report_secrets(report.secrets, modes, self.config, partition))

    def add(
        self, scope: Scope, messages: Sequence[Message], now: datetime, *, pair: bool = False
    ) -> Added:
        """Redact and store messages."""
        partition = str(scope.partition)
        scanned = [self.redactor.scan(message, partition) for message in messages]
        redacted = [message for message, _ in scanned]
        counter = self.counter(partition)
        stored = self.store.add(scope, redacted, counter=counter, now=now, pair=pair)
        return Added(redacted, [secrets for _, secrets in scanned], stored)

    def counter(self, partition: str) -> TokenCounter:
        """Return the token counter of a partition; the approximate one if it cannot be loaded."""
        name = str(self.config.lookup("token_counter", partition)[0])
        if name not in self._counters:
            try:
                self._counters[name] = storing_counter(name)
            except ReservoirError as error:
                self.notify(f"tokens are counted approximately: {error.message}")
                self._counters[name] = ApproximateCounter()
        return self._counters[name]
