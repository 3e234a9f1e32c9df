"""Reading the settings file, and reporting its errors."""

import pytest
from each import each
from example_settings import EVERY_TABLE, write_settings

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.settings.schema import SETTINGS, Settings
from reservoir_cli.settings.setting_keys import split_key


def test_without_a_file_every_setting_has_its_default():
    loaded = config.load()
    assert not loaded.path.exists()
    assert loaded.settings() == Settings()
    assert {origin for _, _, origin in config.list_settings(loaded)} == {"default"}


def test_every_setting_is_listed_before_those_of_tables(file):
    rows = config.list_settings(config.load(write_settings(file, EVERY_TABLE)))
    assert [key for key, _, _ in rows[: len(SETTINGS)]] == list(SETTINGS)
    assert rows[len(SETTINGS) :] == [
        ("partitions.coding.token_multiplier", 1.2, "partition"),
        ("models.gpt-3.5-turbo.token_multiplier", 1.3, "model"),
        ("models.gpt-3.5-turbo.recent_context_size", 13, "model"),
        ("models.gpt-3.5-turbo.reserve_tokens", 512, "model"),
    ]


@pytest.mark.parametrize(
    "header",
    [
        "[models.gpt-3.5-turbo]",
        '[models."gpt-3.5-turbo"]',
        "[models.'gpt-3.5-turbo']",
        "[ models . gpt-3.5-turbo ]",
        '["models"."gpt-3.5-turbo"]',
    ],
)
def test_the_name_of_a_model_keeps_its_dots_in_any_notation(file, header):
    loaded = config.load(write_settings(file, f"{header}\nreserve_tokens = 5\n"))
    assert loaded.models == {"gpt-3.5-turbo": {"reserve_tokens": 5}}


def test_a_name_and_its_extension_are_two_models(file):
    text = "[models.gpt-4]\nreserve_tokens = 4\n[models.gpt-4.1]\nreserve_tokens = 41\n"
    loaded = config.load(write_settings(file, text))
    assert config.effective_value(loaded, "models.gpt-4.reserve_tokens") == (4, "model")
    assert config.effective_value(loaded, "models.gpt-4.1.reserve_tokens") == (41, "model")


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbfmodel = "gpt-4"\n',
        b'model = "gpt-4"\r\n# comment\r\n',
        b'\xef\xbb\xbf# comment\r\nmodel = "gpt-4"',
    ],
)
def test_a_byte_order_mark_and_windows_line_ends_are_read(file, data):
    file.write_bytes(data)
    assert config.load(file).values == {"model": "gpt-4"}
    edit_settings_file.edit(file, {"partition": "p"})
    assert config.load(file).values == {"model": "gpt-4", "partition": "p"}


@pytest.mark.parametrize("name", ["llama3:8b", "org/name", "büro"])
def test_a_name_that_needs_quotes_is_shown_in_quotes(file, name):
    write_settings(file, f"fill = true\n[models.{name}]  # local\ncontext_window = 9\n")
    with pytest.raises(UsageError) as caught:
        config.load(file)
    assert caught.value.hint == f'write the name in quotes: [models."{name}"]'


@pytest.mark.parametrize("name", ["gpt-3.5-turbo", "llama3:8b", "org/a.b"])
def test_a_model_with_dots_is_written_in_quotes_and_read_again(file, name):
    edit_settings_file.edit(file, {f"models.{name}.context_window": "9000"})
    assert f'[models."{name}"]' in file.read_text("utf-8")
    assert config.load(file).models[name] == {"context_window": 9000}
    edit_settings_file.edit(file, {f"models.{name}.context_window": None})
    assert not config.load(file).models


BROKEN = {
    "no TOML": ("model = ", "is not valid TOML"),
    "a torn string": ('model = "gpt', "is not valid TOML"),
    "a key twice": ("partition = 'a'\npartition = 'b'", "is not valid TOML"),
    "a model under both spellings": (
        '[models.gpt-3.5-turbo]\nreserve_tokens = 1\n[models."gpt-3.5-turbo"]\nreserve_tokens = 2',
        "is set twice",
    ),
    "a table that is none": ("models = 3", "must be a table"),
    "a name that is no table": ("[partitions]\ncoding = 3", "must be a table"),
    "a table that is no name": ('[models."a\\u0085"]\nfill = true', r"name in \[models\] cannot"),
    "a project in no name": ('[projects]\n"/p" = "a\\nb"', "projects./p cannot contain control"),
    "an unknown setting": ("recent_contxt_size = 3", "unknown setting 'recent_contxt_size'"),
    "an unknown table": ("[model_s]\na = 1", "unknown setting 'model_s'"),
    "a setting no partition has": ("[partitions.p]\npartition = 'q'", "unknown setting"),
    "a setting no model has": ("[models.m]\nsimilarity_weight = 0.1", "unknown setting"),
    "a setting only models have": ("context_window = 5", "unknown setting"),
    "a wrong type": ("recent_context_size = '5'", "must be a whole number"),
    "a wrong type in a table": (
        "[models.'a.b']\nreserve_tokens = 1.5",
        r"models.a.b.reserve_tokens must be a whole number",
    ),
    "a store at no server": ("database = 'foo://x'", "database: a store at foo:// is not"),
    "a setting of a table": ("[models.'a b']\nnosuch = 1", r"'nosuch' in \[models.a b\]"),
    "a date": ("model = 2026-05-09", "model must be a string"),
    "a NUL in a path": (r'database = "a\u0000b"', "database is not valid text"),
    "a NUL in a name": (r'embedding_model = "a\u0000b"', "embedding_model is not valid text"),
    "a NUL in a list": (r'mcp.partitions = ["a\u0000"]', "mcp.partitions is not valid text"),
    "a NUL in a folder": (r'projects."/a\u0000b" = "work"', "projects: .* is not a path"),
    "a list": ("model = ['gpt-4']", "model must be a string"),
    "a table for a value": ("[model]\nname = 'gpt-4'", "model must be a string"),
}


@each("name", BROKEN)
def test_an_invalid_file_is_a_usage_error_and_never_edited(file, name):
    text, reason = BROKEN[name]
    write_settings(file, text)
    with pytest.raises(UsageError, match=reason) as caught:
        config.load(file)
    assert caught.value.exit_code == 2
    assert str(file) in caught.value.message
    assert caught.value.hint
    assert "--list" not in caught.value.hint  # it would fail as well
    with pytest.raises(UsageError):
        edit_settings_file.edit(file, {"fill": "true"})
    assert file.read_text() == text


def test_a_file_that_is_not_utf8_is_a_usage_error(file):
    file.write_bytes(b'model = "caf\xe9"\n')
    with pytest.raises(UsageError, match="not UTF-8"):
        config.load(file)


def test_a_folder_in_place_of_the_file_is_a_usage_error(file):
    file.mkdir()
    with pytest.raises(UsageError, match="cannot read the settings file"):
        config.load(file)


def test_an_explicitly_named_file_must_exist(file):
    with pytest.raises(UsageError, match="there is no settings file"):
        config.load(file)


@pytest.mark.parametrize(
    ("key", "similar"),
    [
        ("recent_contxt_size", "recent_context_size"),
        ("similarity_wieght", "similarity_weight"),
        ("models.gpt-4.reserve_token", "reserve_tokens"),
        ("partitions.p.fil", "fill"),
    ],
)
def test_an_unknown_key_gets_similar_names(file, key, similar):
    with pytest.raises(UsageError, match="unknown setting") as caught:
        edit_settings_file.edit(file, {key: "1"})
    assert similar in str(caught.value.hint)
    with pytest.raises(UsageError, match="unknown setting"):
        config.effective_value(config.load(), key)


def test_a_key_without_similar_names_gets_a_general_hint():
    with pytest.raises(UsageError) as caught:
        split_key("zzzzzz")
    assert "config list" in str(caught.value.hint)


@pytest.mark.parametrize("flags", [{"nonsense": 1}, {"context_window": 1}, {"models": {}}])
def test_an_unknown_flag_is_a_usage_error(flags):
    with pytest.raises(UsageError, match="unknown setting"):
        config.load(flags=flags)


def test_a_flag_and_a_variable_may_use_the_other_name(monkeypatch):
    assert config.load(flags={"token_reserve": 9}).settings().reserve_tokens == 9
    monkeypatch.setenv("RESERVOIR_TOKEN_RESERVE", "8")
    assert config.load().lookup("reserve_tokens") == (8, "environment")


def test_an_invalid_variable_is_named(monkeypatch):
    monkeypatch.setenv("RESERVOIR_SIMILARITY_WEIGHT", "much")
    with pytest.raises(UsageError, match="_SIMILARITY_WEIGHT must be a number, not 'much'"):
        config.load()


def test_a_hint_names_a_setting_once(file):
    with pytest.raises(UsageError) as caught:
        edit_settings_file.edit(file, {"trim": "1"})
    assert str(caught.value.hint) == "did you mean trim_budget_tokens?"
