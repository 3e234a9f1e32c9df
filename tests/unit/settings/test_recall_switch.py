"""What switches recall off for agents."""

from pathlib import Path

import pytest
from each import each

from reservoir_cli.settings import config
from reservoir_cli.settings.recall_switch import FILE, begins_with_word, find_switch


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with a repository in a folder, and a folder in that."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "code" / "app" / ".git").mkdir(parents=True)
    (tmp_path / "code" / "app" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "code" / "loose").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("marked", "folder", "is_off"),
    [
        ("code/app/deep", "code/app/deep", True),
        ("code/app/deep", "code/app/deep/er", True),
        ("code/app", "code/app/deep/er", True),
        ("code/app/deep/er", "code/app/deep", False),
        ("code", "code/app/deep", False),  # it is above the root of the project
        ("code", "code/loose", True),
        ("", "code/loose", True),
        ("code/loose", "code/loose/was/deleted", True),
    ],
)
def test_a_file_switches_recall_off_below_its_folder_and_within_its_project(
    tree, marked, folder, is_off
):
    (tree / marked / FILE).touch()
    switch = find_switch(config.load(), None, tree / folder)
    assert (switch is not None) is is_off
    assert not is_off or switch == str(Path("~") / marked / FILE)


def test_a_folder_of_the_settings_is_a_project_too(tree):
    (tree / "code" / FILE).touch()
    (tree / "reservoir.toml").write_text('[projects]\n"~/code/loose" = "work"\n', encoding="utf-8")
    settings = config.load(tree / "reservoir.toml")
    assert find_switch(settings, None, tree / "code" / "loose") is None
    assert find_switch(settings, None, tree / "code") is not None


def test_the_file_of_any_folder_of_an_agent_counts_and_odd_folders_do_not_fail(tree):
    (tree / "code" / "loose" / FILE).touch()
    folders = ["\0", "", None, str(tree / "code" / "app"), tree / "code" / "loose"]
    assert find_switch(config.load(), None, *folders[:-1]) is None
    assert find_switch(config.load(), None, *folders) is not None


def test_the_setting_switches_recall_off_everywhere_or_in_a_partition(tree, monkeypatch):
    file = tree / "reservoir.toml"
    file.write_text("[partitions.home]\nrecall = false\n", encoding="utf-8")
    settings = config.load(file)
    assert find_switch(settings, "home") == "the setting recall"
    assert find_switch(settings, "work") is None
    monkeypatch.setenv("RESERVOIR_RECALL", "off")
    assert find_switch(config.load(file), "work", tree) == "RESERVOIR_RECALL"


@each(
    ("prompt", "asks"),
    [
        ("--no-recall why Redis?", True),
        ("  --no-recall\nwhy Redis?", True),
        ("--no-recall", True),
        ("why --no-recall?", False),
        ("--no-recalls", False),
        ("", False),
    ],
)
def test_the_first_word_of_a_prompt_switches_recall_off(prompt, asks):
    assert begins_with_word(prompt) is asks
