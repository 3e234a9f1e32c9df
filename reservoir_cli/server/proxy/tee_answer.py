"""Read a copy of an answer while it is relayed, and store the exchange when it has ended."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from anyio.lowlevel import checkpoint

from reservoir_cli.context.run_statistics import answer_record
from reservoir_cli.messages import Scope
from reservoir_cli.server.proxy.answer import Answer
from reservoir_cli.server.proxy.compression import Undecodable
from reservoir_cli.server.proxy.parse_request import ParsedRequest
from reservoir_cli.server.proxy.provider_histories import ProviderHistories
from reservoir_cli.server.proxy.providers.wire_protocol import WireProtocol
from reservoir_cli.server.proxy.split_stream import Reader
from reservoir_cli.server.proxy.store_in_pauses import ExchangeQueue
from reservoir_cli.server.state import StoreThread
from reservoir_cli.transfer.proxied.exchange import Exchange
from reservoir_cli.transfer.reading.foreign_values import obj


class Listener:
    """Read one answer, record the provider's token counts, and store the exchange.

    :param named_scope: the client chose the partition; else it is stored where its conversation is.
    :param storing: whether to store the exchange; otherwise only the counts are recorded.
    """

    def __init__(
        self,
        writer: StoreThread,
        queue: ExchangeQueue,
        histories: ProviderHistories,
        protocol: WireProtocol,
        request: ParsedRequest,
        scope: tuple[str, str],
        *,
        storing: bool,
        named_scope: bool = True,
    ) -> None:
        self._storing, self._named_scope = storing, named_scope
        self._writer, self._queue, self._histories = writer, queue, histories
        self._protocol = protocol
        self._request, self._scope = request, Scope(*scope)
        self._answer, self._asked_at = Answer(), datetime.now(UTC)
        self._reader: Reader | None = None

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Choose a reader by the status and headers; the body of an error is not read."""
        if status != 200:
            return

        def collect(value: Any) -> None:
            self._protocol.collect(self._answer, obj(value))

        try:
            self._reader = Reader(
                headers.get("content-type", ""), headers.get("content-encoding", ""), collect
            )
        except Undecodable:
            return

    async def feed(self, chunk: bytes) -> None:
        """Read a chunk of the answer, and let other requests run meanwhile; never raise."""
        if self._reader is None:
            return
        try:
            for _ in self._reader.steps(chunk):
                await checkpoint()
        except Exception:  # whatever is wrong with the answer, it must still be relayed
            self._reader = None

    async def finish(self) -> list[str]:
        """Queue the exchange to be stored; return notes for the log."""
        if self._reader is None:
            return []
        try:
            for _ in self._reader.last_steps():
                await checkpoint()
            self._answer.complete |= self._reader.is_done  # some providers give no other reason
            exchange = self._exchange()
        except Exception:
            return ["not stored"]
        if reference := self._answer.reference:
            partition, conversation = str(self._scope.partition), self._request.conversation
            self._histories.add(partition, reference, conversation)
        notes = self._record_counts()
        if exchange is None or not (exchange.is_stored or exchange.reported):
            return notes
        self._queue.add(exchange)
        if not exchange.is_stored:
            return notes
        return [*notes, "cut" if exchange.partial else "stored"]

    def _record_counts(self) -> list[str]:
        tokens, cached = self._answer.tokens, self._answer.cached
        if cached is None:
            return []
        model = self._request.model
        self._writer.record([answer_record(self._scope, model, tokens, cached)])
        return [f"cached={cached}"]

    def _exchange(self) -> Exchange | None:
        message = self._answer.message()
        if message is None and not self._answer.calls:
            return None
        return Exchange(
            self._scope,
            self._request.conversation,
            self._request.model,
            self._request.messages,
            message and replace(message, source_id=self._request.reply_id),
            partial=not self._answer.complete or self._answer.failed,
            named=self._request.named,
            moves=self._request.named and not self._named_scope,
            is_whole=self._request.continues is None,
            asked_at=self._asked_at,
            reported=self._answer.text_tokens,
            is_stored=self._storing,
        )
