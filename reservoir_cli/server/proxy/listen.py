"""Read an answer along as it passes, and store the exchange when it has ended."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from reservoir_cli.messages import Scope
from reservoir_cli.server.proxy.answers import Answer, taker
from reservoir_cli.server.proxy.events import Reader, Unreadable
from reservoir_cli.server.proxy.request import ParsedRequest
from reservoir_cli.server.stores import StoreThread

if TYPE_CHECKING:
    from reservoir_cli.transfer.exchanges import Exchange


class Listener:
    """Listens to one answer.

    :param place: partition and instance to store it in.
    """

    def __init__(
        self, writer: StoreThread, path: str, request: ParsedRequest, place: tuple[str, str]
    ) -> None:
        self._writer, self._path = writer, path
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
        words = [] if self._answer.cached is None else [f"cached={self._answer.cached}"]
        if exchange is None:
            return words
        self._writer.submit(lambda reservoir: reservoir.store_exchange(exchange))
        return [*words, "cut" if exchange.partial else "stored"]

    def _exchange(self) -> "Exchange | None":
        from reservoir_cli.transfer.exchanges import Exchange

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
        )
