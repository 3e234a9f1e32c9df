import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.settings.models import (
    Model,
    built_in_models,
    find_model,
    match_name,
    near_names,
    other_names,
)

MODELS, OTHER_NAMES = built_in_models(), other_names()

NAMES = [model.name for model in MODELS]

FIGURES = [
    # name, window, reserve, available, recommended
    ("gpt-3.5-turbo", 4_096, 1_024, 3_072, None),
    ("gpt-4", 8_192, 2_048, 6_144, None),
    ("gpt-4-turbo", 128_000, 8_000, 120_000, None),
    ("gpt-4o", 128_000, 8_000, 120_000, 100_000),
    ("gpt-4o-mini", 128_000, 8_000, 120_000, None),
    ("llama3.1:8b", 32_768, 2_048, 30_720, None),
    ("llama3.1:70b", 32_768, 2_048, 30_720, None),
    ("mistral:7b", 32_768, 2_048, 30_720, None),
    ("codellama", 16_384, 1_024, 15_360, None),
    ("claude-sonnet-4-6", 200_000, 8_192, 191_808, 150_000),
    ("claude-opus-4", 200_000, 8_192, 191_808, 150_000),
    ("llama3:70b", 8_192, 2_048, 6_144, 6_000),
]

FOUND = [
    # case and blanks
    ("GPT-4o", "gpt-4o"),
    ("  gpt-4o ", "gpt-4o"),
    ("Claude-Sonnet-4-6", "claude-sonnet-4-6"),
    # provider prefixes
    ("openai/gpt-4", "gpt-4"),
    ("openai:gpt-4o", "gpt-4o"),
    ("OpenRouter/OpenAI/GPT-4.1-mini", "gpt-4.1-mini"),
    ("azure/gpt-35-turbo", "gpt-3.5-turbo"),
    ("anthropic/claude-opus-4", "claude-opus-4"),
    ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
    ("ollama/llama3.1:8b", "llama3.1:8b"),
    ("ollama:llama3.1:70b", "llama3.1:70b"),
    ("localhost:11434/library/mistral:7b", "mistral:7b"),
    ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ("meta-llama/Llama-3.3-70B-Instruct", "llama3.3"),
    ("mistral:mistral-large-latest", "mistral-large"),
    ("mistral:open-mixtral-8x7b", "mixtral:8x7b"),
    # dates and versions
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
    ("claude-opus-4-20250514", "claude-opus-4"),
    ("claude-opus-4-5@20251101", "claude-opus-4-5"),
    ("claude-3-5-sonnet-v2@20241022", "claude-3-5-sonnet"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
    ("gpt-4.1-2025-04-14", "gpt-4.1"),
    ("gpt-4-0613", "gpt-4"),
    ("gpt-5-chat-latest", "gpt-5-chat"),
    ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
    # both
    ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
    ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
    ("anthropic.claude-sonnet-4-6", "claude-sonnet-4-6"),
    ("us.meta.llama3-1-8b-instruct-v1:0", "llama3.1:8b"),
    ("openai.gpt-oss-120b-1:0", "gpt-oss:120b"),
    ("vertex_ai/claude-haiku-4-5@20251001", "claude-haiku-4-5"),
    ("ft:gpt-4o-mini-2024-07-18:my-org::AbC123", "gpt-4o-mini"),
    # tags
    ("llama3.1:8b-instruct-q4_K_M", "llama3.1:8b"),
    ("ollama/LLAMA3.1:70B-instruct-q8_0", "llama3.1:70b"),
    ("mistral:7b-instruct-v0.3-q4_0", "mistral:7b"),
    ("codellama:7b", "codellama"),
    ("codellama:13b-instruct", "codellama"),
    ("gemma3:1b-it-qat", "gemma3:1b"),
    ("gemma3:27b", "gemma3"),
    ("gpt-oss:120b-cloud", "gpt-oss:120b"),
    ("deepseek/deepseek-r1:free", "deepseek-r1"),
    ("gpt-4o-2024-08-06:extended", "gpt-4o"),
    # Ollama's default tag
    ("llama3.1", "llama3.1:8b"),
    ("llama3.1:latest", "llama3.1:8b"),
    ("llama3", "llama3:8b"),
    ("llama3:instruct", "llama3:8b"),
    ("mistral", "mistral:7b"),
    ("mistral:instruct", "mistral:7b"),
]


@each(("name", "window", "reserve", "available", "recommended"), FIGURES)
def test_known_models_have_their_figures(name, window, reserve, available, recommended):
    model = find_model(name)
    assert model == Model(name, window, reserve, recommended, model.output_limit)
    assert model.context_window - model.reserve == available


@each(
    ("name", "limit"),
    [
        ("claude-3-haiku-20240307", 4_096),
        ("claude-3-5-sonnet", 8_192),
        ("claude-opus-4-1", 32_000),
        ("claude-sonnet-4-5", 64_000),
        ("anthropic/claude-opus-4.6", 128_000),
        ("gpt-4-turbo", 4_096),
        ("gpt-4o", 16_384),
        ("gpt-5", 128_000),
        ("llama3.1:8b", None),
    ],
)
def test_a_model_has_its_maximum_output(name, limit):
    model = find_model(name)
    assert model
    assert model.output_limit == limit


def test_no_maximum_output_exceeds_the_window():
    assert all(model.output_limit <= model.context_window for model in MODELS if model.output_limit)


@each(("name", "expected"), FOUND)
def test_name_finds_its_model(name, expected):
    model = find_model(name)
    assert model is not None
    assert model.name == expected


@each(
    "name",
    [
        "gpt-4-32k",
        "gpt-4.5-preview",
        "gpt-4o-audio-preview",
        "gpt",
        "gpt-4-1",
        "claude",
        "claude-opus-4-99",
        "claude-sonnet-4-6-fast",
        "llama",
        "llama3.15",
        "llama3.2-vision:11b",
        "codellama2",
        "mistralx:7b",
        "openai/",
        "openai",
        ":",
        "/",
        "",
        "gpt-4o-2024-08",
        "gpt-4o-20991399x",
    ],
)
def test_name_of_an_unknown_model_finds_nothing(name):
    assert find_model(name) is None


def test_version_is_never_taken_for_the_model_it_begins_with():
    for longer, shorter in [("gpt-4.1", "gpt-4"), ("gpt-4o-mini", "gpt-4o"), ("o3-mini", "o3")]:
        assert match_name(longer, [shorter]) is None
        assert match_name(longer, [shorter, longer]) == longer
    assert match_name("gpt-4-32k", NAMES) is None
    assert match_name("claude-opus-4-5-20251101", ["claude-opus-4"]) is None


def test_literal_name_wins_over_every_shorter_form():
    names = ["llama3.1", "llama3.1:8b", "ollama/llama3.1:8b", "gpt-4o", "gpt-4o-2024-08-06"]
    for name in names:
        assert match_name(name, names) == name
    assert match_name("openai/gpt-4o-2024-08-06", names) == "gpt-4o-2024-08-06"
    assert match_name("gpt-4o-2024-05-13", names) == "gpt-4o"
    assert match_name("llama3.1:8b-q4", names) == "llama3.1:8b"
    assert match_name("llama3.1:405b", names) == "llama3.1"


def test_a_known_name_is_returned_in_its_own_spelling():
    assert match_name("my-model", ["My-Model"]) == "My-Model"
    assert match_name("MY-MODEL", ["My-Model", "MY-MODEL"]) == "MY-MODEL"
    assert match_name("host/mY-mOdEl:x", ["My-Model"]) == "My-Model"


def test_only_the_given_names_are_searched():
    assert match_name("lan/my-local:q4", iter(["My-Local"])) == "My-Local"
    assert match_name("gpt-4o", ["My-Local"]) is None
    assert match_name("gpt-4o", iter(())) is None


def test_names_are_unique_and_lower_case():
    assert len(set(NAMES)) == len(NAMES)
    assert [
        name for name in [*NAMES, *OTHER_NAMES] if name != name.lower() or name != name.strip()
    ] == []


@each("model", MODELS)
def test_every_model_finds_itself_and_has_sane_figures(model):
    assert find_model(model.name) is model
    assert 0 < model.reserve <= model.context_window // 2
    if model.recommended is not None:
        assert model.recommended <= model.context_window - model.reserve


@each("alias", OTHER_NAMES)
def test_every_alias_resolves_and_is_not_a_model_itself(alias):
    assert alias not in NAMES
    model = find_model(alias)
    assert model is not None
    assert model.name == OTHER_NAMES[alias]


def test_bigger_window_never_has_a_smaller_reserve_by_the_rule():
    pairs = sorted(
        {(model.context_window, model.reserve) for model in MODELS if model.reserve <= 8_192}
    )
    large = [reserve for window, reserve in pairs if window > 8_192]
    assert large == sorted(large)
    assert [window // reserve for window, reserve in pairs if window <= 8_192] == [4, 4]


@pytest.mark.parametrize(
    ("name", "input_limit"),
    [("gpt-5", 272_000), ("gpt-5.5", 922_000), ("gpt-5.1-chat-latest", 111_616)],
)
def test_a_gpt_5_window_less_its_reserve_is_its_input_limit(name, input_limit):
    model = find_model(name)
    assert model is not None
    assert model.context_window - model.reserve == input_limit


@given(st.sampled_from(NAMES), st.sampled_from(["", "openai/", "a/b/", "Ollama/"]), st.booleans())
def test_prefix_and_case_never_change_the_model(name, prefix, upper):
    typed = prefix + name
    assert match_name(typed.upper() if upper else typed, NAMES) == name


@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=5))
def test_match_is_a_known_name_or_none_for_any_text(name, names):
    match = match_name(name, names)
    assert match is None or match in names
    if name in names:
        assert match == name


def test_similar_names_ignore_prefix_and_case_nearest_first():
    assert near_names("gpt-4p", NAMES)[0] in {"gpt-4", "gpt-4o"}
    assert near_names("OpenAI/GPT-4o-mimi", NAMES)[0] == "gpt-4o-mini"
    assert near_names("claude-sonet-4-6", NAMES)[0] == "claude-sonnet-4-6"
    assert near_names("qwerty-uiop-99", NAMES) == []
    assert near_names("my-modle", ["My-Model"]) == ["My-Model"]


def test_there_are_at_most_three_similar_names():
    assert len(near_names("gpt-4", NAMES)) == 3
