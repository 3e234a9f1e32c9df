"""Dotted keys of settings."""

import pytest
from each import each
from example_settings import EVERY_TABLE, write_settings

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.settings.setting_keys import split_assignment, split_key

KEYS = [
    ("fill", (None, None, "fill")),
    ("token_reserve", (None, None, "reserve_tokens")),
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
    ('"token_reserve"', (None, None, "reserve_tokens")),
]


@each(("key", "parts"), KEYS)
def test_a_dotted_key_reaches_into_a_table(key, parts):
    assert split_key(key) == parts


@each(
    "key", ["models", "models.gpt-4", "partitions.fill", "models..fill", "models.gpt-4.", "", "."]
)
def test_a_key_that_names_no_setting_is_refused(key):
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
def test_misplaced_quotes_get_a_hint(file, key):
    with pytest.raises(UsageError, match="misplaced quotes in") as caught:
        edit_settings_file.edit(file, {key: "mask"})
    assert '."NAME".' in str(caught.value.hint)
    assert not file.exists()


@pytest.mark.parametrize("key", ['partitions.""."fill"', 'partitions."fill"', '"models"."a"'])
def test_a_quoted_key_that_names_no_setting_is_refused(key):
    with pytest.raises(UsageError):
        split_key(key)


@each(
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
def test_an_assignment_ends_its_key_at_the_first_equals_sign_outside_of_quotes(text, parts):
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


@pytest.mark.parametrize(("key", "expected"), EFFECTIVE)
def test_the_effective_value_of_a_key(file, key, expected):
    assert config.effective_value(config.load(write_settings(file, EVERY_TABLE)), key) == expected
