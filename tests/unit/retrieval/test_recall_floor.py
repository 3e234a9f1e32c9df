"""The recall floor decides whether a store holds anything about a question."""

from dataclasses import replace

import numpy as np
import pytest

from reservoir_cli.retrieval.recall_floor import (
    FLOORS,
    WORDS_FLOOR,
    highest_floor,
    recall_floor,
    relevance,
)
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.candidates import Candidates, Posting, TalkScores

NOWHERE = np.zeros(4, bool)
#: The bonus on the relevance of a question of two words, and of one of four.
TWO_WORDS, FOUR_WORDS = 0.3 * (1 / 2 - 0.3), 0.3 * (1 / 4 - 0.3)


def posting_at(*positions):
    return Posting(np.array(positions), np.ones(len(positions), np.int32))


def candidates(cosine, *postings, absent=0, talk=None):
    count = len(cosine)
    return Candidates(
        ids=np.arange(count),
        created_at=np.arange(count),
        tokens=np.ones(count, np.int32),
        terms=np.ones(count, np.int32),
        asks=np.zeros(count, bool),
        own=np.ones(count, bool),
        thread=np.zeros(count, np.int64),
        loose=np.zeros(count, bool),
        cosine=np.array(cosine, np.float32),
        by_id=np.arange(count),
        postings=postings,
        absent=absent,
        passages=np.ones(count, np.int32),
        talk=talk,
    )


def relevance_of(pool, *, dates=0.0, running=None):
    count = len(pool.ids)
    running = np.zeros(count, bool) if running is None else running
    return relevance(pool, np.full(count, dates), running)


def test_relevance_is_the_maximum_of_cosine_plus_four_tenths_of_the_words():
    pool = candidates([0.3, 0.1, 0, 0], posting_at(1), posting_at(1))
    assert relevance_of(pool) == pytest.approx(0.1 + 0.4 + TWO_WORDS)


def test_an_unknown_stem_weighs_as_much_as_the_rarest():
    pool = candidates([0, 0, 0, 0], posting_at(2), absent=3)
    assert relevance_of(pool) == pytest.approx(0.4 / 4 + FOUR_WORDS)


def test_a_common_word_weighs_less_than_a_rare_one():
    common, rare = posting_at(0, 1, 2), posting_at(3)
    shares = [relevance_of(candidates([0] * 4, posting, absent=1)) for posting in (common, rare)]
    assert shares[0] < shares[1]


def test_without_a_vector_the_words_alone_decide():
    pool = candidates([np.nan, 0.1, 0.1, 0.1], posting_at(0), posting_at(0, 1))
    assert relevance_of(pool) == pytest.approx(1 + TWO_WORDS)


def test_a_question_of_many_words_needs_more():
    few, many = (candidates([0.4, 0, 0, 0], *[posting_at(3)] * words) for words in (2, 10))
    assert relevance_of(few) == pytest.approx(0.4 + 0.3 * (1 / 2 - 0.3))
    assert relevance_of(many) == pytest.approx(0.4 + 0.3 * (1 / 10 - 0.3))


def test_without_embeddings_the_number_of_words_does_not_matter():
    pool = candidates([np.nan] * 4, posting_at(0), posting_at(1), absent=2)
    assert relevance_of(pool) == pytest.approx(1 / 4)


def test_relevance_is_never_below_zero():
    assert relevance_of(candidates([0.01] * 4, absent=20)) == 0


def test_a_message_of_a_requested_day_is_relevant():
    assert relevance_of(candidates([0.1] * 4), dates=1.0) == pytest.approx(0.1 + 0.4 + TWO_WORDS)


def test_nothing_is_relevant_in_an_empty_store():
    assert relevance_of(candidates([])) == 0


def test_a_follow_up_matches_by_either_query_but_not_by_its_own_session():
    talk = TalkScores(np.array([0.9, 0.5, 0, 0], np.float32), ((0.5, (posting_at(1),)),))
    pool = candidates([0.1] * 4, talk=talk)
    running = np.array([True, False, False, False])
    assert relevance_of(pool, running=running) == pytest.approx(0.5 + 0.4 + TWO_WORDS)
    assert relevance_of(pool, running=~NOWHERE) == pytest.approx(0.1 + TWO_WORDS)
    assert relevance_of(replace(pool, talk=None), running=running) == pytest.approx(0.1 + TWO_WORDS)


def test_the_floor_is_the_setting_or_else_that_of_the_model():
    (model_id,) = FLOORS
    settings = Settings()
    assert recall_floor(settings, model_id) == FLOORS[model_id] > 0
    assert recall_floor(settings, "another model") == 0
    assert recall_floor(settings, None) == WORDS_FLOOR
    assert recall_floor(replace(settings, recall_floor=0.0), model_id) == 0
    assert recall_floor(replace(settings, recall_floor=0.5), "another model") == 0.5


@pytest.mark.model
def test_the_measured_floor_is_that_of_the_default_model(embedder):
    assert embedder.model_id in FLOORS


@pytest.mark.parametrize(
    ("stored", "floor"),
    [
        ("0.25", 0.25),
        ("0.0", 0),
        (None, 0.36),
        ("", 0.36),
        ("odd", 0.36),
        ("nan", 0.36),
        ("7", 0.36),
    ],
)
def test_a_calibrated_floor_overrides_the_measured_one_but_not_the_setting(stored, floor):
    (model_id,) = FLOORS
    settings = Settings()
    assert recall_floor(settings, model_id, stored) == floor
    assert recall_floor(replace(settings, recall_floor=0.5), model_id, stored) == 0.5
    assert recall_floor(settings, None, stored) == WORDS_FLOOR


@pytest.mark.parametrize(("count", "lost"), [(1, 0), (100, 0), (499, 0), (500, 1), (1_000, 2)])
def test_the_highest_floor_refuses_two_in_a_thousand_questions(count, lost):
    related = np.random.default_rng(3).permutation(np.arange(1, count + 1) / 1_000)
    floor = highest_floor(related)
    assert np.sum(related < floor) == lost
    assert np.sum(related < floor + 0.0011) > lost
