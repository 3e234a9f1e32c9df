"""Projects: the setting that maps folders to partitions."""

import os
from pathlib import Path

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config, edit_settings_file, paths
from reservoir_cli.settings.projects import partition_of


@pytest.fixture
def file(home: Path) -> Path:
    home.mkdir()
    return paths.config_file()


def load_written(file: Path, text: str) -> config.Config:
    file.write_text(text, encoding="utf-8")
    return config.load()


def test_the_longest_folder_wins_and_names_are_compared_whole(tmp_path):
    code = tmp_path / "code"
    projects = {str(code): "work", f"{code}/app/": "app", f"{code}/app/deep": "deep"}
    for folder, partition in (
        (code, "work"),
        (code / "other", "work"),
        (code / "app", "app"),
        (code / "app" / "deeper", "app"),
        (code / "app" / "deep" / "er", "deep"),
        (code / "app" / ".." / "x", "work"),
        (tmp_path / "code2", None),
        (tmp_path, None),
        ("relative", None),
        ("a\0b", None),
    ):
        assert partition_of(projects, folder) == partition, folder


def test_home_folders_and_links_are_followed(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "code").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "code")
    assert partition_of({"~/code": "work"}, tmp_path / "code" / "x") == "work"
    assert partition_of({"~/link": "work"}, tmp_path / "code") == "work"
    assert partition_of({"~/code": "work"}, tmp_path / "link") == "work"


def test_a_settings_file_names_projects(file):
    loaded = load_written(file, 'partition = "home"\n[projects]\n"/src/a.b" = "work"\n')
    assert loaded.partition_of("/src/a.b/c") == "work"
    assert loaded.partition_of("/src") is None
    assert config.effective_value(loaded, "projects./src/a.b/c") == ("work", "file")
    assert config.effective_value(loaded, "projects./src") == ("home", "file")
    assert ('projects."/src/a.b"', "work", "file") in config.list_settings(loaded)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("projects = 3", "must be a table"),
        ('[projects]\n"app" = "work"', "'app' is not an absolute path"),
        ('[projects]\n"/app" = 3', "must be the name of a partition"),
        ('[projects]\n"/app" = " "', "cannot be empty"),
        ('[projects]\n"/app" = "a\\nb"', "control characters"),
        ('[projects."/app"]\npartition = "work"', "must be the name of a partition"),
    ],
)
def test_an_invalid_project_is_refused_by_name(file, text, reason):
    with pytest.raises(UsageError, match=reason):
        load_written(file, text)


def test_projects_are_set_and_unset_among_comments(file):
    file.write_text('# mine\npartition = "home" # usual\n', encoding="utf-8")
    edit_settings_file.edit(file, {"projects.~/code/a.b": "work", 'projects."/x = y"': "other"})
    text = file.read_text(encoding="utf-8")
    assert text.startswith('# mine\npartition = "home" # usual\n')
    assert config.load().projects == {"~/code/a.b": "work", "/x = y": "other"}
    edit_settings_file.edit(file, {"projects.~/code/a.b": "app"})
    assert config.load().projects == {"~/code/a.b": "app", "/x = y": "other"}
    edit_settings_file.edit(file, {"projects.~/code/a.b": None, 'projects."/x = y"': None})
    assert file.read_text(encoding="utf-8").strip() == '# mine\npartition = "home" # usual'


def test_a_slash_at_the_end_of_a_folder_makes_no_difference(file):
    edit_settings_file.edit(file, {"projects.~/code/app/": "work"})
    assert config.effective_value(config.load(), "projects.~/code/app") == ("work", "file")
    edit_settings_file.edit(file, {"projects.~/code/app": "home"})
    assert config.load().projects == {"~/code/app/": "home"}
    edit_settings_file.edit(file, {"projects.~/code/app": None})
    assert config.load().projects == {}


@pytest.mark.parametrize("key", ["projects.app", "projects.", "projects"])
def test_a_key_without_a_whole_path_is_refused(file, key):
    with pytest.raises(UsageError):
        edit_settings_file.edit(file, {key: "work"})
    assert not file.exists()


def test_projects_follow_a_partition_that_is_renamed(file):
    loaded = load_written(file, '[projects]\n"/a" = "work"\n"/b" = "home"\n')
    edit_settings_file.rename_partition(loaded.path, "work", "acme")
    assert config.load().projects == {"/a": "acme", "/b": "home"}


@pytest.mark.skipif(os.name == "nt", reason="case counts in paths of POSIX only")
def test_case_matters_as_in_the_file_system():
    assert partition_of({"/Src": "work"}, "/src") is None
