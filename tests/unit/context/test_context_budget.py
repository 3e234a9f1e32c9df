"""The size of a context, and the settings that determine it."""

import pytest
from contract import AVAILABLE
from memories import GIVEN, kept_ids, piece, text

from reservoir_cli import UsageError
from reservoir_cli.chat.turn import Section
from reservoir_cli.context.render.context_frame import unwrap


@pytest.mark.parametrize(("model", "available"), AVAILABLE.items(), ids=lambda value: f"§2 {value}")
def test_a_context_has_the_window_of_its_model_less_the_reserve(memory, model, available):
    assert memory.ask(model=model).budget.available == available


def test_without_a_model_the_window_is_max_working_memory_tokens(memory):
    assert memory.ask().budget.window == 100_000
    window = memory.ask(settings={"max_working_memory_tokens": 9_096})
    assert (window.budget.window, window.budget.available) == (9_096, 5_000)


@pytest.mark.parametrize(
    ("toml", "model", "window", "available"),
    [
        pytest.param("context_window = 5000", "gpt-4", 5_000, 2_952, id="§2 context_window"),
        pytest.param("reserve_tokens = 192", "gpt-4", 8_192, 8_000, id="§2 reserve_tokens"),
        pytest.param("max_context_tokens = 500", "gpt-4", 8_192, 500, id="§2 max_context_tokens"),
        pytest.param("context_window = 8192", "mine", 8_192, 4_096, id="§2 a new model"),
        pytest.param("max_context_tokens = 9000", "mine", 9_000, 4_904, id="§2 the last resort"),
        pytest.param(
            "context_window = 8000\nmax_context_tokens = 3000", "mine", 8_000, 3_000, id="§2 both"
        ),
    ],
)
def test_the_settings_of_a_model_override_our_table(memory, write, toml, model, window, available):
    write(f'[models."{model}"]\n{toml}\n')
    budget = memory.ask(model=model).budget
    assert (budget.window, budget.available) == (window, available)


def test_an_unquoted_header_names_the_intended_model(memory, write):
    write("[models.gpt-3.5-turbo]\nreserve_tokens = 96\n")
    assert memory.ask(model="gpt-3.5-turbo").budget.available == 4_000


def test_a_budget_covers_the_whole_output_without_a_reserve(memory):
    memory.fill(100)
    window = memory.ask(budget=700, model="gpt-4", **GIVEN)
    budget = window.budget
    assert budget.available == 700
    assert budget.history == 700 - sum(budget.sections.values())
    assert {*budget.sections} >= {Section.SYSTEM, Section.CURRENT}
    assert 600 < window.used <= 700


@pytest.mark.parametrize(
    ("model", "toml", "available"),
    [
        pytest.param("gpt-4o", "", 100_000, id="§2 the recommended figure"),
        pytest.param("gpt-4", "", 6_144, id="§2 else its available"),
        pytest.param(
            "gpt-4",
            '[models."gpt-4"]\nmax_context_tokens = 3000',
            3_000,
            id="§2 its available has its own limit",
        ),
        pytest.param("llama3:70b", "", 6_000, id="§2 llama3:70b"),
    ],
)
def test_the_recommended_budget(memory, write, model, toml, available):
    write(toml)
    assert memory.ask(budget="recommended", model=model).budget.available == available


def test_a_recommendation_never_exceeds_a_window_reduced_in_the_settings(memory, write):
    write('[models."gpt-4o"]\ncontext_window = 50000\n')
    assert memory.ask(budget="recommended", model="gpt-4o").budget.available <= 50_000


@pytest.mark.parametrize(
    "budget", ["recommended", 0, -1, "many", "1.5", True], ids=lambda value: f"§2 {value}"
)
def test_an_invalid_budget_is_wrong_usage(memory, budget):
    with pytest.raises(UsageError):
        memory.ask(budget=budget)


def test_an_unknown_model_gets_similar_names_and_the_command_that_adds_it(memory):
    with pytest.raises(UsageError) as caught:
        memory.ask(model="gpt-4x")
    assert "gpt-4" in caught.value.hint
    assert "config set models.gpt-4x.context_window=N" in caught.value.hint


def test_minimum_history_uses_the_reserve_with_a_warning(memory):
    memory.fill(300)
    window = memory.ask(
        model="gpt-4",
        fill=True,
        knowledge=[("k", piece(3_300))],
        settings={"max_knowledge_tokens": 9_000},
    )
    budget = window.budget
    fixed = sum(budget.sections.values())
    assert budget.history == 6_144 // 2
    assert fixed + budget.history > budget.available
    assert window.used <= budget.window
    assert any("from the reserve" in note for note in window.notes)


def test_an_oversized_question_is_printed_whole_with_an_empty_history(memory):
    memory.fill(5)
    question = piece(700)
    window = memory.ask(question, budget=300)
    assert window.to("text").endswith(f"]\n\nuser: {question}\n")
    assert unwrap(window.to("text")).text == question.strip()
    assert window.truncated
    assert any("printed whole" in note for note in window.notes)


# §2 Key by key

FILE = "recent_context_size = 6\n"
PARTITION = "[partitions.p]\nrecent_context_size = 4\n"
MODEL = "[models.gpt-4]\nrecent_context_size = 5\n"
OTHERS = "[partitions.q]\nrecent_context_size = 4\n[models.gpt-4o]\nrecent_context_size = 5\n"


@pytest.mark.parametrize(
    ("toml", "env", "options", "recent"),
    [
        pytest.param(FILE + PARTITION + MODEL, "3", {"recent": 2}, 2, id="§2 flag"),
        pytest.param(FILE + PARTITION + MODEL, "3", {}, 3, id="§2 environment"),
        pytest.param(FILE + PARTITION + MODEL, None, {}, 4, id="§2 partition"),
        pytest.param(FILE + MODEL, None, {}, 5, id="§2 model"),
        pytest.param(FILE, None, {}, 6, id="§2 file"),
        pytest.param("", None, {}, 8, id="§2 profile by the window"),
        pytest.param(OTHERS, None, {}, 8, id="§2 tables of others"),
        pytest.param("", None, {"profile": "large"}, 25, id="§2 --profile before the window"),
        pytest.param(FILE, "3", {"profile": "large"}, 25, id="§2 --profile counts as a flag"),
    ],
)
def test_the_number_of_recent_messages_comes_from_the_first_source_that_sets_it(
    memory, write, monkeypatch, toml, env, options, recent
):
    write(toml)
    if env:
        monkeypatch.setenv("RESERVOIR_RECENT_CONTEXT_SIZE", env)
    memory.fill(30)
    window = memory.ask("", model="gpt-4", settings={"semantic_context_size": 0}, **options)
    assert len(window.kept) == recent


@pytest.mark.parametrize(
    ("options", "recent", "similar"),
    [
        pytest.param({"model": "gpt-4"}, 8, 5, id="§2 small up to 8,192"),
        pytest.param({"model": "codellama"}, 15, 20, id="§2 neither"),
        pytest.param({"model": "gpt-4o"}, 25, 30, id="§2 large from 100,000"),
        pytest.param({}, 15, 20, id="§2 without a model"),
        pytest.param({"model": "gpt-4o", "profile": "small"}, 8, 5, id="§2 --profile small"),
        pytest.param({"profile": "large"}, 25, 30, id="§2 --profile large"),
    ],
)
def test_the_profile_depends_on_the_window_unless_it_is_set(memory, options, recent, similar):
    old = memory.say_all([text(index) for index in range(40)], cosine=0.9, instance="q")
    new = memory.say_all([text(index) for index in range(40, 80)], cosine=-0.5)
    message_ids = kept_ids(memory.ask(**options))
    assert len(set(message_ids) & set(new)) == recent
    assert len(set(message_ids) & set(old)) == similar


def test_a_multiplier_of_one_partition_changes_its_counts_and_no_others(memory, write):
    for partition in ("coding", "research"):
        memory.say(text(1), partition=partition, instance=partition)
    factors = [("coding", 1.43), ("research", 1.1)]
    before = {
        partition: memory.ask(partition=partition, model="gpt-4").used for partition, _ in factors
    }
    write("[partitions.coding]\ntoken_multiplier = 1.3\n")
    for partition, factor in factors:
        window = memory.ask(partition=partition, model="gpt-4")
        assert window.meter.factor == pytest.approx(factor)
        assert (window.used > before[partition]) is (partition == "coding")


def test_thirty_recent_messages_of_one_partition_only(memory, write):
    write("[partitions.research]\nrecent_context_size = 30\n")
    for partition in ("coding", "research"):
        memory.fill(50, partition=partition, instance=partition)
    assert [
        len(memory.ask("", partition=partition, model="codellama", similar=0).kept)
        for partition in ("coding", "research")
    ] == [15, 30]


def test_fifty_similar_messages_for_one_model_only(memory, write):
    write('[models."gpt-4-turbo"]\nsemantic_context_size = 50\n')
    old = memory.say_all([text(number) for number in range(80)], cosine=0.5, instance="q")
    memory.say("now")
    assert [
        len(set(kept_ids(memory.ask(model=model))) & set(old))
        for model in ("gpt-4-turbo", "gpt-4o")
    ] == [50, 30]
