"""Redact, count and store incoming messages; every import goes through here."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.embed_messages import Indexer
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import ApproximateCounter, TokenCounter, storing_counter
from reservoir_cli.util.progress import Progress


class Added(NamedTuple):
    """Messages of one scope after they were redacted and stored.

    :param messages: the redacted messages.
    :param secrets: the number of secrets of each kind, per message.
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


class Intake:
    """Redacts messages, counts their tokens and stores them in one store."""

    def __init__(
        self,
        store: Store,
        config: Config,
        redactor: Redactor,
        indexer: Indexer,
        *,
        notify: Callable[[str], None] = lambda _: None,
        progress: Progress = lambda *_: None,
    ) -> None:
        self.store, self.redactor, self.indexer = store, redactor, indexer
        self._config, self.notify, self._progress = config, notify, progress
        self._counters: dict[str, TokenCounter] = {}

    def add(
        self,
        scope: Scope,
        messages: Sequence[Message],
        now: datetime,
        *,
        counter: TokenCounter | None = None,
        pair: bool = False,
    ) -> Added:
        """Redact and store messages."""
        partition = str(scope.partition)
        scanned = [self.redactor.scan(message, partition) for message in messages]
        redacted = [message for message, _ in scanned]
        counter = counter or self.counter(partition)
        stored = self.store.add(scope, redacted, counter=counter, now=now, pair=pair)
        return Added(redacted, [secrets for _, secrets in scanned], stored)

    def counter(self, partition: str) -> TokenCounter:
        """Return the token counter of a partition; the approximate one if it cannot be loaded."""
        name = str(self._config.lookup("token_counter", partition)[0])
        if name not in self._counters:
            try:
                self._counters[name] = storing_counter(name)
            except ReservoirError as error:
                self.notify(f"tokens are counted approximately: {error.message}")
                self._counters[name] = ApproximateCounter()
        return self._counters[name]

    def retention(self, partition: str) -> timedelta | None:
        """Return how long messages of a partition are kept; ``None`` means for ever."""
        days = self._config.settings(partition).retention_days
        return None if days is None else timedelta(days=days)
