"""The worker thread of the MCP server: it runs calls in turn and keeps nothing while idle."""

import asyncio
import threading
from collections.abc import Mapping

import pytest

from reservoir_cli.agents.mcp.server import Worker
from reservoir_cli.agents.mcp.tools import Answers, offered_tools
from reservoir_cli.reservoir import Reservoir


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")


class Opened:
    """Opens stores, and records them."""

    def __init__(self, place) -> None:
        self.place, self.stores, self.closed = place, [], 0

    def __call__(self, *, create, notify) -> Reservoir:
        reservoir = Reservoir.open(self.place, create=create, ready_only=True, notify=notify)
        self.stores.append(reservoir)
        close = reservoir.close

        def closing() -> None:
            self.closed += 1
            close()

        reservoir.close = closing  # type: ignore[method-assign]
        return reservoir


def arguments(text: str) -> Mapping[str, object]:
    return offered_tools()["remember"].check({"text": text})


def test_a_store_is_closed_when_idle_and_opened_again_at_the_next_call(tmp_path):
    opened = Opened(tmp_path / "reservoir.db")

    async def session() -> None:
        worker = Worker(Answers(opened), idle=0.05)
        await worker.answer("remember", arguments("one"), "p")
        while not opened.closed:
            await asyncio.sleep(0.01)
        assert "Stored as [#2]" in await worker.answer("remember", arguments("two"), "p")
        worker.close()

    asyncio.run(session())
    assert (len(opened.stores), opened.closed) == (2, 2)


def test_a_store_stays_open_between_calls(tmp_path):
    opened = Opened(tmp_path / "reservoir.db")

    async def session() -> None:
        worker = Worker(Answers(opened))
        for number in range(1, 4):
            answer = await worker.answer("remember", arguments(f"note {number}"), "p")
            assert f"[#{number}]" in answer
        worker.close()

    asyncio.run(session())
    assert (len(opened.stores), opened.closed) == (1, 1)


def test_a_call_cancelled_before_its_turn_never_starts(tmp_path):
    begin = threading.Event()

    class Waiting(Answers):
        def answer(self, *call):
            begin.wait()
            return super().answer(*call)

    opened = Opened(tmp_path / "reservoir.db")

    async def session() -> str:
        worker = Worker(Waiting(opened))
        first, second, third = (
            asyncio.ensure_future(worker.answer("remember", arguments(text), "p"))
            for text in ("one", "two", "three")
        )
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        begin.set()
        await first
        answer = await third
        worker.close()
        return answer

    assert "[#2]" in asyncio.run(session())
