"""Editing the settings file."""

import os
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from each import each
from example_settings import EVERY_TABLE, write_settings
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import clean_name
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.settings.schema import SETTINGS, TABLES
from reservoir_cli.settings.setting import Setting, Value
from reservoir_cli.settings.setting_keys import dotted_key, split_key


def test_comments_and_order_are_kept(file):
    write_settings(file, EVERY_TABLE)
    edit_settings_file.edit(
        file,
        {
            "token_multiplier": "1.5",
            "partitions.coding.token_multiplier": "1.6",
            "models.gpt-3.5-turbo.reserve_tokens": "600",
        },
    )
    expected = EVERY_TABLE.replace("= 1.1", "= 1.5").replace("= 1.2 #", "= 1.6 #")
    assert file.read_text() == expected.replace("= 512", "= 600")


def test_new_settings_of_the_file_come_before_its_tables(file):
    write_settings(file, "[models.gpt-4]\nreserve_tokens = 1\n")
    edit_settings_file.edit(file, {"model": "gpt-4", "partitions.p.fill": "on"})
    loaded = config.load(file)
    assert loaded.values == {"model": "gpt-4"}
    assert loaded.models == {"gpt-4": {"reserve_tokens": 1}}
    assert loaded.partitions == {"p": {"fill": True}}


UNQUOTED = """\
# top
[models.gpt-3.5-turbo] # mine
reserve_tokens = 5 # five

[models.gpt-4.1]
reserve_tokens = 6
"""


@pytest.mark.parametrize(
    "header", ["[models.gpt-3.5-turbo]", "[ models . gpt-3.5-turbo ]", "  [models.gpt-3 . 5-turbo]"]
)
def test_an_unquoted_header_is_kept_and_not_duplicated(file, header):
    text = UNQUOTED.replace("[models.gpt-3.5-turbo]", header)
    write_settings(file, text)
    edit_settings_file.edit(file, {"models.gpt-3.5-turbo.context_window": "7"})
    new = "reserve_tokens = 5 # five\n"
    indent = header[: len(header) - len(header.lstrip())]
    assert file.read_text() in {
        text.replace(new, f"{new}{before}context_window = 7\n") for before in ("", indent)
    }
    loaded = config.load(file)
    assert loaded.models["gpt-3.5-turbo"] == {"reserve_tokens": 5, "context_window": 7}
    assert loaded.models["gpt-4.1"] == {"reserve_tokens": 6}


def test_a_quoted_header_is_not_changed(file):
    text = "[models.'gpt-3.5-turbo']\nreserve_tokens = 5\n"
    write_settings(file, text)
    edit_settings_file.edit(file, {"models.gpt-3.5-turbo.reserve_tokens": "6"})
    assert file.read_text() == text.replace("5\n", "6\n")


def test_another_name_of_a_model_changes_its_table(file):
    write_settings(file, EVERY_TABLE)
    edit_settings_file.edit(file, {"models.openai/gpt-3.5-turbo.reserve_tokens": "9"})
    assert file.read_text() == EVERY_TABLE.replace("512", "9")


CONTEXT_WINDOW = TABLES["models"]["context_window"]
SHAPES = {
    "no file": "",
    "comments only": "# nothing yet\n",
    "no line end": 'model = "gpt-4"',
    "a group header": "[models]\n[models.gpt-4]\nreserve_tokens = 1\n",
    "an inline table": "models = { gpt-4 = { reserve_tokens = 1 } }\n",
    "an inline table in a group": "[models]\ngpt-4 = { reserve_tokens = 1 }\n",
    "dotted keys": "models.gpt-4.reserve_tokens = 1\nmodels.gpt-4.context_window = 9\n",
    "dotted keys without a line end": (
        "models.gpt-4.reserve_tokens = 1\n# small\nmodels.gpt-4.context_window = 9"
    ),
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


@each("shape, key", product(SHAPES, CHANGES))
def test_a_change_works_in_any_notation_and_changes_nothing_else(file, shape, key):
    file.unlink(missing_ok=True)
    if SHAPES[shape]:
        write_settings(file, SHAPES[shape])
    before = _values_by_key(config.load())
    edit_settings_file.edit(file, {key: CHANGES[key]})
    setting = split_key(key)[2]
    assert _values_by_key(config.load(file)) == {
        **before,
        key: SETTINGS.get(setting, CONTEXT_WINDOW).parse(CHANGES[key], key),
    }


def _values_by_key(loaded: config.Config) -> dict[str, Value]:
    """Return the values of a file by dotted key."""
    tables = {"partitions": loaded.partitions, "models": loaded.models}
    inside = {
        dotted_key(table, name, key): value
        for table, group in tables.items()
        for name, values in group.items()
        for key, value in values.items()
    }
    return {**loaded.values, **inside}


def test_changes_that_need_different_ways_are_made_together(file):
    write_settings(file, "partitions.p.fill = true\n# small\npartitions.p.profile = 'small'\n")
    edit_settings_file.edit(file, {"partition": "p", "partitions.q.fill": "on"})
    assert file.read_text() == (
        "partitions.p.fill = true\n# small\npartitions.p.profile = 'small'\n"
        'partition = "p"\n\n[partitions.q]\nfill = true\n'
    )


@pytest.mark.parametrize("header", ["[partitions.p]", '  [ partitions . "p" ] # not [this]'])
def test_a_renamed_partition_keeps_place_and_comments(file, header):
    text = f"""\
# for the boss
{header}
# as agreed
fill = true  # yes

[partitions.p.x]
fill = true

[projects]
"/code" = "p"  # all of it
"""
    write_settings(file, text)
    assert edit_settings_file.rename_partition(file, "p", "new.[é]")
    renamed = header.partition("[")[0] + '[partitions."new.[é]"]' + header.partition("]")[2]
    assert file.read_text() == text.replace(header, renamed).replace('= "p"', '= "new.[é]"')


def test_both_spellings_of_a_header_in_one_file_are_an_error(file):
    text = (
        '[models.gpt-3.5-turbo]\nreserve_tokens = 1\n[models."gpt-3.5-turbo"]\ncontext_window = 2\n'
    )
    write_settings(file, text)
    try:
        edit_settings_file.edit(file, {"models.gpt-3.5-turbo.profile": "small"})
    except UsageError:
        assert file.read_text() == text
    else:
        assert config.load(file).models["gpt-3.5-turbo"] == {
            "reserve_tokens": 1,
            "context_window": 2,
            "profile": "small",
        }


def test_a_setting_is_removed(file):
    write_settings(file, EVERY_TABLE)
    edit_settings_file.edit(
        file, {"recent_context_size": None, "models.gpt-3.5-turbo.reserve_tokens": None}
    )
    expected = EVERY_TABLE.replace("recent_context_size = 11\n", "")
    assert file.read_text() == expected.replace("reserve_tokens = 512\n", "")


def test_removing_a_missing_setting_changes_nothing(file):
    write_settings(file, EVERY_TABLE)
    edit_settings_file.edit(file, {"fill": None, "partitions.coding.fill": None})
    assert config.load(file).values == config.load(write_settings(file, EVERY_TABLE)).values


ONE_WRONG = [
    {"fill": "on", "recent_context_size": "-1"},
    {"fill": "on", "nonsense": "1"},
    {"fill": "on", "models.gpt-4.similarity_weight": "1"},
    {"fill": "on", "model": "caf\udce9"},
]


@pytest.mark.parametrize("changes", ONE_WRONG, ids=[list(changes)[1] for changes in ONE_WRONG])
@pytest.mark.parametrize("text", ["", EVERY_TABLE], ids=["no file", "a file"])
def test_several_changes_are_made_all_or_none(file, text, changes):
    if text:
        write_settings(file, text)
    with pytest.raises(UsageError):
        edit_settings_file.edit(file, changes)
    assert file.exists() is bool(text)
    assert not text or file.read_text() == text
    assert len(list(file.parent.iterdir())) == bool(text)


READ_ONLY = """
import sys
from pathlib import Path
from reservoir_cli.settings import config, edit_settings_file
from reservoir_cli.errors import UsageError
try:
    edit_settings_file.edit(Path(sys.argv[1]), {"fill": "true"})
except UsageError as error:
    sys.exit(f"{error.exit_code} {error.message}")
"""


def test_a_folder_that_cannot_be_written_is_a_usage_error(file):
    write_settings(file, "# mine\n")
    file.parent.chmod(0o500)
    command = [sys.executable, "-c", READ_ONLY, str(file)]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root is stopped by no file mode, and setpriv is not here")
        command[:0] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    file.parent.chmod(0o700)
    assert result.stderr == f"2 cannot write {file}: Permission denied\n"
    assert file.read_text() == "# mine\n"


def _values(setting: Setting) -> st.SearchStrategy[Any]:
    """Draw any valid value of a setting."""
    if setting.choices:
        return st.sampled_from(setting.choices)
    if setting.kind is bool:
        return st.booleans()
    if setting.kind is int:
        return st.integers(int(setting.low), int(setting.high))
    if setting.duration:
        return st.integers(1, 10**10).map(float) | st.integers(1, 10**7).map(
            lambda tenths: tenths / 10
        )
    if setting.kind is float:
        minimum = setting.low if setting.above is None else setting.above
        return st.floats(minimum, setting.high, exclude_min=setting.above is not None)
    return NAMES if setting.name == "partition" else st.text(min_size=1).filter(str.strip)


NAMES = (
    st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1)
    .filter(str.strip)
    .filter(lambda name: clean_name(name) == name)
)


def _keys() -> st.SearchStrategy[tuple[str, Setting]]:
    """Draw a dotted key with its setting."""
    top_level = st.sampled_from([*SETTINGS.items()])

    def dotted(table: str) -> st.SearchStrategy[tuple[str, Setting]]:
        names = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
        return st.tuples(names, st.sampled_from([*TABLES[table].values()])).map(
            lambda pair: (dotted_key(table, pair[0], pair[1].name), pair[1])
        )

    return top_level | dotted("partitions") | dotted("models")


CHANGE = _keys().flatmap(
    lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), _values(pair[1]))
)


@given(CHANGE, st.sampled_from(["", "# mine\n", EVERY_TABLE]))
def test_a_value_that_was_set_is_read_back(change, text):
    key, setting, value = change
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reservoir.toml"
        if text:
            write_settings(file, text)
        edit_settings_file.edit(file, {key: setting.format(value)})
        read = _values_by_key(config.load(file))[key]
        assert read == value
        assert type(read) is type(value)
        assert all(line in file.read_text() for line in text.splitlines() if line[:1] == "#")


@given(CHANGE)
def test_a_printed_value_is_parsed_back(change):
    _, setting, value = change
    assert setting.parse(setting.format(value), setting.name) == value


@pytest.mark.parametrize("key", ['partitions."a\\nb".redact', 'models."a\\u001bb".reserve_tokens'])
def test_a_name_with_control_characters_is_refused(key, tmp_path):
    file = tmp_path / "reservoir.toml"
    with pytest.raises(UsageError, match="cannot contain control characters"):
        edit_settings_file.edit(file, {key: "mask" if "redact" in key else "9"})
    assert not file.exists()
