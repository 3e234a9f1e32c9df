"""The recall floor decides whether a store holds anything about a question."""

import numpy as np
import pytest
from each import each

from reservoir_cli.retrieval.recall_floor import (
    FLOORS,
    WORDS_FLOOR,
    count_absent,
    fit,
    highest_floor,
    recall_floor,
)
from reservoir_cli.settings.schema import Settings
from reservoir_cli.storage.search.candidates import Candidates, Posting, TalkScores

NOWHERE = np.zeros(4, bool)
#: The weight of a word that one of four messages contains.
RAREST = np.log1p((4 - 1 + 0.5) / 1.5)


def bonus(words, rarest=RAREST):
    """Return what a question's number of words and the store's size add to a relevance."""
    return 0.4 * (1 / words - 0.3) - 0.1 * np.log(max(1, rarest))


TWO_WORDS, FOUR_WORDS = bonus(2), bonus(4)


def posting_at(*positions):
    return Posting(np.array(positions), np.ones(len(positions), np.int32))


def candidates(cosine, *postings, absent=(), talk=None):
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
        cache={},
        talk=talk,
    )


def relevance_of(pool, *, dates=0.0, running=None):
    count = len(pool.ids)
    running = np.zeros(count, bool) if running is None else running
    return fit(pool, np.full(count, dates), running).max(initial=0)


def test_relevance_is_the_maximum_of_cosine_plus_seven_tenths_of_the_words():
    pool = candidates([0.3, 0.1, 0, 0], posting_at(1), posting_at(1))
    assert relevance_of(pool) == pytest.approx(0.1 + 0.7 + TWO_WORDS)


def test_an_unknown_stem_weighs_as_much_as_the_rarest():
    pool = candidates([0, 0, 0, 0], posting_at(2), absent=("one", "two", "three"))
    assert relevance_of(pool) == pytest.approx(0.7 / 4 + FOUR_WORDS)


def test_a_common_word_weighs_less_than_a_rare_one():
    common, rare = posting_at(0, 1, 2), posting_at(3)
    shares = [
        relevance_of(candidates([0] * 4, posting, absent=("one",))) for posting in (common, rare)
    ]
    assert shares[0] < shares[1]


def test_without_a_vector_the_words_alone_decide():
    pool = candidates([np.nan, 0.1, 0.1, 0.1], posting_at(0), posting_at(0, 1))
    assert relevance_of(pool) == pytest.approx(1 + TWO_WORDS)


def test_a_question_of_many_words_needs_more():
    few, many = (candidates([0.8, 0, 0, 0], *[posting_at(3)] * words) for words in (2, 10))
    assert relevance_of(few) == pytest.approx(0.8 + bonus(2))
    assert relevance_of(many) == pytest.approx(0.8 + bonus(10))


def test_a_large_store_needs_more():
    sizes = (4, 400, 40_000)
    relevances = [relevance_of(candidates([0.5, *[0] * (size - 1)])) for size in sizes]
    assert relevances[0] > relevances[1] > relevances[2]
    assert relevances[2] == pytest.approx(0.5 + bonus(2, np.log1p((40_000 - 0.5) / 1.5)))


COUNTED = {
    "where did we put the canoe": (("cano", "put"), 2),
    "where did Emily and Akib put the canoe": (("cano", "emili", "akib"), 1),
    "what was said on 17.01.2024 in room 404": (("17", "01", "2024", "404", "room"), 1),
    "Emily went away. Where is she?": (("emili",), 1),
    "Was hat der Vermieter zur Heizung gesagt": (("vermiet", "heizung", "gesagt"), 2),
    "où habite Élodie": (("elodi", "habit"), 1),
    "WHERE IS EMILY": (("emili",), 1),
}


@pytest.mark.parametrize(("question", "case"), COUNTED.items(), ids=list(COUNTED))
def test_unknown_names_and_numbers_do_not_count(question, case):
    absent, words = case
    assert count_absent(question, absent) == words


def test_words_that_do_not_count_do_not_lower_the_relevance():
    pool = candidates([0.2] * 4, posting_at(1), absent=("emili", "2024"))
    undated, running = np.zeros(4), NOWHERE
    known = pool._replace(absent=())
    assert fit(pool, undated, running, 0).max() == fit(known, undated, running).max()
    assert fit(pool, undated, running).max() < fit(pool, undated, running, 0).max()


def test_without_embeddings_the_number_of_words_does_not_matter():
    pool = candidates([np.nan] * 4, posting_at(0), posting_at(1), absent=("one", "two"))
    assert relevance_of(pool) == pytest.approx(1 / 4)


def test_relevance_is_never_below_zero():
    assert relevance_of(candidates([0.01] * 4, absent=tuple("abcdefghijklmnop"))) == 0


def test_a_message_of_a_requested_day_is_relevant():
    assert relevance_of(candidates([0.1] * 4), dates=1.0) == pytest.approx(0.1 + 0.4 + TWO_WORDS)


def test_nothing_is_relevant_in_an_empty_store():
    assert relevance_of(candidates([])) == 0


def test_a_follow_up_matches_by_either_query_but_not_by_its_own_session():
    talk = TalkScores(np.array([0.9, 0.5, 0, 0], np.float32), ((0.5, (posting_at(1),)),))
    pool = candidates([0.1] * 4, talk=talk)
    running = np.array([True, False, False, False])
    assert relevance_of(pool, running=running) == pytest.approx(0.5 + 0.7 + TWO_WORDS)
    assert relevance_of(pool, running=~NOWHERE) == pytest.approx(0.1 + TWO_WORDS)
    assert relevance_of(pool._replace(talk=None), running=running) == pytest.approx(0.1 + TWO_WORDS)


def test_the_floor_is_the_setting_or_else_that_of_the_model():
    (model_id,) = FLOORS
    settings = Settings()
    assert recall_floor(settings, model_id) == FLOORS[model_id] > 0
    assert recall_floor(settings, "another model") == 0
    assert recall_floor(settings, None) == WORDS_FLOOR
    assert recall_floor(settings._replace(recall_floor=0.0), model_id) == 0
    assert recall_floor(settings._replace(recall_floor=0.5), "another model") == 0.5


@pytest.mark.model
def test_the_measured_floor_is_that_of_the_default_model(embedder):
    assert embedder.model_id in FLOORS


@each(
    ("stored", "floor"),
    [
        ("0.31", 0.31),
        ("0.0", 0),
        (None, 0.25),
        ("", 0.25),
        ("odd", 0.25),
        ("nan", 0.25),
        ("7", 0.25),
    ],
)
def test_a_calibrated_floor_overrides_the_measured_one_but_not_the_setting(stored, floor):
    (model_id,) = FLOORS
    settings = Settings()
    assert recall_floor(settings, model_id, stored) == floor
    assert recall_floor(settings._replace(recall_floor=0.5), model_id, stored) == 0.5
    assert recall_floor(settings, None, stored) == WORDS_FLOOR


@each(("count", "lost"), [(1, 0), (100, 0), (499, 0), (500, 1), (1_000, 2)])
def test_the_highest_floor_refuses_two_in_a_thousand_questions(count, lost):
    related = np.random.default_rng(3).permutation(np.arange(1, count + 1) / 1_000)
    floor = highest_floor(related)
    assert np.sum(related < floor) == lost
    assert np.sum(related < floor + 0.0011) > lost
