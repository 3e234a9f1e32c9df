"""Which messages are read to fill a budget, with handmade scores."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from reservoir_cli.context.messages_to_read import find_fillers
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.storage.search.candidates import Candidates

SIZES = st.lists(
    st.one_of(st.integers(1, 60), st.integers(1, 400), st.integers(1, 9_000)), max_size=300
)


def scored(tokens):
    """Return candidates of these sizes, best first."""
    columns = {"ids": np.arange(len(tokens)), "tokens": np.array(tokens, np.int32)}
    candidates = Candidates(**{name: columns.get(name) for name in Candidates._fields})
    empty, priority = np.zeros(len(tokens)), np.linspace(1, 0.9, len(tokens))
    return Scored(candidates, empty, empty, empty, empty, priority, 1.0)


@pytest.mark.parametrize("excerpt_over", [None, 200])
@hypothesis.given(SIZES, st.integers(256, 5_000), st.integers(0, 5_000))
def test_a_larger_budget_reads_a_superset(excerpt_over, tokens, room, extra):
    candidates = scored(tokens)
    assert set(find_fillers(candidates, room, excerpt_over)) <= set(
        find_fillers(candidates, room + extra, excerpt_over)
    )


def test_large_messages_do_not_displace_small_ones():
    candidates = scored([900] * 5 + [10] * 5)
    assert set(find_fillers(candidates, 100, None)) == set(range(5, 10))
    assert set(range(5, 10)) < set(find_fillers(candidates, 1_000, None))


@hypothesis.given(st.lists(st.integers(1, 250), max_size=300), st.integers(1, 5_000))
def test_enough_is_read_to_fill_the_budget(tokens, room):
    read = {index: tokens[index] for index in find_fillers(scored(tokens), room, None)}
    fitting = sum(size for size in tokens if size <= room)
    assert sum(size for size in read.values() if size <= room) >= min(fitting, room)


def test_nothing_is_read_without_a_budget():
    assert find_fillers(scored([10, 10]), 0, 200) == []
