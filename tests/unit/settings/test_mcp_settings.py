"""The table ``[mcp]`` of the settings."""

from pathlib import Path

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file


def load_written(file: Path, text: str) -> config.Config:
    file.write_text(text, encoding="utf-8")
    return config.load()


def test_the_partitions_that_agents_may_use(file):
    assert load_written(file, "").mcp_partitions == ()
    assert load_written(file, "[mcp]").mcp_partitions == ()
    loaded = load_written(file, '[mcp]\npartitions = ["work", "home", "work"]')
    assert loaded.mcp_partitions == ("work", "home")
    assert config.effective_value(loaded, "mcp.partitions") == ("work, home", "file")
    assert config.list_settings(loaded)[-1] == ("mcp.partitions", "work, home", "file")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mcp = 3", "mcp must be a table"),
        ("[mcp]\npartitions = 3", "must be a list of strings"),
        ("[mcp]\npartitions = [3]", "must be a list of strings"),
        ('[mcp]\npartitions = [""]', "cannot be empty"),
        ('[mcp]\npartitions = ["a\\u001b"]', "control characters"),
        ('[mcp]\npartition = "work"', "unknown setting 'partition' in [mcp]"),
        ("[mcp.partitions]\nwork = 1", "must be a list of strings"),
    ],
)
def test_anything_but_a_list_of_partitions_is_refused(file, text, problem):
    with pytest.raises(UsageError) as caught:
        load_written(file, text)
    assert problem in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("before", ["", "# mine\n[mcp]\npartitions = [\n  'old', # why\n]\n"])
def test_config_sets_and_removes_partitions(file, before):
    file.write_text(f"partition = 'x' # kept\n{before}", encoding="utf-8")
    edit_settings_file.edit(file, {"mcp.partitions": "work, home"})
    assert config.load().mcp_partitions == ("work", "home")
    assert "# kept" in file.read_text(encoding="utf-8")
    edit_settings_file.edit(file, {"mcp.partitions": None})
    assert config.load().mcp_partitions == ()
    assert config.load().lookup("partition")[0] == "x"


def test_a_list_may_be_typed_as_in_the_file(file):
    file.touch()
    edit_settings_file.edit(file, {"mcp.partitions": '["work", "home"]'})
    assert config.load().mcp_partitions == ("work", "home")
    edit_settings_file.edit(
        file, {"sources.notes.exclude": '["/a, b", "/c"]', "sources.notes.path": "/n"}
    )
    assert config.load().sources["notes"]["exclude"] == ["/a, b", "/c"]
    # A shell takes the quotation marks off if they are not quoted themselves.
    for key in ("mcp.partitions", "sources.notes.exclude"):
        with pytest.raises(UsageError, match="must be a list of"):
            edit_settings_file.edit(file, {key: "[work,home]"})
    assert config.load().mcp_partitions == ("work", "home")


@pytest.mark.parametrize("text", ["[" * 5_000 + "]" * 5_000, '["a"]\nother = ["b"]'])
def test_a_typed_list_that_is_more_than_a_list_is_refused(file, text):
    file.touch()
    with pytest.raises(UsageError, match="must be a list of"):
        edit_settings_file.edit(file, {"mcp.partitions": text})
    assert file.read_text() == ""


def test_a_renamed_partition_is_renamed_in_the_list(file):
    file.write_text('[mcp]\npartitions = ["home", "work"]\n', encoding="utf-8")
    edit_settings_file.rename_partition(file, "work", "acme")
    assert config.load().mcp_partitions == ("home", "acme")
    edit_settings_file.rename_partition(file, "acme", "home")
    assert config.load().mcp_partitions == ("home",)
