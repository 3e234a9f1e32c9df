"""Run a test for each row of a table as one test, which reports every row that fails."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

#: A skipped row would end the test of the others in silence.
_FAILURES = (Exception, BaseExceptionGroup, pytest.fail.Exception, pytest.skip.Exception)


def each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[..., Any]:
    """Call a test for each row; a tenth of the work of a test for each.

    Takes what ``pytest.mark.parametrize`` takes. Fixtures are made once for all rows, so it is for
    tests that change nothing.
    """
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [_named(row, len(split)) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def of_all_rows(**others: Any) -> None:
            failures = []
            for name, row in table:
                try:
                    test(**others, **dict(zip(split, row, strict=True)))
                except _FAILURES as failure:
                    failure.add_note(f"row: {name:.500}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        signature = inspect.signature(test)
        others = [each for name, each in signature.parameters.items() if name not in split]
        of_all_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        assert table, "no row would be tested"
        return of_all_rows

    return decorate


def _named(row: Any, length: int) -> tuple[str, Sequence[Any]]:
    """Return the name of a row, or what it holds, and its values."""
    if isinstance(row, type(pytest.param())):
        assert not row.marks
        return str(row.id or row.values), row.values
    return repr(row), (row,) if length == 1 else row
