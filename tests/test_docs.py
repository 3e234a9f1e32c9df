"""The example file says what the program does."""

import re
import tomllib
from pathlib import Path

import pytest

from reservoir_cli import config
from reservoir_cli.settings import DEFAULTS, SETTINGS, check_value

EXAMPLE = Path(__file__).parent.parent / "reservoir.toml.example"
TOP = EXAMPLE.read_text(encoding="utf-8").split("# [partitions")[0]


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^# (?=\w+ = |\[)", "", text)


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_stands_in_the_example_with_its_default(key: str) -> None:
    shown = tomllib.loads(uncommented(TOP))
    assert key in shown
    line = re.search(rf"(?m)^# {key} = .*$", TOP)
    if DEFAULTS[key] is not None:
        assert check_value(key, shown[key], key) == DEFAULTS[key]
        assert line is not None
        assert "example" not in line[0]


def test_the_example_is_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "reservoir.toml"
    file.write_text(uncommented(EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
    known = config.load(file)
    assert known.partitions["coding"] == {"token_multiplier": 1.3}
    assert known.models["my-model:7b"]["context_window"] == 32_768


def test_the_example_as_it_is_changes_nothing(tmp_path: Path) -> None:
    assert config.load(EXAMPLE).settings() == config.load(None).settings()
