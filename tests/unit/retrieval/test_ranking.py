"""Priority, recency and the similarity score."""

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import greatest
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates, Posting


@each(("rank", "score"), [(0, 1.0), (1, 1 / 2), (3, 1 / 3), (7, 1 / 4), (1_023, 1 / 11)])
def test_recency_is_one_over_one_plus_the_logarithm_of_the_rank(rank, score):
    assert ranking.recency(np.array([rank]))[0] == pytest.approx(score)


def test_recency_decreases_with_the_rank_and_never_reaches_zero():
    scores = ranking.recency(np.arange(10_000))
    assert (np.diff(scores) < 0).all()
    assert scores[-1] > 0.05


@each(
    ("values", "scaled"),
    [
        pytest.param([2, 4, 3], [0, 1, 0.5], id="§4 mm to 0…1"),
        pytest.param([0, 0], [0, 0], id="§4 mm of equal values that are 0"),
        pytest.param([0.2, 0.2], [1, 1], id="§4 mm of other equal values"),
        pytest.param([-1, 1, 0], [0, 1, 0.5], id="§4 mm of negative cosines"),
        pytest.param([], [], id="§4 mm of nothing"),
    ],
)
def test_min_max_scales_to_the_range_from_0_to_1(values, scaled):
    assert ranking.min_max(np.array(values, np.float32)) == pytest.approx(scaled)


# The whole formula, compared with one that is written message by message.

GAP = 1_000


def draw_candidates(random: np.random.Generator, count: int) -> Candidates:
    """Draw candidates of conversations and of instances without them, in order of time."""
    created_at = np.cumsum(random.choice([1, 10, 2 * GAP], count)).astype(np.int64)
    thread = random.integers(0, 4, count)
    postings = []
    for _ in range(random.integers(0, 4)):
        positions = np.flatnonzero(random.random(count) < 0.3)
        postings.append(Posting(positions, random.integers(1, 4, len(positions)).astype(np.int32)))
    cosine = random.uniform(-0.2, 1, count).astype(np.float32)
    cosine[random.random(count) < 0.2] = np.nan
    return Candidates(
        ids=np.arange(count),
        created_at=created_at,
        tokens=np.ones(count, np.int32),
        terms=random.integers(1, 200, count).astype(np.int32),
        asks=random.random(count) < 0.4,
        own=np.ones(count, bool),
        thread=thread,
        loose=thread % 2 == 0,
        cosine=cosine,
        by_id=np.arange(count),
        postings=tuple(postings),
        absent=(),
        passages=random.integers(1, 9, count).astype(np.int32),
        cache={},
    )


def sessions_by_hand(candidates: Candidates) -> list[list[int]]:
    """Return the positions of each session's messages, in order of time."""
    sessions: list[list[int]] = []
    open_sessions: dict[int, list[int]] = {}
    for index, thread in enumerate(candidates.thread.tolist()):
        session = open_sessions.get(thread)
        silence = (
            session and candidates.created_at[index] - candidates.created_at[session[-1]] > GAP
        )
        if session is None or (candidates.loose[index] and silence):
            session = open_sessions[thread] = []
            sessions.append(session)
        session.append(index)
    return sessions


def bm25_by_hand(candidates: Candidates) -> np.ndarray:
    count = len(candidates.ids)
    lengths, neighbours = np.zeros(count), {}
    for session in sessions_by_hand(candidates):
        for offset, index in enumerate(session):
            neighbours[index] = session[max(0, offset - 2) : offset + 3]
            borrowed = [
                min(60, candidates.terms[neighbour])
                for neighbour in neighbours[index]
                if neighbour != index
            ]
            lengths[index] = candidates.terms[index] + sum(borrowed)
    scores = np.zeros(count)

    def share(index: int, neighbour: int) -> float:
        return 1.0 if neighbour == index else 0.3 * min(1, 60 / candidates.terms[neighbour])

    for posting in candidates.postings:
        term_counts = dict(zip(posting.positions.tolist(), posting.counts.tolist(), strict=True))
        counts = [
            sum(
                share(index, neighbour) * term_counts.get(neighbour, 0)
                for neighbour in neighbours[index]
            )
            for index in range(count)
        ]
        holding = sum(frequency > 0 for frequency in counts)
        rarity = max(np.log((count - holding + 0.5) / (holding + 0.5)), 1e-6)
        for index, frequency in enumerate(counts):
            norm = 1.2 * (0.25 + 0.75 * lengths[index] / lengths.mean())
            scores[index] += rarity * 2.2 * frequency / (frequency + norm) if frequency else 0.0
    return scores


def similarity_by_hand(candidates: Candidates, dates: np.ndarray) -> np.ndarray:
    count = len(candidates.ids)
    embedded = ~np.isnan(candidates.cosine)
    own_scores = ranking.min_max(bm25_by_hand(candidates))
    meaning = ranking.min_max(
        candidates.cosine[embedded] - 0.03 * np.log(candidates.passages[embedded])
    )
    own_scores[embedded] = 0.6 * meaning + 0.4 * own_scores[embedded]
    totals = np.zeros(count)

    def reply(index: int) -> float:
        return 0.2 * min(1, 60 / candidates.terms[index])

    def asks(index: int) -> bool:
        return bool(candidates.asks[index])

    for session in sessions_by_hand(candidates):
        linked = [
            own_scores[index]
            + (
                reply(index) * own_scores[session[offset - 1]]
                if offset and asks(session[offset - 1])
                else 0
            )
            for offset, index in enumerate(session)
        ]
        for offset, index in enumerate(session):
            totals[index] = linked[offset] + 0.3 * max(linked[max(0, offset - 10) : offset + 11])
            neighbours = slice(max(0, offset - 4), offset + 5)
            short = np.clip(2 - np.mean(candidates.terms[session[neighbours]]) / 60, 0, 1)
            penalty = 0.07 * own_scores[index] if asks(index) else 0
            totals[index] += short * (
                0.3 * (np.mean(linked[neighbours]) - linked[offset]) - penalty
            )
    return ranking.min_max(totals + dates)


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_scores_equal_the_formula_written_by_hand(seed, count):
    random = np.random.default_rng(seed)
    candidates = draw_candidates(random, count)
    dates = random.random(count) * (random.random() < 0.5)
    settings = Settings(session_gap=GAP / 1000)
    scored = ranking.score(candidates, settings, 0, dates)
    np.testing.assert_allclose(scored.bm25, bm25_by_hand(candidates), atol=1e-9)
    np.testing.assert_allclose(scored.similarity, similarity_by_hand(candidates, dates), atol=1e-9)
    np.testing.assert_allclose(
        scored.priority, 0.7 * scored.similarity + 0.3 * scored.recency, atol=1e-12
    )


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.5, 0.9]), max_size=40), st.integers(0, 50))
def test_the_best_are_in_order_and_the_newest_first_among_equals(scores, count):
    best = ranking.best(np.array(scores), count).tolist()
    expected = sorted(range(len(scores)), key=lambda index: (-scores[index], -index))
    assert best == expected[:count]


def test_messages_to_leave_out_are_never_among_the_best():
    scores = np.array([0.5, -np.inf, -1.0, -np.inf])
    assert ranking.best(scores, 3).tolist() == [0, 2]
    assert ranking.best(scores, 9).tolist() == [0, 2]


def one_conversation(cosine: list[float], *, words: int, asks: tuple[int, ...] = ()) -> Candidates:
    """Return candidates of one conversation with equally many words."""
    positions = np.arange(len(cosine))
    return Candidates(
        ids=positions,
        created_at=positions.astype(np.int64),
        tokens=np.ones(len(cosine), np.int32),
        terms=np.full(len(cosine), words, np.int32),
        asks=np.isin(positions, asks),
        own=np.ones(len(cosine), bool),
        thread=np.zeros(len(cosine), np.int64),
        loose=np.zeros(len(cosine), bool),
        cosine=np.array(cosine, np.float32),
        by_id=positions,
        postings=(),
        absent=(),
        passages=np.ones(len(cosine), np.int32),
        cache={},
    )


def similarity_of(candidates: Candidates) -> np.ndarray:
    return ranking.score(candidates, Settings(), 0, np.zeros(len(candidates.ids))).similarity


#: Two messages are equally near: one among near messages, one among others.
AMONG_NEAR, AMONG_OTHERS = 2, -3
UNEVEN = [0.5, 0.5, 0.6, 0.5, 0.5, *[0.0] * 9, 0.9, *[0.0] * 9, 0.0, 0.0, 0.6, 0.0, 0.0]


def test_in_short_messages_one_among_matching_neighbours_ranks_higher():
    short = similarity_of(one_conversation(UNEVEN, words=10))
    long = similarity_of(one_conversation(UNEVEN, words=400))
    assert short[AMONG_NEAR] - short[AMONG_OTHERS] > long[AMONG_NEAR] - long[AMONG_OTHERS] + 0.05


@each(("words", "loses"), [(10, True), (60, True), (120, False), (400, False)])
def test_in_short_messages_questions_rank_below_statements(words, loses):
    similarity = similarity_of(one_conversation([0.9, 0.1, 0.8, 0.1, 0.8], words=words, asks=(4,)))
    assert bool(similarity[4] < similarity[2]) is loses


def test_the_mean_of_neighbours_ends_with_their_session():
    candidates = one_conversation([0.0] * 7, words=10)._replace(
        thread=np.array([0, 0, 0, 1, 1, 1, 1])
    )
    sessions = ranking.group_sessions(candidates, GAP)
    means = ranking.window_mean(np.array([3.0, 0, 0, 8, 0, 0, 0]), sessions, 2)
    np.testing.assert_allclose(means, [1, 1, 1, 8 / 3, 2, 2, 0])


@each("size", [2, 63, 700, 20_000])
@each("different", [1, 3, 50, 10**6])
@each("ordered", [False, True])
def test_the_greatest_equal_those_of_sorting(size, different, ordered):
    values = np.random.default_rng(size).integers(0, different, size).astype(np.float32)
    if ordered:  # no sample is representative
        values.sort()
    for count in {1, size // 100 or 1, size // 2, size - 1}:
        threshold = np.sort(values)[size - count]
        assert greatest(values, count).tolist() == np.flatnonzero(values >= threshold).tolist()


def test_a_misleading_sample_does_not_change_the_result():
    values = np.zeros(10_000)
    values[::64] = 1  # exactly the sampled ones
    assert len(greatest(values, 100)) == 157
    assert len(greatest(values, 200)) == 10_000


@each(
    ("around", "elsewhere", "asks", "cosine", "expected"),
    [
        pytest.param([], [0, 1, 2], False, 0.6, 0.25, id="the words are elsewhere"),
        pytest.param([], [0, 1, 2], False, np.nan, 0.25, id="the words alone, without a vector"),
        pytest.param([0, 1], [0, 1, 2], False, 0.6, 1, id="some of them are around the date"),
        pytest.param([], [0, 1, 2], False, 0.4, 1, id="but the meaning is around the date"),
        pytest.param([], [0], False, 0.6, 1, id="one word elsewhere says little"),
        pytest.param([], [0, 1, 2], True, 0.6, 1, id="a question elsewhere is no answer"),
        pytest.param([], [], False, 0.6, 1, id="no message has a word"),
    ],
)
def test_a_date_counts_less_if_the_words_of_the_question_are_elsewhere(
    around, elsewhere, asks, cosine, expected
):
    candidates = draw_candidates(np.random.default_rng(0), 9)
    holding = [[4] * (word in around) + [7] * (word in elsewhere) for word in range(3)]
    postings = tuple(
        Posting(np.array(positions, np.intp), np.ones(len(positions), np.int32))
        for positions in holding
        if positions
    )
    candidates = candidates._replace(postings=postings, asks=np.full(9, asks))
    candidates = candidates._replace(cosine=np.full(9, 0.5, np.float32))
    candidates.cosine[7] = cosine
    dates = np.where(np.arange(9) == 4, 1.0, 0.0)
    assert ranking.trust_dates(dates, candidates, None)[4] == expected
