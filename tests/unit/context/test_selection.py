"""Selection: order, dropped candidates and reasons, with handmade costs."""

import pytest
from candidates import (
    NO_NEWEST,
    TIERS,
    O,
    R,
    S,
    Y,
    drop_reasons,
    kept_ids,
    make_candidate,
    pool,
    select_from,
    sorted_ids,
)
from each import each

from reservoir_cli.context.choose import SelectionOptions
from reservoir_cli.context.window_builder import Costs


def test_by_score_the_highest_priority_comes_first():
    candidates = pool(
        make_candidate(priority=0.2), make_candidate(priority=0.9), make_candidate(priority=0.4)
    )
    assert [kept_ids(select_from(candidates, room)) for room in (10, 20, 30)] == [
        [2],
        [2, 3],
        [1, 2, 3],
    ]


def test_of_equal_priorities_the_newest_comes_first():
    assert kept_ids(
        select_from(pool(make_candidate(), make_candidate(), make_candidate()), 20)
    ) == [2, 3]


def test_by_score_standing_instructions_come_earlier():
    candidates = pool(
        make_candidate(content="Always name the port.", priority=0.5),
        make_candidate(content="what is the port?", priority=0.6),
        make_candidate(content="which host?", priority=0.8),
    )
    assert kept_ids(select_from(candidates, 20)) == [1, 3]
    assert kept_ids(select_from(candidates, 20, NO_NEWEST._replace(standing=False))) == [2, 3]
    assert kept_ids(select_from(candidates, 10)) == [3]


def test_by_score_messages_that_do_not_fit_are_skipped():
    candidates = pool(
        make_candidate(priority=0.2),
        make_candidate(priority=0.5, tokens=25),
        make_candidate(priority=0.9),
    )
    selection = select_from(candidates, 30)
    assert kept_ids(selection) == [1, 3]
    assert drop_reasons(selection) == {2: "no room"}


@pytest.mark.parametrize("order", ["score", "tiers"])
@pytest.mark.parametrize("count", [2, 5])
def test_when_everything_fits_nothing_is_dropped(order, count):
    candidates = pool(
        *(make_candidate(tier=tier, priority=0.1) for tier in (R, S, Y, O) for _ in range(count))
    )
    selection = select_from(candidates, 10 * 4 * count, SelectionOptions(order))
    assert len(kept_ids(selection)) == 4 * count
    assert selection.dropped == ()


MIXED = (
    make_candidate(tier=O, priority=0.9),  # 1, first out
    make_candidate(tier=Y, priority=0.3),  # 2, third out
    make_candidate(tier=Y, priority=0.2),  # 3, second out
    make_candidate(tier=S, priority=0.7),  # 4, fifth out
    make_candidate(tier=S, priority=0.6),  # 5, fourth out
    make_candidate(tier=R, priority=0.9),  # 6, sixth out: the oldest recent one, whatever its score
    make_candidate(tier=R, priority=0.1),  # 7
    make_candidate(tier=R, priority=0.2),  # 8, last out
)


@each(
    ("room", "expected"),
    [
        pytest.param(80, [1, 2, 3, 4, 5, 6, 7, 8], id="§4 everything fits"),
        pytest.param(79, [2, 3, 4, 5, 6, 7, 8], id="§4 older goes first"),
        pytest.param(69, [2, 4, 5, 6, 7, 8], id="§4 then synapse, the lowest score first"),
        pytest.param(59, [4, 5, 6, 7, 8], id="§4 then the other synapse"),
        pytest.param(49, [4, 6, 7, 8], id="§4 then the lowest-scored similar"),
        pytest.param(39, [6, 7, 8], id="§4 then the other similar"),
        pytest.param(29, [7, 8], id="§4 last the oldest recent"),
        pytest.param(19, [8], id="§4 and the newest last of all"),
    ],
)
def test_by_tiers_the_end_is_dropped_until_the_rest_fits(room, expected):
    assert kept_ids(select_from(pool(*MIXED), room, TIERS)) == expected


def test_by_tiers_selection_ends_at_the_first_that_does_not_fit():
    candidates = pool(
        make_candidate(tier=O), make_candidate(tier=S, tokens=25), make_candidate(tokens=10)
    )
    selection = select_from(candidates, 30, TIERS)
    assert kept_ids(selection) == [3]
    assert drop_reasons(selection) == {1: "no room", 2: "no room"}


@pytest.mark.parametrize("order", ["score", "tiers"])
def test_a_unit_larger_than_the_budget_is_dropped_first(order):
    candidates = pool(make_candidate(), make_candidate(tokens=31), make_candidate())
    selection = select_from(candidates, 30, SelectionOptions(order, 0))
    assert kept_ids(selection) == [1, 3]
    assert drop_reasons(selection) == {2: "too large"}


@each("tokens", [25, 26, 30, 31])
def test_by_tiers_a_unit_that_never_fits_does_not_drop_all_others(tokens):
    """A title and a day line count, too, so a unit of less than 30 tokens may never fit."""
    costs = Costs(
        lambda candidate: candidate.message.tokens,
        lambda candidate: candidate.message.tokens + 4,
        day=3,
        recalled_title=2,
    )
    candidates = pool(
        *(make_candidate("assistant", tier=R, tokens=2) for _ in range(3)),
        make_candidate("assistant", tokens=tokens),
    )
    selection = select_from(candidates, 30, TIERS, costs=costs)
    assert kept_ids(selection)


# The newest


@each(
    ("count", "tokens", "budget", "expected"),
    [
        pytest.param(2, 10, 160, [4, 5], id="§4 two, an eighth exactly"),
        pytest.param(2, 10, 159, [5], id="§4 two, more than an eighth"),
        pytest.param(2, 10, 79, [], id="§4 one is more than an eighth"),
        pytest.param(0, 10, 160, [], id="§4 switched off"),
        pytest.param(3, 10, 240, [3, 4, 5], id="§4 three"),
        pytest.param(3, 10, 239, [4, 5], id="§4 as many as take an eighth"),
    ],
)
def test_the_newest_come_first_while_they_take_at_most_an_eighth(count, tokens, budget, expected):
    newest = [make_candidate(tokens=tokens, priority=0.0) for _ in range(5)]
    # Higher scores take all the room that the newest messages leave.
    high_scores = [
        make_candidate(tokens=1, priority=1.0, tier=S, instance="j") for _ in range(budget)
    ]
    message_ids = kept_ids(
        select_from(
            pool(*newest, *high_scores), budget, SelectionOptions(min_history_messages=count)
        )
    )
    assert [message_id for message_id in message_ids if message_id <= 5] == expected


def test_the_newest_are_those_of_the_history_instance():
    candidates = pool(
        make_candidate(priority=0),
        make_candidate(instance="j", priority=0),
        *[make_candidate(instance="j")] * 9,
    )
    assert 1 in kept_ids(select_from(candidates, 80, SelectionOptions(min_history_messages=1)))


# What is left out


def test_messages_equal_to_the_question_are_left_out_but_not_their_replies():
    candidates = pool(
        make_candidate(content=" why? \n", trace="t"),
        make_candidate("assistant", "because", trace="t"),
    )
    selection = select_from(candidates, 100, query="why?")
    assert kept_ids(selection) == [2]
    assert selection.dropped[0].reason == "question"


def test_an_empty_question_is_equal_to_nothing():
    assert kept_ids(
        select_from(
            pool(
                make_candidate(),
                make_candidate("assistant", calls=("a",)),
                make_candidate("tool", " ", answers="a"),
            ),
            99,
        )
    ) == [1, 2, 3]


@pytest.mark.parametrize(
    ("allowed", "expected"), [(False, [2]), (True, [1, 2])], ids=["§4 default", "§4 include_system"]
)
def test_system_messages_are_candidates_only_if_allowed(allowed, expected):
    candidates = pool(make_candidate("system"), make_candidate())
    selection = select_from(candidates, 100, SelectionOptions(include_system=allowed))
    assert kept_ids(selection) == expected
    assert selection.dropped == ()
    assert sorted_ids(selection.history) == [2]


@pytest.mark.parametrize(
    ("cosine", "stays"),
    [
        pytest.param(0.2, True, id="§4 reaching it"),
        pytest.param(0.1, False, id="§4 below it"),
        pytest.param(None, True, id="§4 no vector"),
    ],
)
def test_below_min_cosine_nothing_is_recalled(cosine, stays):
    candidates = pool(
        make_candidate(tier=S, cosine=cosine, priority=0.9, instance="j"),
        make_candidate(cosine=0.9),
    )
    selection = select_from(
        candidates, 100, SelectionOptions(min_history_messages=0, min_cosine=0.2)
    )
    assert (1 in kept_ids(selection)) is stays
    assert (drop_reasons(selection).get(1) == "below min_cosine") is not stays


def test_messages_that_filling_skips_are_not_reported_as_dropped():
    candidates = pool(
        make_candidate(filler=True, tier=O, priority=0.1),
        make_candidate(tier=S, priority=0.2),
        make_candidate(),
    )
    selection = select_from(candidates, 10)
    assert drop_reasons(selection) == {2: "no room"}
    assert sorted_ids(dropped.candidate for dropped in selection.passed_over) == [1]


@each(
    ("candidate", "for_room"),
    [
        pytest.param(make_candidate(tokens=9), True, id="§4 no room"),
        pytest.param(make_candidate(tokens=99), True, id="§4 too large"),
        pytest.param(make_candidate("tool", tokens=1), False, id="§4 orphan result"),
        pytest.param(
            make_candidate("assistant", calls=("a",), tokens=1), False, id="§4 unanswered call"
        ),
    ],
)
def test_only_what_was_dropped_for_lack_of_room_is_a_truncation(candidate, for_room):
    selection = select_from(pool(candidate._replace(), make_candidate(priority=0.9)), 10)
    assert [dropped.for_room for dropped in selection.dropped] == [for_room]


# Parts of long messages


def long_text(**more):
    """Return a message of four parts with a hundred tokens each."""
    text = " ".join(f"word{number}" for number in range(400))
    spans = tuple((index * len(text) // 4, (index + 1) * len(text) // 4) for index in range(4))
    return make_candidate("assistant", text, tokens=400, **more)._replace(parts=spans, replies=True)


def by_part(candidate):
    printed = sum(
        end - start for start, end in candidate.spans or [(0, len(candidate.message.content))]
    )
    return round(candidate.message.tokens * printed / max(1, len(candidate.message.content)))


@pytest.mark.parametrize("cosine", [0.2, 0.8])
def test_a_part_of_the_nearest_message_has_a_smaller_penalty(cosine):
    candidates = pool(
        make_candidate(priority=0.9, cosine=0.5, tokens=20),
        long_text(priority=0.8, cosine=cosine),
        make_candidate(priority=0.52, cosine=0.5, tokens=120),
    )
    selection = select_from(candidates, 190, costs=Costs(by_part, by_part, 0, 0))
    assert kept_ids(selection) == ([1, 2] if cosine == 0.8 else [1, 3])


@pytest.mark.parametrize(("about_asker", "first"), [(False, [1]), (True, [2])])
def test_a_part_of_the_best_match_has_no_penalty_unless_it_is_about_the_asker(about_asker, first):
    candidates = pool(long_text(priority=1.0), make_candidate(priority=0.95, tokens=100))
    candidates = [candidate._replace(about_asker=about_asker) for candidate in candidates]
    assert kept_ids(select_from(candidates, 100, costs=Costs(by_part, by_part, 0, 0))) == first


# The last part of the budget


@pytest.mark.parametrize(("priority", "ids"), [(0.8, [1, 2]), (0.7, [1])])
def test_in_little_room_much_lower_scores_are_not_taken(priority, ids):
    candidates = pool(
        make_candidate(priority=1.0, tokens=920),
        make_candidate(priority=priority, tokens=10),
        make_candidate(priority=0.9, tokens=500),
    )
    assert kept_ids(select_from(candidates, 1_000)) == ids


def test_in_more_room_everything_that_fits_is_taken():
    candidates = pool(
        make_candidate(priority=1.0, tokens=500),
        make_candidate(priority=0.1, tokens=10),
        make_candidate(priority=0.9, tokens=600),
    )
    assert kept_ids(select_from(candidates, 1_000)) == [1, 2]


def test_if_everything_fits_all_is_taken_even_in_little_room():
    candidates = pool(
        make_candidate(priority=1.0, tokens=920), make_candidate(priority=0.1, tokens=10)
    )
    assert kept_ids(select_from(candidates, 1_000)) == [1, 2]
