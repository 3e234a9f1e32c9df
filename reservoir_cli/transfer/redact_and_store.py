"""The step that every message passes on its way in: it is redacted, counted and stored."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.indexing import Indexer
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.base import Store
from reservoir_cli.tokens import ApproximateCounter, TokenCounter, storing_counter
from reservoir_cli.util.progress import Progress


class Added(NamedTuple):
    """Messages of one scope after they were redacted and stored.

    :param messages: as they were given to the store.
    :param secrets: what was found in each.
    :param stored: ``None`` for one that was stored before.
    """

    messages: list[Message]
    secrets: list[Counter[str]]
    stored: list[StoredMessage | None]

    def secrets_of(self, new: Sequence[bool]) -> Counter[str]:
        """Return what was found in the messages that are new."""
        found: Counter[str] = Counter()
        for secrets, is_new in zip(self.secrets, new, strict=True):
            found += secrets if is_new else Counter()
        return found


class Intake:
    """Redacts the messages of one store, counts their tokens and stores them."""

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
        """Redact messages and store them."""
        partition = str(scope.partition)
        scanned = [self.redactor.scan(message, partition) for message in messages]
        redacted = [message for message, _ in scanned]
        counter = counter or self.counter(partition)
        stored = self.store.add(scope, redacted, counter=counter, now=now, pair=pair)
        return Added(redacted, [secrets for _, secrets in scanned], stored)

    def counter(self, partition: str) -> TokenCounter:
        """Return the counter of a partition; without it tokens are counted approximately."""
        name = str(self._config.lookup("token_counter", partition)[0])
        if name not in self._counters:
            try:
                self._counters[name] = storing_counter(name)
            except ReservoirError as error:
                self.notify(f"tokens are counted approximately: {error.message}")
                self._counters[name] = ApproximateCounter()
        return self._counters[name]

    def retention(self, partition: str) -> timedelta | None:
        """Return how long messages of a partition are kept; ``None`` for ever."""
        days = self._config.settings(partition).retention_days
        return None if days is None else timedelta(days=days)
