import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_file
from reservoir_cli.settings.keys import dotted_key, split_assignment, split_key
from reservoir_cli.settings.schema import (
    DEFAULTS,
    MODEL_ONLY,
    PROFILES,
    SETTINGS,
    Settings,
    Value,
    check_value,
    format_value,
    parse_value,
)

EVERY_TABLE = """\
# my settings
partition = "coding"   # where I am most of the time
model = "gpt-3.5-turbo"
token_multiplier = 1.1
recent_context_size = 11

[partitions.coding]
token_multiplier = 1.2 # finer

[models."gpt-3.5-turbo"]
token_multiplier = 1.3
recent_context_size = 13
reserve_tokens = 512
"""


@pytest.fixture
def file(home: Path) -> Path:
    home.mkdir()
    return home / "reservoir.toml"


def written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


# Precedence


PLACES = [
    # the places in their order, and what each says
    ("flag", 60),
    ("environment", 50),
    ("partition", 40),
    ("model", 30),
    ("file", 20),
    ("profile", 25),  # what "large" says
    ("default", 15),
]


@pytest.mark.parametrize("first", range(len(PLACES)), ids=[name for name, _ in PLACES])
def test_the_first_place_that_says_something_holds(
    file: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    said = dict(PLACES[first:])
    text = "token_multiplier = 1.5\n"  # other keys of a place are not disturbed
    if "profile" in said:
        text += 'profile = "large"\n'
    if "file" in said:
        text += "recent_context_size = 20\n"
    if "model" in said:
        text += "[models.mine]\ncontext_window = 50000\nrecent_context_size = 30\n"
    if "partition" in said:
        text += "[partitions.p]\nrecent_context_size = 40\n"
    if "environment" in said:
        monkeypatch.setenv("RESERVOIR_RECENT_CONTEXT_SIZE", "50")
    flags = {"recent_context_size": 60 if "flag" in said else None}
    known = config.load(written(file, text), flags)
    name, value = PLACES[first]
    assert known.lookup("recent_context_size", "p", "mine") == (value, name)
    assert known.settings("p", "mine").recent_context_size == value
    assert known.settings("p", "mine").token_multiplier == 1.5


def test_tables_are_chosen_by_the_partition_and_model_that_are_set(file: Path) -> None:
    known = config.load(written(file, EVERY_TABLE))
    assert known.lookup("token_multiplier") == (1.2, "partition")
    assert known.lookup("token_multiplier", partition="home") == (1.3, "model")
    assert known.lookup("token_multiplier", "home", "gpt-4") == (1.1, "file")
    assert known.lookup("recent_context_size") == (13, "model")
    assert known.lookup("recent_context_size", model="gpt-4") == (11, "file")


def test_a_tables_partition_and_model_may_come_from_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESERVOIR_PARTITION", "home")
    monkeypatch.setenv("RESERVOIR_MODEL", "gpt-4")
    known = config.load(written(file, EVERY_TABLE))
    assert known.lookup("partition") == ("home", "environment")
    assert known.lookup("token_multiplier") == (1.1, "file")


@pytest.mark.parametrize("name", ["GPT-3.5-Turbo", "openai/gpt-3.5-turbo", "gpt-35-turbo"])
def test_a_models_table_is_found_by_any_of_its_names(file: Path, name: str) -> None:
    known = config.load(written(file, EVERY_TABLE))
    assert known.lookup("recent_context_size", model=name) == (13, "model")


WINDOWS = [
    # model, profile by its window
    (None, ""),
    ("gpt-3.5-turbo", "small"),
    ("gpt-4", "small"),
    ("mistral:7b", ""),
    ("gpt-4o", "large"),
    ("nobody-knows-it", ""),
]


@pytest.mark.parametrize(("model", "profile"), WINDOWS)
def test_the_profile_goes_by_the_window(model: str | None, profile: str) -> None:
    known = config.load()
    assert known.profile(model=model) == profile
    for key in ("recent_context_size", "semantic_context_size", "synapse_depth"):
        value, origin = known.lookup(key, model=model)
        sizes = PROFILES.get(profile, {})
        assert value == sizes.get(key, DEFAULTS[key])
        assert origin == ("profile" if key in sizes else "default")


def test_a_profile_that_is_set_goes_before_the_window(file: Path) -> None:
    text = 'profile = "small"\n[models.gpt-4o]\nprofile = "large"\n[partitions.p]\nprofile="small"'
    known = config.load(written(file, text))
    assert known.profile(model="gpt-4") == "small"
    assert known.profile(model="gpt-4o") == "large"
    assert known.profile("p", "gpt-4o") == "small"
    assert config.load(file, {"profile": "large"}).profile("p", "gpt-4") == "large"


RESERVES = [
    # file, model, reserve
    ("", None, 4_096),
    ("", "gpt-3.5-turbo", 1_024),
    ("", "gpt-4o", 8_000),
    ("", "nobody-knows-it", 4_096),
    ("token_reserve = 7", None, 7),
    ("token_reserve = 7", "gpt-4o", 7),
    ("output_reserve = 7", "gpt-4o", 7),
    ("token_reserve = 7\n[models.gpt-4o]\nreserve_tokens = 9", "gpt-4o", 9),
    ("token_reserve = 7\n[models.gpt-4o]\nreserve_tokens = 0", "gpt-4o", 0),
    ("token_reserve = 7\n[models.gpt-4o]\nreserve_tokens = 9", "gpt-4", 7),
    ("token_reserve = 7\n[partitions.default]\ntoken_reserve = 8", "gpt-4", 8),
]


@pytest.mark.parametrize(("text", "model", "reserve"), RESERVES)
def test_the_reserve_for_the_answer(file: Path, text: str, model: str | None, reserve: int) -> None:
    known = config.load(written(file, text))
    assert known.reserve(model, known.settings(model=model)) == reserve


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
def test_a_models_window(file: Path, text: str, model: str, window: int | None) -> None:
    assert config.load(written(file, text)).context_window(model) == window


def test_known_models_are_the_table_with_what_the_file_says(file: Path) -> None:
    text = (
        "[models.gpt-4]\ncontext_window = 9000\n[models.mine]\ncontext_window = 50\n"
        "reserve_tokens = 5\n[models.unsized]\nreserve_tokens = 5\n"
    )
    models = {each.name: each for each in config.load(written(file, text)).known_models()}
    assert models["gpt-4"].context_window == 9_000
    assert models["gpt-4"].reserve == 2_048
    assert (models["mine"].context_window, models["mine"].reserve) == (50, 5)
    assert models["gpt-4o"].recommended == 100_000
    assert "unsized" not in models
    assert list(models) == sorted(models)


# Reading the file


def test_without_a_file_everything_is_at_its_default() -> None:
    known = config.load()
    assert not known.path.exists()
    assert known.settings() == Settings()
    assert {origin for _, _, origin in config.listed(known)} == {"default"}


def test_every_setting_is_listed_and_then_what_tables_say(file: Path) -> None:
    rows = config.listed(config.load(written(file, EVERY_TABLE)))
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
def test_a_models_name_keeps_its_dots_however_its_header_is_written(
    file: Path, header: str
) -> None:
    known = config.load(written(file, f"{header}\nreserve_tokens = 5\n"))
    assert known.models == {"gpt-3.5-turbo": {"reserve_tokens": 5}}


def test_a_name_and_a_longer_name_are_two_models(file: Path) -> None:
    text = "[models.gpt-4]\nreserve_tokens = 4\n[models.gpt-4.1]\nreserve_tokens = 41\n"
    known = config.load(written(file, text))
    assert config.effective(known, "models.gpt-4.reserve_tokens") == (4, "model")
    assert config.effective(known, "models.gpt-4.1.reserve_tokens") == (41, "model")


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbfmodel = "gpt-4"\n',
        b'model = "gpt-4"\r\n# comment\r\n',
        b'\xef\xbb\xbf# comment\r\nmodel = "gpt-4"',
    ],
)
def test_a_byte_order_mark_and_windows_line_ends_are_read(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    assert config.load(file).values == {"model": "gpt-4"}
    edit_file.edit(file, {"partition": "p"})
    assert config.load(file).values == {"model": "gpt-4", "partition": "p"}


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
    "a date": ("model = 2026-05-09", "model must be a text"),
    "a list": ("model = ['gpt-4']", "model must be a text"),
    "a table for a value": ("[model]\nname = 'gpt-4'", "model must be a text"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_a_usage_error_and_is_never_edited(
    file: Path, text: str, reason: str
) -> None:
    written(file, text)
    with pytest.raises(UsageError, match=reason) as caught:
        config.load(file)
    assert caught.value.exit_code == 2
    assert str(file) in caught.value.message
    assert caught.value.hint
    assert "--list" not in caught.value.hint  # it would fail as well
    with pytest.raises(UsageError):
        edit_file.edit(file, {"fill": "true"})
    assert file.read_text() == text


def test_a_file_that_is_not_utf8_is_a_usage_error(file: Path) -> None:
    file.write_bytes(b'model = "caf\xe9"\n')
    with pytest.raises(UsageError, match="not UTF-8"):
        config.load(file)


def test_a_folder_in_place_of_the_file_is_a_usage_error(file: Path) -> None:
    file.mkdir()
    with pytest.raises(UsageError, match="cannot read the settings file"):
        config.load(file)


def test_a_file_that_was_asked_for_must_be_there(file: Path) -> None:
    with pytest.raises(UsageError, match="there is no settings file"):
        config.load(file)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("recent_contxt_size", "recent_context_size"),
        ("similarity_wieght", "similarity_weight"),
        ("ouput_reserve", "output_reserve"),
        ("models.gpt-4.reserve_token", "reserve_tokens"),
        ("partitions.p.fil", "fill"),
    ],
)
def test_an_unknown_key_is_told_its_nearest_names(file: Path, key: str, near: str) -> None:
    with pytest.raises(UsageError, match="unknown setting") as caught:
        edit_file.edit(file, {key: "1"})
    assert near in str(caught.value.hint)
    with pytest.raises(UsageError, match="unknown setting"):
        config.effective(config.load(), key)


def test_a_key_like_no_other_is_told_where_to_look() -> None:
    with pytest.raises(UsageError) as caught:
        split_key("zzzzzz")
    assert "config list" in str(caught.value.hint)


@pytest.mark.parametrize("flags", [{"nonsense": 1}, {"context_window": 1}, {"models": {}}])
def test_an_unknown_flag_is_a_usage_error(flags: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="unknown setting"):
        config.load(flags=flags)


def test_a_flag_and_a_variable_may_use_the_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.load(flags={"output_reserve": 9}).settings().reserve_tokens == 9
    monkeypatch.setenv("RESERVOIR_OUTPUT_RESERVE", "8")
    assert config.load().lookup("reserve_tokens") == (8, "environment")


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESERVOIR_SIMILARITY_WEIGHT", "much")
    with pytest.raises(UsageError, match="_SIMILARITY_WEIGHT must be a number, not 'much'"):
        config.load()


# Values


WORDS = [
    # setting, word, value
    ("recent_context_size", "0", 0),
    ("recent_context_size", " 12 ", 12),
    ("token_multiplier", "1", 1.0),
    ("token_multiplier", "1e1", 10.0),
    ("similarity_weight", "0", 0.0),
    ("similarity_weight", ".5", 0.5),
    ("fill", "true", True),
    ("fill", "ON", True),
    ("fill", "yes", True),
    ("fill", "1", True),
    ("fill", "false", False),
    ("fill", "off", False),
    ("fill", "No", False),
    ("fill", "0", False),
    ("profile", "small", "small"),
    ("recall_scope", "partition", "partition"),
    ("model", "gpt-4", "gpt-4"),
    ("database", "postgresql://u@h/d", "postgresql://u@h/d"),
    ("database", "a/b.db", "a/b.db"),
    ("context_window", "1", 1),
    ("reserve_tokens", "0", 0),
]


@pytest.mark.parametrize(("key", "word", "value"), WORDS)
def test_a_word_is_read(key: str, word: str, value: Value) -> None:
    found = parse_value(key, word, key)
    assert found == value
    assert type(found) is type(value)


WRONG = [
    # setting, word, reason
    ("recent_context_size", "-1", "must be from 0 to 100,000"),
    ("recent_context_size", "100001", "must be from 0 to 100,000"),
    ("recent_context_size", "1.5", "must be a whole number"),
    ("recent_context_size", "", "must be a whole number"),
    ("recent_context_size", "many", "must be a whole number"),
    ("recent_context_size", "true", "must be a whole number"),
    ("recent_context_size", "9" * 5_000, "must be a whole number"),
    ("similarity_weight", "1.01", "must be from 0 to 1"),
    ("similarity_weight", "-0.01", "must be from 0 to 1"),
    ("similarity_weight", "nan", "must be from 0 to 1"),
    ("similarity_weight", "inf", "must be from 0 to 1"),
    ("token_multiplier", "0", "must be from 0.01 to 100"),
    ("token_multiplier", "nan", "must be from 0.01 to 100"),
    ("token_multiplier", "101", "must be from 0.01 to 100"),
    ("max_context_tokens", "0", "must be from 1 to"),
    ("fill", "maybe", "must be true or false"),
    ("fill", "2", "must be true or false"),
    ("profile", "medium", "must be one of small, large"),
    ("profile", "Small", "must be one of small, large"),
    ("recall_scope", "", "must be one of auto, instance, partition"),
    ("model", " ", "must not be empty"),
    ("partition", "", "must not be empty"),
    ("context_window", "0", "must be from 1 to 100,000,000"),
    ("reserve_tokens", "-1", "must be from 0 to"),
    ("redact", "foo", "must be one of off, mark, mask, remove"),
    ("session_gap", "long", "such as 30m, 4h or 7d"),
    ("recency_half_life", "0", "such as 30m, 4h or 7d"),
    ("database", "mysql://u:s3cret@h/d", "or postgresql://USER@HOST/DATABASE"),
    ("database", " ", "must not be empty"),
]


@pytest.mark.parametrize(("key", "word", "reason"), WRONG)
def test_a_wrong_word_is_refused_by_the_name_the_user_gave_it(
    key: str, word: str, reason: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_value(key, word, "--the-option")
    assert caught.value.message.startswith("--the-option")
    assert reason in f"{caught.value.message} {caught.value.hint}"
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fill", 1),
        ("fill", "true"),
        ("recent_context_size", True),
        ("recent_context_size", 5.0),
        ("similarity_weight", False),
        ("similarity_weight", "0.5"),
        ("model", 4),
        ("context_window", True),
        ("model", None),
    ],
)
def test_a_value_of_another_type_is_refused(key: str, value: object) -> None:
    with pytest.raises(UsageError, match=rf"^{key} must be "):
        check_value(key, value, key)


@pytest.mark.parametrize("key", [key for key, value in DEFAULTS.items() if value is not None])
def test_every_default_is_within_its_own_range(key: str) -> None:
    assert check_value(key, DEFAULTS[key], key) == DEFAULTS[key]
    assert parse_value(key, format_value(key, DEFAULTS[key]), key) == DEFAULTS[key]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_sets_settings_within_their_ranges(profile: str) -> None:
    for key, value in PROFILES[profile].items():
        assert check_value(key, value, key) == value


def test_every_setting_says_what_it_is() -> None:
    for key, each in SETTINGS.items():
        assert each.metadata["about"], key
        assert key == key.lower()


# Keys


KEYS = [
    ("fill", (None, None, "fill")),
    ("output_reserve", (None, None, "reserve_tokens")),
    ("partitions.coding.token_multiplier", ("partitions", "coding", "token_multiplier")),
    ("models.gpt-3.5-turbo.reserve_tokens", ("models", "gpt-3.5-turbo", "reserve_tokens")),
    ("models.llama3.1:8b.context_window", ("models", "llama3.1:8b", "context_window")),
    ("models.a.b.c.profile", ("models", "a.b.c", "profile")),
    ("partitions.a b.ü.fill", ("partitions", "a b.ü", "fill")),
    ('partitions."a/b c".redact', ("partitions", "a/b c", "redact")),
    ("partitions.'a/b c'.redact", ("partitions", "a/b c", "redact")),
    ('models."my-model:7b".context_window', ("models", "my-model:7b", "context_window")),
    ('models."gpt-3.5-turbo".reserve_tokens', ("models", "gpt-3.5-turbo", "reserve_tokens")),
    ('models."a.b".c.profile', ("models", "a.b.c", "profile")),
    ('partitions."Anna\'s".fill', ("partitions", "Anna's", "fill")),
    ("partitions.'a \"b\" = c'.fill", ("partitions", 'a "b" = c', "fill")),
    ('"partitions" . "a\\u00fc" . "fill"', ("partitions", "aü", "fill")),
    ('"output_reserve"', (None, None, "reserve_tokens")),
]


@pytest.mark.parametrize(("key", "parts"), KEYS)
def test_a_dotted_key_reaches_into_a_table(key: str, parts: tuple) -> None:
    assert split_key(key) == parts


@pytest.mark.parametrize(
    "key", ["models", "models.gpt-4", "partitions.fill", "models..fill", "models.gpt-4.", "", "."]
)
def test_a_key_that_names_no_setting_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        split_key(key)


@pytest.mark.parametrize(
    "key",
    [
        'partitions."a.redact',
        'partitions.a".redact',
        "partitions.Anna's.redact",
        'partitions."a"b.redact',
        'partitions.a b."c".redact',
        '"partitions.a.redact',
        'partitions."a".redact=1 #',
        'partitions."a".redact = 0\nfill',
        '"redact',
    ],
)
def test_misplaced_quotes_get_a_hint(file: Path, key: str) -> None:
    with pytest.raises(UsageError, match="misplaced quotes in") as caught:
        edit_file.edit(file, {key: "mask"})
    assert '."NAME".' in str(caught.value.hint)
    assert not file.exists()


@pytest.mark.parametrize("key", ['partitions.""."fill"', 'partitions."fill"', '"models"."a"'])
def test_a_quoted_key_that_names_no_setting_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        split_key(key)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("redact=mask", ("redact", "mask")),
        ('system_prompt=\'a="b"', ("system_prompt", '\'a="b"')),
        ('partitions."a=b".redact = mask', ('partitions."a=b".redact', " mask")),
        ("partitions.'a=b'.redact=", ("partitions.'a=b'.redact", "")),
        ('partitions."a\\"=b".redact=\nx', ('partitions."a\\"=b".redact', "\nx")),
        ('partitions."a=b', ('partitions."a', "b")),
    ],
)
def test_an_assignment_ends_its_key_at_the_first_equals_sign_outside_of_quotes(
    text: str, parts: tuple[str, str]
) -> None:
    assert split_assignment(text) == parts


EFFECTIVE = [
    ("partition", ("coding", "file")),
    ("token_multiplier", (1.2, "partition")),
    ("partitions.coding.token_multiplier", (1.2, "partition")),
    ("partitions.home.token_multiplier", (1.3, "model")),
    ("models.gpt-3.5-turbo.recent_context_size", (13, "model")),
    ("models.gpt-3.5-turbo.reserve_tokens", (512, "model")),
    ("models.gpt-4.reserve_tokens", (2_048, "default")),
    ("models.gpt-4.context_window", (8_192, "default")),
    ("models.gpt-4.recent_context_size", (11, "file")),
    ("models.nobody-knows-it.context_window", (None, "default")),
    ("min_history_messages", (2, "default")),
]


@pytest.mark.parametrize(("key", "found"), EFFECTIVE)
def test_the_effective_value_of_a_key(file: Path, key: str, found: tuple) -> None:
    assert config.effective(config.load(written(file, EVERY_TABLE)), key) == found


# Editing


def test_comments_and_order_are_kept(file: Path) -> None:
    written(file, EVERY_TABLE)
    edit_file.edit(
        file,
        {
            "token_multiplier": "1.5",
            "partitions.coding.token_multiplier": "1.6",
            "models.gpt-3.5-turbo.reserve_tokens": "600",
        },
    )
    changed = EVERY_TABLE.replace("= 1.1", "= 1.5").replace("= 1.2 #", "= 1.6 #")
    assert file.read_text() == changed.replace("= 512", "= 600")


def test_new_settings_of_the_file_come_before_its_tables(file: Path) -> None:
    written(file, "[models.gpt-4]\nreserve_tokens = 1\n")
    edit_file.edit(file, {"model": "gpt-4", "partitions.p.fill": "on"})
    known = config.load(file)
    assert known.values == {"model": "gpt-4"}
    assert known.models == {"gpt-4": {"reserve_tokens": 1}}
    assert known.partitions == {"p": {"fill": True}}


UNQUOTED = """\
# top
[models.gpt-3.5-turbo] # mine
reserve_tokens = 5 # five

[models.gpt-4.1]
reserve_tokens = 6
"""


@pytest.mark.parametrize(
    "header",
    ["[models.gpt-3.5-turbo]", "[ models . gpt-3.5-turbo ]", "  [models.gpt-3 . 5-turbo]"],
)
def test_an_unquoted_header_is_renamed_and_not_doubled(file: Path, header: str) -> None:
    written(file, UNQUOTED.replace("[models.gpt-3.5-turbo]", header))
    edit_file.edit(file, {"models.gpt-3.5-turbo.context_window": "7"})
    text = file.read_text()
    assert text.count("5-turbo") == 1
    assert '[models."gpt-3.5-turbo"] # mine\nreserve_tokens = 5 # five\n' in text
    assert "[models.gpt-4.1]\nreserve_tokens = 6" in text
    known = config.load(file)
    assert known.models["gpt-3.5-turbo"] == {"reserve_tokens": 5, "context_window": 7}
    assert known.models["gpt-4.1"] == {"reserve_tokens": 6}


def test_a_quoted_header_stays_as_it_is(file: Path) -> None:
    text = "[models.'gpt-3.5-turbo']\nreserve_tokens = 5\n"
    written(file, text)
    edit_file.edit(file, {"models.gpt-3.5-turbo.reserve_tokens": "6"})
    assert file.read_text() == text.replace("5\n", "6\n")


def test_another_name_of_a_model_changes_its_table(file: Path) -> None:
    written(file, EVERY_TABLE)
    edit_file.edit(file, {"models.openai/gpt-3.5-turbo.reserve_tokens": "9"})
    assert file.read_text() == EVERY_TABLE.replace("512", "9")


SHAPES = {
    "no file": "",
    "comments only": "# nothing yet\n",
    "no line end": 'model = "gpt-4"',
    "a group header": "[models]\n[models.gpt-4]\nreserve_tokens = 1\n",
    "an inline table": "models = { gpt-4 = { reserve_tokens = 1 } }\n",
    "an inline table in a group": "[models]\ngpt-4 = { reserve_tokens = 1 }\n",
    "dotted keys": "models.gpt-4.reserve_tokens = 1\nmodels.gpt-4.context_window = 9\n",
    "dotted keys in a group": "[models]\ngpt-4.reserve_tokens = 1\n",
    "tables out of order": (
        "[models.gpt-4]\nreserve_tokens = 1\n[partitions.p]\nfill = true\n"
        "[models.gpt-4o]\nreserve_tokens = 2\n"
    ),
    "a table inside another": (
        "[models.gpt-4]\nreserve_tokens = 1\n[models.gpt-4.1]\nreserve_tokens = 2\n"
    ),
    "an empty table": "[models.gpt-4]\n",
}
CHANGES = {
    "models.gpt-4.reserve_tokens": "5",
    "models.gpt-4o.profile": "small",
    "models.gpt-4.1.context_window": "6",
    "partitions.p.fill": "off",
    "partitions.new.fill": "on",
    "fill": "off",
}


@pytest.mark.parametrize("key", CHANGES)
@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_change_is_made_in_any_shape_of_file_and_touches_nothing_else(
    file: Path, text: str, key: str
) -> None:
    if text:
        written(file, text)
    before = _said(config.load())
    edit_file.edit(file, {key: CHANGES[key]})
    setting = split_key(key)[2]
    assert _said(config.load(file)) == {**before, key: parse_value(setting, CHANGES[key], key)}


def _said(known: config.Config) -> dict[str, Value]:
    """What a file says, by dotted key."""
    tables = {"partitions": known.partitions, "models": known.models}
    inside = {
        dotted_key(table, name, key): value
        for table, group in tables.items()
        for name, values in group.items()
        for key, value in values.items()
    }
    return {**known.values, **inside}


def test_both_spellings_of_a_header_in_one_file_are_an_error_of_ours(file: Path) -> None:
    text = (
        '[models.gpt-3.5-turbo]\nreserve_tokens = 1\n[models."gpt-3.5-turbo"]\ncontext_window = 2\n'
    )
    written(file, text)
    try:
        edit_file.edit(file, {"models.gpt-3.5-turbo.profile": "small"})
    except UsageError:
        assert file.read_text() == text
    else:
        assert config.load(file).models["gpt-3.5-turbo"] == {
            "reserve_tokens": 1,
            "context_window": 2,
            "profile": "small",
        }


def test_a_setting_is_taken_out(file: Path) -> None:
    written(file, EVERY_TABLE)
    edit_file.edit(file, {"recent_context_size": None, "models.gpt-3.5-turbo.reserve_tokens": None})
    kept = EVERY_TABLE.replace("recent_context_size = 11\n", "")
    assert file.read_text() == kept.replace("reserve_tokens = 512\n", "")


def test_taking_out_what_is_not_there_changes_nothing(file: Path) -> None:
    written(file, EVERY_TABLE)
    edit_file.edit(file, {"fill": None, "partitions.coding.fill": None})
    assert config.load(file).values == config.load(written(file, EVERY_TABLE)).values


def test_the_other_name_of_a_setting_is_changed_where_it_stands(file: Path) -> None:
    written(file, "output_reserve = 5\n")
    edit_file.edit(file, {"output_reserve": "6"})
    assert config.load(file).values == {"reserve_tokens": 6}
    edit_file.edit(file, {"token_reserve": None})
    assert config.load(file).values == {}


ONE_WRONG = [
    {"fill": "on", "recent_context_size": "-1"},
    {"fill": "on", "nonsense": "1"},
    {"fill": "on", "models.gpt-4.similarity_weight": "1"},
    {"fill": "on", "model": "caf\udce9"},
]


@pytest.mark.parametrize("changes", ONE_WRONG, ids=[list(each)[1] for each in ONE_WRONG])
@pytest.mark.parametrize("text", ["", EVERY_TABLE], ids=["no file", "a file"])
def test_several_changes_are_made_together_or_not_at_all(
    file: Path, text: str, changes: dict[str, str | None]
) -> None:
    if text:
        written(file, text)
    with pytest.raises(UsageError):
        edit_file.edit(file, changes)
    assert file.exists() is bool(text)
    assert not text or file.read_text() == text
    assert len(list(file.parent.iterdir())) == bool(text)


READ_ONLY = """
import sys
from pathlib import Path
from reservoir_cli.settings import config, edit_file
from reservoir_cli.errors import UsageError
try:
    edit_file.edit(Path(sys.argv[1]), {"fill": "true"})
except UsageError as error:
    sys.exit(f"{error.exit_code} {error.message}")
"""


def test_a_folder_that_cannot_be_written_is_a_usage_error(file: Path) -> None:
    written(file, "# mine\n")
    file.parent.chmod(0o500)
    command = [sys.executable, "-c", READ_ONLY, str(file)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    file.parent.chmod(0o700)
    assert done.stderr == f"2 cannot write {file}: Permission denied\n"
    assert file.read_text() == "# mine\n"


def _values(key: str) -> st.SearchStrategy[Any]:
    """Every value that a setting may have."""
    if key in MODEL_ONLY:
        return st.integers(*MODEL_ONLY[key])
    about = SETTINGS[key].metadata
    kind = type(check_value.__globals__["_kind"](key)())
    if about["choices"]:
        return st.sampled_from(about["choices"])
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(about["low"], about["high"])
    if about["duration"]:
        return st.integers(1, 10**10).map(float) | st.integers(1, 10**7).map(lambda each: each / 10)
    if kind is float:
        low = about["low"] if about["above"] is None else about["above"]
        return st.floats(low, about["high"], exclude_min=about["above"] is not None)
    return st.text(min_size=1).filter(str.strip)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1).filter(str.strip)


def _keys() -> st.SearchStrategy[tuple[str, str]]:
    """A dotted key and its setting."""
    tops = st.sampled_from([(key, key) for key in SETTINGS])
    in_partitions = [key for key, each in SETTINGS.items() if each.metadata["partition"]]
    in_models = [key for key, each in SETTINGS.items() if each.metadata["model"]] + [*MODEL_ONLY]

    def dotted(table: str, keys: list[str]) -> st.SearchStrategy[tuple[str, str]]:
        names = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
        return st.tuples(names, st.sampled_from(keys)).map(
            lambda pair: (dotted_key(table, *pair), pair[1])
        )

    return tops | dotted("partitions", in_partitions) | dotted("models", in_models)


CHANGE = _keys().flatmap(
    lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), _values(pair[1]))
)


@given(CHANGE, st.sampled_from(["", "# mine\n", EVERY_TABLE]))
def test_what_is_set_is_read_again_as_the_same(change: tuple[str, str, Value], text: str) -> None:
    key, setting, value = change
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reservoir.toml"
        if text:
            written(file, text)
        edit_file.edit(file, {key: format_value(setting, value)})
        found = _said(config.load(file))[key]
        assert found == value
        assert type(found) is type(value)
        assert all(line in file.read_text() for line in text.splitlines() if line[:1] == "#")


@given(CHANGE)
def test_what_a_setting_prints_is_read_as_the_same(change: tuple[str, str, Value]) -> None:
    _, setting, value = change
    assert parse_value(setting, format_value(setting, value), setting) == value
