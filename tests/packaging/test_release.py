"""What a release does: it sets the version from the tag, and fills in the Homebrew formula."""

import hashlib
import shutil
from pathlib import Path

import pytest
from homebrew_formula import formula
from set_version import ROOT, set_version


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("CHANGELOG.md", "reservoir_cli/__init__.py", "docs/reservoir.1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    with (tmp_path / "CHANGELOG.md").open("a", encoding="utf-8") as changelog:
        changelog.write("\n## 3.4.5\n")
    return tmp_path


@pytest.mark.parametrize("version", ["3.4.5", "3.4.5rc2"])
def test_the_version_is_that_of_the_tag(checkout, version):
    set_version(f"v{version}", checkout)
    text = (checkout / "reservoir_cli" / "__init__.py").read_text(encoding="utf-8")
    page = (checkout / "docs" / "reservoir.1").read_text(encoding="utf-8")
    assert f'.TH RESERVOIR 1 "" "reservoir {version}" "User commands"\n' in page
    assert text.count("__version__ = ") == text.count(f'__version__ = "{version}"\n') == 1


@pytest.mark.parametrize("tag", ["3.4.5", "v3.4", "v9.9.9", 'v3.4.5"; x', "v3.4.5-1"])
def test_other_tags_and_versions_without_changes_are_refused(checkout, tag):
    before = (checkout / "reservoir_cli" / "__init__.py").read_bytes()
    with pytest.raises(SystemExit):
        set_version(tag, checkout)
    assert (checkout / "reservoir_cli" / "__init__.py").read_bytes() == before


def test_the_formula_has_the_version_and_the_checksum_of_the_sdist(tmp_path):
    sdist = tmp_path / "reservoir_cli-3.4.5.tar.gz"
    sdist.write_bytes(b"an archive")
    text = formula(tmp_path)
    assert text.startswith("class Reservoir < Formula\n")
    assert "/reservoir_cli-3.4.5.tar.gz" in text
    assert f'sha256 "{hashlib.sha256(b"an archive").hexdigest()}"' in text
    assert "@" not in text.replace("python@3", "")
