"""Count the lines that a package runs and the steps of its patterns, whatever the load."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

import pytest
from patterns import count_steps

#: The work of each function and pattern.
Work = Counter[str]


class _CountedPattern:
    """A compiled pattern that adds the steps of its matches to some work."""

    def __init__(self, compiled: re.Pattern[str], work: Work) -> None:
        self._compiled, self._work = compiled, work

    def match(self, text: str, position: int = 0) -> re.Match[str] | None:
        self._count(text, [position])
        return self._compiled.match(text, position)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        self._count(text, [0], ending=r"\Z")
        return self._compiled.fullmatch(text)

    def search(self, text: str) -> re.Match[str] | None:
        match = self._compiled.search(text)
        self._count(text, range(match.start() + 1) if match else None)
        return match

    def __getattr__(self, name: str) -> Any:
        """Return a method that goes through the whole text."""

        def through(*arguments: Any) -> Any:
            self._count(arguments[name in ("sub", "subn")], None)
            return getattr(self._compiled, name)(*arguments)

        return through

    def _count(self, text: str, starts: Iterable[int] | None, ending: str = "") -> None:
        pattern = self._compiled.pattern
        counted = f"(?:{pattern}){ending}" if ending else pattern
        self._work[pattern] += count_steps(counted, text, starts, self._compiled.flags)


@contextmanager
def counting_imports(package: str) -> Iterator[tuple[ModuleType, Work]]:
    """Import a package again with patterns that count their steps; yield it and the counts."""
    work, compile_pattern = Work(), re._compile  # type: ignore[attr-defined]
    parent, _, name = package.rpartition(".")
    with pytest.MonkeyPatch.context() as patch:
        for module in [known for known in sys.modules if known.startswith(package)]:
            patch.delitem(sys.modules, module)
        patch.setattr(import_module(parent), name, None, raising=False)
        patch.setattr(re, "_compile", lambda *given: _CountedPattern(compile_pattern(*given), work))
        yield import_module(package), work


def count_lines(call: Callable[[], object], package: str) -> Work:
    """Return how many lines each function of a package runs during a call."""
    lines, before = Work(), sys.gettrace()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "call":
            return trace if frame.f_globals.get("__name__", "").startswith(package) else None
        lines[frame.f_code.co_qualname] += event == "line"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines
