"""A table of rows is one test, which names all rows that fail."""

import inspect

import pytest
from each import each


def test_every_row_is_tried_and_each_failure_is_named():
    tried = []

    @each(("base", "plus"), [(1, 2), (3, 4)])
    @each("factor", [5, pytest.param(6, id="six"), 7])
    def product_is_odd(base: int, plus: int, factor: int, fixture: str) -> None:
        tried.append((base, plus, factor, fixture))
        if factor == 7:
            pytest.fail("seven")
        assert (base + plus) * factor % 2

    assert [*inspect.signature(product_is_odd).parameters] == ["fixture"]
    with pytest.raises(BaseExceptionGroup, match="2 of 2 rows fail") as failed:
        product_is_odd(fixture="f")
    assert tried == [(b, p, f, "f") for b, p in ((1, 2), (3, 4)) for f in (5, 6, 7)]
    first = failed.value.exceptions[0]
    assert first.__notes__ == ["row: (1, 2)"]
    assert [each.__notes__ for each in first.exceptions] == [["row: six"], ["row: 7"]]


def test_a_table_without_rows_is_an_error():
    with pytest.raises(AssertionError, match="no row would be tested"):
        each("x", [])(lambda x: None)
