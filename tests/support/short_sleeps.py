"""Let uvicorn end at once: it looks every 0.1 s whether it should, and then waits as long again."""

import asyncio
from typing import Any

import uvicorn.server


class _Asyncio:
    """The module, with shorter sleeps."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(delay: float) -> None:
        await asyncio.sleep(min(delay, 0.003))


uvicorn.server.asyncio = _Asyncio()  # type: ignore[assignment]
