"""Precedence of the sources of settings."""

import pytest
from each import each
from example_settings import EVERY_TABLE, write_settings

from reservoir_cli.settings import config
from reservoir_cli.settings.schema import DEFAULTS, PROFILES

PLACES = [
    # the sources in their order, with their values
    ("flag", 60),
    ("environment", 50),
    ("partition", 40),
    ("model", 30),
    ("file", 20),
    ("profile", 25),  # the value of the profile "large"
    ("default", 15),
]


@pytest.mark.parametrize("first", range(len(PLACES)), ids=[name for name, _ in PLACES])
def test_the_first_source_that_sets_a_value_wins(file, monkeypatch, first):
    sources = dict(PLACES[first:])
    text = "token_multiplier = 1.5\n"  # other keys of a source are not affected
    if "profile" in sources:
        text += 'profile = "large"\n'
    if "file" in sources:
        text += "recent_context_size = 20\n"
    if "model" in sources:
        text += "[models.mine]\ncontext_window = 50000\nrecent_context_size = 30\n"
    if "partition" in sources:
        text += "[partitions.p]\nrecent_context_size = 40\n"
    if "environment" in sources:
        monkeypatch.setenv("RESERVOIR_RECENT_CONTEXT_SIZE", "50")
    flags = {"recent_context_size": 60 if "flag" in sources else None}
    loaded = config.load(write_settings(file, text), flags)
    name, value = PLACES[first]
    assert loaded.lookup("recent_context_size", "p", "mine") == (value, name)
    assert loaded.settings("p", "mine").recent_context_size == value
    assert loaded.settings("p", "mine").token_multiplier == 1.5


def test_tables_are_chosen_by_the_partition_and_model_that_are_set(file):
    loaded = config.load(write_settings(file, EVERY_TABLE))
    assert loaded.lookup("token_multiplier") == (1.2, "partition")
    assert loaded.lookup("token_multiplier", partition="home") == (1.3, "model")
    assert loaded.lookup("token_multiplier", "home", "gpt-4") == (1.1, "file")
    assert loaded.lookup("recent_context_size") == (13, "model")
    assert loaded.lookup("recent_context_size", model="gpt-4") == (11, "file")


def test_a_tables_partition_and_model_may_come_from_the_environment(file, monkeypatch):
    monkeypatch.setenv("RESERVOIR_PARTITION", "home")
    monkeypatch.setenv("RESERVOIR_MODEL", "gpt-4")
    loaded = config.load(write_settings(file, EVERY_TABLE))
    assert loaded.lookup("partition") == ("home", "environment")
    assert loaded.lookup("token_multiplier") == (1.1, "file")


@pytest.mark.parametrize("name", ["GPT-3.5-Turbo", "openai/gpt-3.5-turbo", "gpt-35-turbo"])
def test_a_models_table_is_found_by_any_of_its_names(file, name):
    loaded = config.load(write_settings(file, EVERY_TABLE))
    assert loaded.lookup("recent_context_size", model=name) == (13, "model")


WINDOWS = [
    # model, profile by its window
    (None, ""),
    ("gpt-3.5-turbo", "small"),
    ("gpt-4", "small"),
    ("mistral:7b", ""),
    ("gpt-4o", "large"),
    ("nobody-knows-it", ""),
]


@each(("model", "profile"), WINDOWS)
def test_the_profile_depends_on_the_window(model, profile):
    loaded = config.load()
    assert loaded.profile(model=model) == profile
    for key in ("recent_context_size", "semantic_context_size", "synapse_depth"):
        value, origin = loaded.lookup(key, model=model)
        sizes = PROFILES.get(profile, {})
        assert value == sizes.get(key, DEFAULTS[key])
        assert origin == ("profile" if key in sizes else "default")


def test_an_explicit_profile_overrides_the_window(file):
    text = 'profile = "small"\n[models.gpt-4o]\nprofile = "large"\n[partitions.p]\nprofile="small"'
    loaded = config.load(write_settings(file, text))
    assert loaded.profile(model="gpt-4") == "small"
    assert loaded.profile(model="gpt-4o") == "large"
    assert loaded.profile("p", "gpt-4o") == "small"
    assert config.load(file, {"profile": "large"}).profile("p", "gpt-4") == "large"


RESERVES = [
    # file, model, reserve
    ("", None, 4_096),
    ("", "gpt-3.5-turbo", 1_024),
    ("", "gpt-4o", 8_000),
    ("", "nobody-knows-it", 4_096),
    ("token_reserve = 7", None, 7),
    ("token_reserve = 7", "gpt-4o", 7),
    ("token_reserve = 7\n[models.gpt-4o]\nreserve_tokens = 9", "gpt-4o", 9),
    ("token_reserve = 7\n[models.gpt-4o]\nreserve_tokens = 0", "gpt-4o", 0),
    ("token_reserve = 7\n[models.gpt-4o]\nreserve_tokens = 9", "gpt-4", 7),
    ("token_reserve = 7\n[partitions.default]\ntoken_reserve = 8", "gpt-4", 8),
]


@pytest.mark.parametrize(("text", "model", "reserve"), RESERVES)
def test_the_reserve_for_the_answer(file, text, model, reserve):
    loaded = config.load(write_settings(file, text))
    assert loaded.reserve(model, loaded.settings(model=model)) == reserve


CONTEXT_WINDOWS = [
    ("", "gpt-4", 8_192),
    ("", "nobody-knows-it", None),
    ("[models.gpt-4]\ncontext_window = 9000", "gpt-4", 9_000),
    ("[models.gpt-4]\nmax_context_tokens = 9000", "gpt-4", 8_192),
    ("[models.mine]\nmax_context_tokens = 9000", "mine", 9_000),
    ("[models.mine]\nmax_context_tokens = 9000\ncontext_window = 9001", "mine", 9_001),
    ("[models.mine]\nreserve_tokens = 1", "mine", None),
]


@pytest.mark.parametrize(("text", "model", "window"), CONTEXT_WINDOWS)
def test_a_models_window(file, text, model, window):
    assert config.load(write_settings(file, text)).context_window(model) == window


def test_known_models_are_the_built_in_table_and_the_settings(file):
    text = (
        "[models.gpt-4]\ncontext_window = 9000\n[models.mine]\ncontext_window = 50\n"
        "reserve_tokens = 5\n[models.unsized]\nreserve_tokens = 5\n"
        "[models.'gemma3:4b']\ncontext_window = 4096\n"
    )
    models = {model.name: model for model in config.load(write_settings(file, text)).known_models()}
    assert models["gpt-4"].context_window == 9_000
    assert models["gpt-4"].reserve == 2_048
    assert (models["mine"].context_window, models["mine"].reserve) == (50, 5)
    assert models["gpt-4o"].recommended == 100_000
    assert "unsized" not in models
    assert (models["gemma3"].context_window, models["gemma3:4b"].context_window) == (128_000, 4_096)
    assert list(models) == sorted(models)


@pytest.mark.parametrize("partition", [None, "p", "q"])
@pytest.mark.parametrize("model", [None, "mine", "gpt-4o"])
def test_all_settings_at_once_equal_single_lookups(file, partition, model):
    tables = "[models.mine]\ncontext_window = 8000\n[partitions.p]\nprofile = 'large'\n"
    file.write_text("partition = 'p'\nmodel = 'mine'\nfill = true\n" + tables, encoding="utf-8")
    loaded = config.load(file, {"order": "tiers"})
    settings = loaded.settings(partition, model)
    values = {key: loaded.lookup(key, partition, model)[0] for key in DEFAULTS}
    assert {key: getattr(settings, key) for key in DEFAULTS} == values
    assert (values["profile"] == "large") == (partition != "q")
    assert values["order"] == "tiers"
