"""The arithmetic of the token budget."""

import hypothesis
import pytest
from contract import AVAILABLE
from hypothesis import strategies as st

from reservoir_cli.chat.turn import Section
from reservoir_cli.context.budget import Meter, plan
from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config
from reservoir_cli.tokens import load_counter


def planned(window=10_000, reserve=2_000, **given):
    asked = {
        "limit": None,
        "budget": None,
        "model": "some-model",
        "sections": {},
        "min_history": 0,
    }
    return plan(window=window, reserve=reserve, **{**asked, **given})


class Exact:
    name, version, exact = "words", "1", True

    def count(self, text):
        return len(text.split())


class Rough(Exact):
    exact = False


@pytest.mark.parametrize(("model", "available"), AVAILABLE.items(), ids=lambda each: f"§2 {each}")
def test_the_plan_has_the_documented_figures(model, available):
    known = config.load()
    settings = known.settings(model=model)
    found = plan(
        window=config.required_window(known, model, settings),
        reserve=known.reserve(model, settings),
        limit=settings.max_context_tokens,
        budget=None,
        model=model,
        sections={},
        min_history=settings.min_history_tokens,
    )
    assert (found.available, found.history, found.notes) == (available, available, ())


def test_documented_sections_leave_138_308_tokens():
    given = {
        Section.SYSTEM: 1_200,
        Section.PROCEDURE: 300,
        Section.KNOWLEDGE: 1_500,
        Section.EPISODE: 400,
        Section.CURRENT: 100,
    }
    found = planned(150_000, 8_192, sections=given, min_history=4_000)
    assert found.history == 138_308


@pytest.mark.parametrize("section", [each for each in Section if each.value not in {"recalled"}])
def test_every_section_is_subtracted_from_the_available_tokens(section):
    assert planned(sections={section: 700}).history == 8_000 - 700


@pytest.mark.parametrize(
    ("given", "available"),
    [
        pytest.param({"limit": 5_000}, 5_000, id="§2 max_context_tokens below"),
        pytest.param({"limit": 9_000}, 8_000, id="§2 max_context_tokens above"),
        pytest.param({"budget": 700}, 700, id="§2 nothing is taken off --budget"),
        pytest.param({"budget": 700, "limit": 500}, 700, id="§2 --budget goes before the limit"),
        pytest.param({"budget": 8_000}, 8_000, id="§2 --budget of window - reserve"),
    ],
)
def test_the_smaller_of_budget_and_window_is_available(given, available):
    found = planned(**given)
    assert (found.available, found.notes) == (available, ())


@pytest.mark.parametrize("budget", [8_001, 10_000], ids=["§2 one over", "§2 the window"])
def test_a_budget_that_uses_the_reserve_is_accepted_with_a_warning(budget):
    found = planned(budget=budget)
    assert found.available == found.history == budget
    assert len(found.notes) == 1
    assert f"{10_000 - budget:,} of 2,000" in found.notes[0]


def test_a_budget_above_the_window_of_a_model_is_wrong_usage():
    with pytest.raises(UsageError):
        planned(budget=10_001)


def test_without_a_model_there_is_no_window_above_a_budget():
    found = planned(budget=10_001, model=None)
    assert (found.available, found.notes) == (10_001, ())


@pytest.mark.parametrize("reserve", [10_000, 11_000])
def test_a_reserve_that_leaves_nothing_is_wrong_usage(reserve):
    with pytest.raises(UsageError):
        planned(reserve=reserve)


@pytest.mark.parametrize(
    ("taken", "least", "history", "reported"),
    [
        pytest.param(7_000, 4_000, 2_000, True, id="§2 at most half of the reserve"),
        pytest.param(6_500, 3_000, 2_500, True, id="§2 half of the reserve is not enough"),
        pytest.param(6_500, 2_000, 2_000, True, id="§2 the overflow goes into the reserve"),
        pytest.param(5_000, 9_000, 4_000, True, id="§2 at most half of what is available"),
        pytest.param(5_000, 3_000, 3_000, False, id="§2 just enough is left"),
        pytest.param(7_999, 1, 1, False, id="§2 one is left and one is wanted"),
        pytest.param(8_000, 4_000, 0, False, id="§2 the sections leave nothing"),
        pytest.param(7_500, 0, 500, False, id="§2 switched off"),
    ],
)
def test_history_keeps_its_minimum_under_a_models_limit(taken, least, history, reported):
    found = planned(sections={Section.KNOWLEDGE: taken}, min_history=least)
    assert found.history == history
    assert bool(found.notes) is reported
    if reported:
        assert f"{taken + history - 8_000:,}" in found.notes[0]


def test_an_explicit_budget_has_no_minimum_history():
    found = planned(budget=1_000, sections={Section.KNOWLEDGE: 900}, min_history=4_000)
    assert (found.history, found.notes) == (100, ())


@pytest.mark.parametrize("how", [{"budget": 8_000}, {}], ids=["--budget", "a model's limit"])
def test_oversized_sections_leave_history_empty_with_a_warning(how):
    found = planned(sections={Section.CURRENT: 8_001}, min_history=4_000, **how)
    assert found.overfull
    assert found.history == 0
    assert "8,001 of 8,000" in found.notes[-1]


def test_sections_that_fit_exactly_cause_no_warning():
    found = planned(sections={Section.CURRENT: 8_000}, budget=8_000)
    assert (found.overfull, found.history, found.notes) == (False, 0, ())


@hypothesis.given(
    window=st.integers(2, 300_000),
    share=st.floats(0, 0.9),
    taken=st.integers(0, 300_000),
    least=st.integers(0, 10_000),
    budget=st.none() | st.integers(1, 300_000),
)
@hypothesis.settings(max_examples=300)
def test_sections_and_history_exceed_the_budget_only_with_a_warning(
    window, share, taken, least, budget
):
    try:
        found = planned(
            window,
            int(window * share),
            budget=budget,
            sections={Section.KNOWLEDGE: taken},
            min_history=least,
        )
    except UsageError:
        assert budget is None or budget > window
        return
    assert found.history >= 0
    assert found.history == 0 or taken + found.history <= window
    assert found.borrowed <= found.reserve // 2
    assert found.available - taken + found.borrowed + found.overflow == found.history
    if taken + found.history > found.available:
        assert found.notes
        assert budget is None or found.overfull


@pytest.mark.parametrize(
    ("flags", "text", "model", "reserve"),
    [
        pytest.param({"token_reserve": 7}, True, "gpt-4", 7, id="§2 --output-reserve"),
        pytest.param({}, True, "gpt-4", 11, id="§2 models.X.reserve_tokens"),
        pytest.param({}, True, "gpt-4o", 13, id="§2 token_reserve"),
        pytest.param({}, True, None, 13, id="§2 token_reserve without a model"),
        pytest.param({}, False, "gpt-4", 2_048, id="§2 the table"),
        pytest.param({}, False, None, 4_096, id="§2 4,096"),
        pytest.param({"output_reserve": 0}, True, "gpt-4", 0, id="§2 a reserve of 0"),
    ],
)
def test_the_reserve_comes_from_the_first_source_that_sets_it(home, flags, text, model, reserve):
    file = home / "set.toml"
    file.parent.mkdir(parents=True)
    file.write_text('output_reserve = 13\n[models."gpt-4"]\nreserve_tokens = 11\n' * text)
    known = config.load(file, flags)
    assert known.reserve(model, known.settings(model=model)) == reserve


@pytest.mark.parametrize(
    ("counter", "multiplier", "safety", "factor"),
    [
        pytest.param(Rough(), 1.0, None, 1.1, id="§3 approximate 1.10"),
        pytest.param(Exact(), 1.0, None, 1.0, id="§3 exact 1.0"),
        pytest.param(Rough(), 1.3, None, 1.43, id="§3 multiplier times safety"),
        pytest.param(Exact(), 1.3, 2.0, 2.6, id="§3 token_safety set"),
        pytest.param(Rough(), 1.0, 1.0, 1.0, id="§3 token_safety 1.0 on an approximate one"),
    ],
)
def test_a_count_is_multiplied_by_multiplier_and_safety_factor(counter, multiplier, safety, factor):
    assert Meter.of(counter, multiplier, safety).factor == pytest.approx(factor)


@pytest.mark.parametrize(
    ("name", "factor"), [("approximate", 1.1), ("ratio", 1.1)], ids=["§3 approximate", "§3 ratio"]
)
def test_the_estimating_counters_get_the_safety_factor(name, factor):
    assert Meter.of(load_counter(name), 1.0, None).factor == pytest.approx(factor)


@pytest.mark.parametrize(
    ("counter", "mark"), [(Rough(), "≈"), (Exact(), "")], ids=["§3 approximate", "§3 exact"]
)
def test_only_an_estimate_is_marked_as_one(counter, mark):
    assert Meter.of(counter, 1.0, None).mark == mark


@pytest.mark.parametrize(
    ("tokens", "scaled"), [(0, 0), (1, 2), (10, 11), (100, 110), (101, 112)], ids=str
)
def test_a_scaled_count_is_rounded_up_without_float_noise(tokens, scaled):
    assert Meter.of(Rough(), 1.0, None).scale(tokens) == scaled


def test_each_message_costs_four_extra_tokens_before_scaling():
    meter = Meter.of(Exact(), 2.0, None)
    assert meter.count("three little words", messages=2) == 2 * (3 + 2 * 4)
