"""Read an answer along as it passes, and store the exchange when it has ended."""

from collections.abc import Mapping
from dataclasses import replace

from reservoir_cli.messages import Scope
from reservoir_cli.server.proxy.collect_answer import Answer, taker
from reservoir_cli.server.proxy.request import ParsedRequest
from reservoir_cli.server.proxy.split_stream import Reader, Unreadable
from reservoir_cli.server.proxy.store_in_pauses import ExchangeQueue
from reservoir_cli.server.store_threads import StoreThread
from reservoir_cli.transfer.store_exchange import Exchange


class Listener:
    """Listens to one answer.

    :param writer: records what the provider counts.
    :param queue: stores what was said.
    :param place: partition and instance to store it in.
    :param storing: keep what is said; else only what the provider counts.
    """

    def __init__(
        self,
        writer: StoreThread,
        queue: ExchangeQueue,
        path: str,
        request: ParsedRequest,
        place: tuple[str, str],
        *,
        storing: bool,
    ) -> None:
        self._storing = storing
        self._writer, self._queue, self._path = writer, queue, path
        self._request, self._scope = request, Scope(*place)
        self._answer = Answer()
        self._reader: Reader | None = None

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin with the head of the answer; an error's body is not read."""
        take = taker(self._path, self._answer)
        if status != 200 or take is None:
            return
        try:
            self._reader = Reader(
                headers.get("content-type", ""), headers.get("content-encoding", ""), take
            )
        except Unreadable:
            return

    def feed(self, piece: bytes) -> None:
        """Read a piece of the answer; never fails."""
        if self._reader is None:
            return
        try:
            self._reader.feed(piece)
        except Exception:  # the answer passes, whatever is in it
            self._reader = None

    def finish(self) -> list[str]:
        """Store the exchange; return words for the log."""
        if self._reader is None:
            return []
        try:
            self._reader.end()
            exchange = self._exchange()
        except Exception:
            return ["not stored"]
        words = self._count()
        if exchange is None or not self._storing:
            return words
        self._queue.add(exchange)
        return [*words, "cut" if exchange.partial else "stored"]

    def _count(self) -> list[str]:
        """Record how much of the request the provider had in its cache; return it for the log."""
        tokens, cached = self._answer.tokens, self._answer.cached
        if cached is None:
            return []
        model = self._request.model
        self._writer.submit_in_pause(
            lambda store: store.runs.record_answer(self._scope, model, tokens, cached)
        )
        return [f"cached={cached}"]

    def _exchange(self) -> Exchange | None:
        message = self._answer.message()
        if message is None:
            return None
        return Exchange(
            self._scope,
            self._request.conversation,
            self._request.model,
            self._request.messages,
            replace(message, source_id=self._request.reply_id),
            partial=not self._answer.complete or self._answer.failed,
            named=self._request.named,
        )
