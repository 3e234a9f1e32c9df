"""The example of settings, the man page and the links match the program."""

import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from each import each

from reservoir_cli.settings import config
from reservoir_cli.settings.schema import DEFAULTS, SETTINGS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "reservoir.toml.example"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("benchmarks/*.md")])
NAVIGATION = (
    (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1].split("\nmark")[0]
)
#: Pages that list, and so have more words than a page that answers one question.
REFERENCES = ("commands.md", "json.md", "formats.md")
MAN_PAGE = ROOT / "docs" / "reservoir.1"
TOP = EXAMPLE.read_text(encoding="utf-8").split("# [partitions")[0]


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^# (?=\w+ = |\[)", "", text)


@each("key", SETTINGS)
def test_the_example_lists_every_setting_with_its_default(key):
    shown = tomllib.loads(uncommented(TOP))
    assert key in shown
    line = re.search(rf"(?m)^# {key} = .*$", TOP)
    if DEFAULTS[key] is not None:
        assert SETTINGS[key].check(shown[key], key) == DEFAULTS[key]
        assert line is not None
        assert "example" not in line[0]


def test_the_example_is_a_settings_file(tmp_path):
    file = tmp_path / "reservoir.toml"
    file.write_text(uncommented(EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
    known = config.load(file)
    assert known.partitions["coding"] == {"token_multiplier": 1.3}
    assert known.models["my-model:7b"]["context_window"] == 32_768


def test_the_example_changes_no_setting(tmp_path):
    assert config.load(EXAMPLE).settings() == config.load(None).settings()


def links(page: Path) -> list[str]:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    return re.findall(r"\]\((?!https?://)([^)\s]+)\)", text)


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@each("page", PAGES)
def test_links_have_targets(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_contributing_names_modules_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.])[a-z0-9_/]+\.py\b", text))
    tops = [ROOT / name for name in ("reservoir_cli", "tests", "tools", "benchmarks")]
    files = [f"/{file.relative_to(ROOT).as_posix()}" for top in tops for file in top.rglob("*.py")]
    assert len(named) > 100
    assert not [name for name in named if not any(file.endswith(f"/{name}") for file in files)]


def test_the_navigation_has_every_page_in_five_groups():
    assert len(re.findall(r"(?m)^  - .+:$", NAVIGATION)) == 5
    listed = re.findall(r"- (?:.+: )?(\S+\.md)$", NAVIGATION, re.M)
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert len(listed) == len(set(listed))
    assert pages <= set(listed)


def words_to_read(page: Path) -> int:
    """Count the words of a page without tables, which are looked up, and generators."""
    text = re.sub(r"(?s)<!--.*?-->", "", page.read_text(encoding="utf-8"))
    return len(re.sub(r"(?m)^\|.*$", "", text).split())


@each("page", sorted((ROOT / "docs").glob("*.md")))
def test_a_page_answers_one_question_in_a_thousand_words(page):
    assert page.name in REFERENCES or words_to_read(page) <= 1_000


def test_the_docs_are_short():
    assert sum(map(words_to_read, (ROOT / "docs").glob("*.md"))) <= 25_000


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


@pytest.mark.parametrize("name", ["explain.svg", "recording.svg"])
def test_the_pictures_of_the_readme_load_nothing_external(name):
    drawn = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert re.findall(r"(?:url\((?!#)|href=)[^)>]*", drawn) == []


def test_the_man_page_matches_the_help_texts():
    """Update it by ``python tools/man_page.py``."""
    page = runpy.run_path(str(ROOT / "tools" / "man_page.py"))["page"]()
    assert MAN_PAGE.read_text(encoding="utf-8") == page


def test_the_man_page_lists_the_variables_that_the_program_reads():
    listed = runpy.run_path(str(ROOT / "tools" / "man_page.py"))["ENVIRONMENT"]
    package = ROOT / "reservoir_cli"
    paths = (package / "settings/paths.py").read_text(encoding="utf-8")
    importers = (package / "transfer").rglob("*.py")
    sources = "".join(file.read_text(encoding="utf-8") for file in importers)
    variable = r'"([A-Z]+(?:_[A-Z]+)+)"'
    read = {*re.findall(variable, paths), *re.findall(rf"(?:get|_dir)\({variable}", sources)}
    assert {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "RESERVOIR_HOME"} <= read
    of_the_platform = {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "FLATPAK_XDG_DATA_HOME"}
    assert {"VISUAL", "EDITOR", *read} - of_the_platform <= listed.keys()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff renders it")
def test_the_man_page_renders_without_warnings():
    result = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", MAN_PAGE], capture_output=True, check=True
    )
    assert result.stderr == b""
    assert b"\xe2\x80\x9c" not in result.stdout  # a quote that bash would not understand
    shown = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout.decode())
    assert 'echo "why did we drop Redis?" | reservoir ingest -p work' in shown
