"""Names of settings in the documents of earlier systems: accepted everywhere, never listed."""

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.settings.schema import DOCUMENTED_NAMES, SETTINGS, VARIABLES


def test_none_is_listed():
    assert set(DOCUMENTED_NAMES.values()) <= set(SETTINGS)
    assert not set(DOCUMENTED_NAMES) & set(SETTINGS)
    keys = {key for key, _, _ in config.list_settings(config.load())}
    assert not keys & set(DOCUMENTED_NAMES)


@pytest.mark.parametrize("origin", ["file", "partition", "environment", "flag"])
@pytest.mark.parametrize("name", DOCUMENTED_NAMES)
def test_a_documented_name_is_read_everywhere(file, monkeypatch, name, origin):
    setting = DOCUMENTED_NAMES[name]
    header = "[partitions.default]\n" if origin == "partition" else ""
    if origin in ("file", "partition"):
        file.write_text(f"{header}{name} = 4000\n", encoding="utf-8")
    if origin == "environment":
        monkeypatch.setenv(VARIABLES[name], "4000")
    loaded = config.load(flags={name: 4000} if origin == "flag" else None)
    assert loaded.lookup(setting) == (4_000, origin)
    assert getattr(loaded.settings(), setting) == 4_000
    assert config.effective_value(loaded, name) == (4_000, origin)
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    "name", ["output_reserve", "min_similarity", "synapse_threshold", "similarity_threshold"]
)
def test_there_are_no_other_names(file, name):
    with pytest.raises(UsageError, match=f"unknown setting '{name}'"):
        edit_settings_file.edit(file, {name: "1"})
    assert not file.exists()


@pytest.mark.parametrize("key", ["RESERVOIR_TOKEN_RESERVE", "RESERVOIR_RESERVE_TOKENS"])
def test_a_reserve_in_the_environment_overrides_every_table(file, monkeypatch, key):
    tables = ("", "[partitions.p]\n", "[models.gpt-4]\n")
    text = "".join(f"{table}reserve_tokens = {value}\n" for value, table in enumerate(tables, 1))
    file.write_text(text, encoding="utf-8")
    loaded = config.load()
    assert loaded.lookup("reserve_tokens", "p", "gpt-4") == (2, "partition")
    assert loaded.lookup("reserve_tokens", "q", "gpt-4") == (3, "model")
    monkeypatch.setenv(key, "4")
    assert config.load().lookup("reserve_tokens", "p", "gpt-4") == (4, "environment")


@pytest.mark.parametrize("header", ["", "[partitions.default]\n", "[models.gpt-4]\n"])
@pytest.mark.parametrize(
    "text", ["reserve_tokens = 5\ntoken_reserve = 6\n", "token_reserve = 6\nreserve_tokens = 5\n"]
)
def test_of_two_names_in_one_source_ours_wins_with_a_warning(file, header, text):
    file.write_text(header + text, encoding="utf-8")
    loaded = config.load()
    assert loaded.lookup("reserve_tokens", "default", "gpt-4")[0] == 5
    assert len(loaded.warnings) == 1
    assert "token_reserve is ignored: reserve_tokens is set, too" in loaded.warnings[0]
    assert str(file) in loaded.warnings[0]


def test_of_two_variables_ours_wins_with_a_warning(monkeypatch):
    monkeypatch.setenv("RESERVOIR_TOKEN_RESERVE", "9")
    monkeypatch.setenv("RESERVOIR_RESERVE_TOKENS", "3")
    loaded = config.load()
    assert loaded.lookup("reserve_tokens") == (3, "environment")
    assert loaded.warnings == (
        "RESERVOIR_TOKEN_RESERVE is ignored: RESERVOIR_RESERVE_TOKENS is set, too",
    )


def test_names_in_different_sources_do_not_conflict(file, monkeypatch):
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


@pytest.mark.parametrize("written_by", ["token_reserve", "reserve_tokens"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_replaces_the_documented_name(file, shape, written_by):
    text, table = SHAPES[shape]
    file.write_text(text.format("token_reserve", 900), encoding="utf-8")
    edit_settings_file.edit(file, {table + written_by: "200"})
    assert "token_reserve" not in file.read_text(encoding="utf-8")
    assert config.effective_value(config.load(), f"{table}reserve_tokens")[0] == 200
    edit_settings_file.edit(file, {f"{table}token_reserve": None})
    assert "reserve" not in file.read_text(encoding="utf-8")


def test_of_two_names_in_one_change_ours_wins(file):
    edit_settings_file.edit(file, {"reserve_tokens": "4", "token_reserve": "5"})
    assert file.read_text(encoding="utf-8") == "reserve_tokens = 4\n"


def test_commands_of_the_documents_work(file):
    changes = {
        "semantic_context_size": "21",
        "recent_context_size": "16",
        "token_reserve": "512",
        "models.gpt-4.reserve_tokens": "1024",
        "partitions.coding.token_multiplier": "1.3",
        "context_budget_tokens": "4000",
    }
    edit_settings_file.edit(file, changes)
    loaded = config.load()
    for key, text in changes.items():
        assert str(config.effective_value(loaded, key)[0]) == text


def test_an_instance_has_no_settings(file):
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
