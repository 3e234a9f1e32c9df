"""The arithmetic of the token budget."""

import hypothesis
import pytest
from contract import AVAILABLE
from each import each
from hypothesis import strategies as st

from reservoir_cli.chat.turn import Section
from reservoir_cli.context.budget import Meter, plan
from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config
from reservoir_cli.tokens import load_counter


def make_plan(window=10_000, reserve=2_000, **options):
    defaults = {
        "limit": None,
        "budget": None,
        "model": "some-model",
        "sections": {},
        "min_history": 0,
    }
    return plan(window=window, reserve=reserve, **{**defaults, **options})


class Exact:
    name, version, exact = "words", "1", True

    def count(self, text):
        return len(text.split())


class Rough(Exact):
    exact = False


@each(("model", "available"), AVAILABLE.items())
def test_the_plan_has_the_documented_figures(model, available):
    loaded = config.load()
    settings = loaded.settings(model=model)
    budget_plan = plan(
        window=config.required_window(loaded, model, settings),
        reserve=loaded.reserve(model, settings),
        limit=settings.max_context_tokens,
        budget=None,
        model=model,
        sections={},
        min_history=settings.min_history_tokens,
    )
    assert (budget_plan.available, budget_plan.history, budget_plan.notes) == (
        available,
        available,
        (),
    )


def test_documented_sections_leave_138_308_tokens():
    sections = {
        Section.SYSTEM: 1_200,
        Section.PROCEDURE: 300,
        Section.KNOWLEDGE: 1_500,
        Section.EPISODE: 400,
        Section.CURRENT: 100,
    }
    budget_plan = make_plan(150_000, 8_192, sections=sections, min_history=4_000)
    assert budget_plan.history == 138_308


@each("section", [value for value in Section if value.value not in {"recalled"}])
def test_every_section_is_subtracted_from_the_available_tokens(section):
    assert make_plan(sections={section: 700}).history == 8_000 - 700


@each(
    ("options", "available"),
    [
        pytest.param({"limit": 5_000}, 5_000, id="§2 max_context_tokens below"),
        pytest.param({"limit": 9_000}, 8_000, id="§2 max_context_tokens above"),
        pytest.param({"budget": 700}, 700, id="§2 nothing is taken off --budget"),
        pytest.param({"budget": 700, "limit": 500}, 700, id="§2 --budget goes before the limit"),
        pytest.param({"budget": 8_000}, 8_000, id="§2 --budget of window - reserve"),
    ],
)
def test_the_smaller_of_budget_and_window_is_available(options, available):
    budget_plan = make_plan(**options)
    assert (budget_plan.available, budget_plan.notes) == (available, ())


@pytest.mark.parametrize("budget", [8_001, 10_000], ids=["§2 one over", "§2 the window"])
def test_a_budget_that_uses_the_reserve_is_accepted_with_a_warning(budget):
    budget_plan = make_plan(budget=budget)
    assert budget_plan.available == budget_plan.history == budget
    assert len(budget_plan.notes) == 1
    assert f"{10_000 - budget:,} of 2,000" in budget_plan.notes[0]


def test_a_budget_above_the_window_of_a_model_is_wrong_usage():
    with pytest.raises(UsageError):
        make_plan(budget=10_001)


def test_without_a_model_there_is_no_window_above_a_budget():
    budget_plan = make_plan(budget=10_001, model=None)
    assert (budget_plan.available, budget_plan.notes) == (10_001, ())


@pytest.mark.parametrize("reserve", [10_000, 11_000])
def test_a_reserve_that_leaves_nothing_is_wrong_usage(reserve):
    with pytest.raises(UsageError):
        make_plan(reserve=reserve)


@each(
    ("section_tokens", "minimum", "history", "reported"),
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
def test_history_keeps_its_minimum_under_a_models_limit(section_tokens, minimum, history, reported):
    budget_plan = make_plan(sections={Section.KNOWLEDGE: section_tokens}, min_history=minimum)
    assert budget_plan.history == history
    assert bool(budget_plan.notes) is reported
    if reported:
        assert f"{section_tokens + history - 8_000:,}" in budget_plan.notes[0]


def test_an_explicit_budget_has_no_minimum_history():
    budget_plan = make_plan(budget=1_000, sections={Section.KNOWLEDGE: 900}, min_history=4_000)
    assert (budget_plan.history, budget_plan.notes) == (100, ())


@pytest.mark.parametrize("options", [{"budget": 8_000}, {}], ids=["--budget", "a model's limit"])
def test_oversized_sections_leave_history_empty_with_a_warning(options):
    budget_plan = make_plan(sections={Section.CURRENT: 8_001}, min_history=4_000, **options)
    assert budget_plan.overfull
    assert budget_plan.history == 0
    assert "8,001 tokens, more than the 8,000 available" in budget_plan.notes[-1]


def test_sections_that_fit_exactly_cause_no_warning():
    budget_plan = make_plan(sections={Section.CURRENT: 8_000}, budget=8_000)
    assert (budget_plan.overfull, budget_plan.history, budget_plan.notes) == (False, 0, ())


@hypothesis.given(
    window=st.integers(2, 300_000),
    share=st.floats(0, 0.9),
    section_tokens=st.integers(0, 300_000),
    minimum=st.integers(0, 10_000),
    budget=st.none() | st.integers(1, 300_000),
)
@hypothesis.settings(max_examples=300)
def test_sections_and_history_exceed_the_budget_only_with_a_warning(
    window, share, section_tokens, minimum, budget
):
    try:
        budget_plan = make_plan(
            window,
            int(window * share),
            budget=budget,
            sections={Section.KNOWLEDGE: section_tokens},
            min_history=minimum,
        )
    except UsageError:
        assert budget is None or budget > window
        return
    assert budget_plan.history >= 0
    assert budget_plan.history == 0 or section_tokens + budget_plan.history <= window
    assert budget_plan.borrowed <= budget_plan.reserve // 2
    assert (
        budget_plan.available - section_tokens + budget_plan.borrowed + budget_plan.overflow
        == budget_plan.history
    )
    if section_tokens + budget_plan.history > budget_plan.available:
        assert budget_plan.notes
        assert budget is None or budget_plan.overfull


@pytest.mark.parametrize(
    ("flags", "text", "model", "reserve"),
    [
        pytest.param({"token_reserve": 7}, True, "gpt-4", 7, id="§2 --reserve"),
        pytest.param({}, True, "gpt-4", 11, id="§2 models.X.reserve_tokens"),
        pytest.param({}, True, "gpt-4o", 13, id="§2 token_reserve"),
        pytest.param({}, True, None, 13, id="§2 token_reserve without a model"),
        pytest.param({}, False, "gpt-4", 2_048, id="§2 the table"),
        pytest.param({}, False, None, 4_096, id="§2 4,096"),
        pytest.param({"reserve_tokens": 0}, True, "gpt-4", 0, id="§2 a reserve of 0"),
    ],
)
def test_the_reserve_comes_from_the_first_source_that_sets_it(home, flags, text, model, reserve):
    file = home / "set.toml"
    file.parent.mkdir(parents=True)
    file.write_text('token_reserve = 13\n[models."gpt-4"]\nreserve_tokens = 11\n' * text)
    loaded = config.load(file, flags)
    assert loaded.reserve(model, loaded.settings(model=model)) == reserve


@each(
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


@each(("tokens", "scaled"), [(0, 0), (1, 2), (10, 11), (100, 110), (101, 112)])
def test_a_scaled_count_is_rounded_up_without_float_noise(tokens, scaled):
    assert Meter.of(Rough(), 1.0, None).scale(tokens) == scaled


def test_each_message_costs_four_extra_tokens_before_scaling():
    meter = Meter.of(Exact(), 2.0, None)
    assert meter.count("three little words", messages=2) == 2 * (3 + 2 * 4)
