"""Answer tool calls in one thread, and close the store when no call came for a while."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from reservoir_cli.agents.mcp.tools import Answers

#: Seconds without a call after which the store is closed and the model unloaded.
IDLE = 300.0
#: Seconds that a call in progress may take when the session ends.
_SHUTDOWN_TIMEOUT = 2.0


class Worker:
    """Run calls one after the other in a separate thread, and unload the model when idle."""

    def __init__(self, answers: Answers, idle: float = IDLE) -> None:
        self._answers, self._idle = answers, idle
        self._pool = ThreadPoolExecutor(1, "answers")
        self._timer: asyncio.TimerHandle | None = None

    async def answer(self, tool: str, arguments: Mapping[str, Any], partition: str) -> str:
        """Return a tool's answer; a call that is cancelled before its turn never starts."""
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wrap_future(
                self._pool.submit(self._answers.answer, tool, arguments, partition)
            )
        finally:
            self._timer = loop.call_later(self._idle, self._release)

    def _release(self) -> Future[None]:
        return self._pool.submit(self._answers.release)

    def close(self) -> None:
        """Close the store after the call in progress; if that takes too long, leave it open."""
        with suppress(TimeoutError, RuntimeError):
            self._release().result(_SHUTDOWN_TIMEOUT)
