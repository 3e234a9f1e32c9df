"""Older names of settings: accepted everywhere, never listed, with their original scale."""

from pathlib import Path

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.settings.schema import ALIASES, SETTINGS, VARIABLES

#: Alias, its value, and the resulting value of the setting.
VALUES = [
    ("token_reserve", 7, 7),
    ("output_reserve", 7, 7),
    ("context_budget_tokens", 4_000, 4_000),
    ("similarity_threshold", 0.85, 0.7),
    ("similarity_threshold", 0.0, -1.0),
    ("synapse_threshold", 0.6, 0.2),
    ("synapse_threshold", 1.0, 1.0),
    ("min_similarity", 0.85, 0.7),
    ("min_similarity", 0.0, 0.0),
]


@pytest.fixture
def file(home: Path) -> Path:
    home.mkdir()
    return home / "reservoir.toml"


def test_every_alias_is_tried_and_none_is_listed() -> None:
    assert {alias for alias, *_ in VALUES} == set(ALIASES)
    assert set(ALIASES.values()) <= set(SETTINGS)
    keys = {key for key, _, _ in config.list_settings(config.load())}
    assert not keys & set(ALIASES)


def test_the_defaults_equal_those_of_the_older_names() -> None:
    for alias, value in (("similarity_threshold", 0.85), ("synapse_threshold", 0.85)):
        assert config.effective_value(config.load(), alias) == (value, "default")


@pytest.mark.parametrize("origin", ["file", "partition", "environment", "flag"])
@pytest.mark.parametrize(("alias", "written", "value"), VALUES)
def test_an_alias_is_read_everywhere(
    file: Path, monkeypatch: pytest.MonkeyPatch, alias: str, written: float, value: float, origin
) -> None:
    setting = ALIASES[alias]
    header = "[partitions.default]\n" if origin == "partition" else ""
    if origin in ("file", "partition"):
        file.write_text(f"{header}{alias} = {written}\n", encoding="utf-8")
    if origin == "environment":
        monkeypatch.setenv(VARIABLES[alias], str(written))
    loaded = config.load(flags={alias: written} if origin == "flag" else None)
    assert loaded.lookup(setting) == (value, origin)
    assert getattr(loaded.settings(), setting) == value
    assert config.effective_value(loaded, alias) == (written, origin)
    assert loaded.warnings == ()


def test_the_reserve_of_a_model_may_be_set_by_each_of_its_names(file: Path) -> None:
    for name in ("reserve_tokens", "token_reserve", "output_reserve"):
        file.write_text(f"token_reserve = 1\n[models.gpt-4]\n{name} = 9\n", encoding="utf-8")
        loaded = config.load()
        assert loaded.reserve("gpt-4", loaded.settings(model="gpt-4")) == 9


@pytest.mark.parametrize("key", ["RESERVOIR_TOKEN_RESERVE", "RESERVOIR_RESERVE_TOKENS"])
def test_a_reserve_in_the_environment_overrides_every_table(
    file: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    tables = ("", "[partitions.p]\n", "[models.gpt-4]\n")
    text = "".join(f"{table}reserve_tokens = {value}\n" for value, table in enumerate(tables, 1))
    file.write_text(text, encoding="utf-8")
    loaded = config.load()
    assert loaded.lookup("reserve_tokens", "p", "gpt-4") == (2, "partition")
    assert loaded.lookup("reserve_tokens", "q", "gpt-4") == (3, "model")
    monkeypatch.setenv(key, "4")
    assert config.load().lookup("reserve_tokens", "p", "gpt-4") == (4, "environment")


TWICE = [
    ("reserve_tokens = 5\ntoken_reserve = 6\n", "token_reserve is ignored: reserve_tokens", 5),
    ("output_reserve = 6\nreserve_tokens = 5\n", "output_reserve is ignored: reserve_tokens", 5),
    ("output_reserve = 6\ntoken_reserve = 5\n", "output_reserve is ignored: token_reserve", 5),
]


@pytest.mark.parametrize("header", ["", "[partitions.default]\n", "[models.gpt-4]\n"])
@pytest.mark.parametrize(("text", "warning", "value"), TWICE)
def test_of_two_names_in_one_source_the_newer_wins_with_a_warning(
    file: Path, header: str, text: str, warning: str, value: int
) -> None:
    file.write_text(header + text, encoding="utf-8")
    loaded = config.load()
    assert loaded.lookup("reserve_tokens", "default", "gpt-4")[0] == value
    assert len(loaded.warnings) == 1
    assert warning in loaded.warnings[0]
    assert str(file) in loaded.warnings[0]


def test_of_two_variables_the_newer_wins_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESERVOIR_MIN_SIMILARITY", "0.9")
    monkeypatch.setenv("RESERVOIR_MIN_COSINE", "0.3")
    loaded = config.load()
    assert loaded.lookup("min_cosine") == (0.3, "environment")
    assert loaded.warnings == (
        "RESERVOIR_MIN_SIMILARITY is ignored: RESERVOIR_MIN_COSINE is set, too",
    )


def test_names_in_different_sources_do_not_conflict(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("reserve_tokens = 5\n", encoding="utf-8")
    monkeypatch.setenv("RESERVOIR_TOKEN_RESERVE", "6")
    loaded = config.load()
    assert loaded.lookup("reserve_tokens") == (6, "environment")
    assert loaded.warnings == ()


SHAPES = {
    "a line": ("{} = {} # mine\nfill = true\n", ""),
    "a quoted key": ('"{}" = {} # mine\nfill = true\n', ""),
    "a table": ("fill = true\n[partitions.p]\nredact = 'mask'\n{}= {} # mine\n", "partitions.p."),
    "dotted keys": ("partitions.p.{} = {} # mine\nfill = true\n", "partitions.p."),
    "an inline table": ("partitions = {{ p = {{ {} = {} }} }} # mine\n", "partitions.p."),
}


@pytest.mark.parametrize("by", ["the alias", "the setting"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_replaces_the_line_of_the_alias(file: Path, shape: str, by: str) -> None:
    text, table = SHAPES[shape]
    file.write_text(text.format("similarity_threshold", 0.9), encoding="utf-8")
    name, value = (
        ("similarity_threshold", "0.6") if by == "the alias" else ("similar_cosine", "0.2")
    )
    edit_settings_file.edit(file, {table + name: value})
    edited = file.read_text(encoding="utf-8")
    assert "similarity_threshold" not in edited
    lines = text.format("similar_cosine", 0.2).splitlines()
    assert [line.replace('"', "").replace("= ", "=") for line in edited.splitlines()] == [
        line.replace('"', "").replace("= ", "=") for line in lines
    ]
    edit_settings_file.edit(file, {table + "similarity_threshold": None})
    assert "similar" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["reserve_tokens", "token_reserve", "output_reserve"])
def test_a_change_removes_other_names_of_the_setting(file: Path, name: str) -> None:
    file.write_text("token_reserve = 1\noutput_reserve = 2\nreserve_tokens = 3\n", encoding="utf-8")
    edit_settings_file.edit(file, {name: "4"})
    assert file.read_text(encoding="utf-8") == "reserve_tokens = 4\n"


def test_of_two_names_in_one_change_the_newer_wins(file: Path) -> None:
    edit_settings_file.edit(file, {"reserve_tokens": "4", "token_reserve": "5"})
    assert file.read_text(encoding="utf-8") == "reserve_tokens = 4\n"


def test_a_value_is_checked_on_the_scale_of_its_name(file: Path) -> None:
    with pytest.raises(UsageError, match=r"similarity_threshold cannot be -0.5"):
        edit_settings_file.edit(file, {"similarity_threshold": "-0.5"})
    edit_settings_file.edit(file, {"similar_cosine": "-0.5"})
    assert config.load().settings().similar_cosine == -0.5


def test_commands_of_earlier_documentation_still_work(file: Path) -> None:
    changes = {
        "semantic_context_size": "21",
        "recent_context_size": "16",
        "token_reserve": "512",
        "models.gpt-4.reserve_tokens": "1024",
        "partitions.coding.token_multiplier": "1.3",
    }
    edit_settings_file.edit(file, changes)
    loaded = config.load()
    for key, text in changes.items():
        assert str(config.effective_value(loaded, key)[0]) == text


def test_an_instance_has_no_settings(file: Path) -> None:
    key = "partitions.alice/coding.token_multiplier"
    with pytest.raises(UsageError, match="instances have no settings"):
        config.effective_value(config.load(), key)
    with pytest.raises(UsageError, match="instances have no settings") as caught:
        edit_settings_file.edit(file, {key: "1.3"})
    assert "partitions.alice.token_multiplier" in str(caught.value.hint)
    assert not file.exists()
    quoted = 'partitions."alice/coding".token_multiplier'  # a partition of that name
    edit_settings_file.edit(file, {quoted: "1.3"})
    assert [key for key, _, _ in config.list_settings(config.load())][-1] == quoted
