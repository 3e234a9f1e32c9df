"""Parsing and validating values of settings."""

import pytest
from each import each

from reservoir_cli.errors import UsageError
from reservoir_cli.settings.schema import DEFAULTS, PROFILES, SETTINGS, TABLES
from reservoir_cli.settings.setting import Setting

#: Every setting of any table, by its name.
ALL: dict[str, Setting] = {
    name: setting for table in TABLES.values() for name, setting in table.items()
} | SETTINGS

WORDS = [
    # setting, text, value
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
    ("context_window", "128,000", 128_000),
    ("context_window", "1,50,000", 150_000),
    ("context_window", "8_192", 8_192),
    ("reserve_tokens", "0", 0),
    ("retention_days", "90", 90),
    ("retention_days", "90d", 90),
    ("retention_days", "2w", 14),
    ("retention_days", "6 months", 182),
    ("retention_days", " 1Y ", 365),
]


@each(("key", "word", "value"), WORDS)
def test_a_value_is_parsed(key, word, value):
    parsed = ALL[key].parse(word, key)
    assert parsed == value
    assert type(parsed) is type(value)


WRONG = [
    # setting, text, reason
    ("recent_context_size", "-1", "must be from 0 to 100,000"),
    ("recent_context_size", "100001", "must be from 0 to 100,000"),
    ("recent_context_size", "1.5", "must be a whole number"),
    ("recent_context_size", "1,5", "must be a whole number"),
    ("recent_context_size", "", "must be a whole number"),
    ("recent_context_size", "many", "must be a whole number"),
    ("recent_context_size", "true", "must be a whole number"),
    ("recent_context_size", "9" * 5_000, "must be a whole number"),
    ("retention_days", "6m", "an age such as 90d"),
    ("retention_days", "23h", "an age such as 90d"),
    ("retention_days", "1000y", "must be from 1 to 36,500"),
    ("retention_days", "9" * 400 + "d", "must be a whole number"),
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
    ("database", "postgresql:/u:s3cret@h/d", "postgresql://USER@HOST:PORT/DATABASE"),
    ("database", " ", "must not be empty"),
    ("database", "./:memory:", "would be lost when the command ends"),
]


@pytest.mark.parametrize("key", ["path", "url", "embedding_model"])
def test_text_of_another_type_is_to_be_written_in_quotes(key):
    with pytest.raises(UsageError) as caught:
        ALL[key].check(5, "the entry")
    assert (caught.value.message, caught.value.hint) == (
        "the entry must be a string, not 5",
        f'write {key} = "…"',
    )


@each(("key", "word", "reason"), WRONG)
def test_an_invalid_value_is_refused_by_the_name_that_the_user_typed(key, word, reason):
    with pytest.raises(UsageError) as caught:
        ALL[key].parse(word, "--the-option")
    assert caught.value.message.startswith("--the-option")
    assert reason in f"{caught.value.message} {caught.value.hint}"
    assert "s3cret" not in caught.value.message


@each(
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
def test_a_value_of_another_type_is_refused(key, value):
    with pytest.raises(UsageError, match=rf"^{key} must be "):
        ALL[key].check(value, key)


@each("key", [key for key, value in DEFAULTS.items() if value is not None])
def test_every_default_is_within_its_own_range(key):
    assert ALL[key].check(DEFAULTS[key], key) == DEFAULTS[key]
    assert ALL[key].parse(ALL[key].format(DEFAULTS[key]), key) == DEFAULTS[key]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_sets_settings_within_their_ranges(profile):
    for key, value in PROFILES[profile].items():
        assert ALL[key].check(value, key) == value


def test_every_setting_has_a_description():
    for key, setting in SETTINGS.items():
        assert setting.about, key
        assert key == key.lower()
