"""Hints name the installed package."""

import subprocess
import sys

import pytest

from reservoir_cli.util import installation

#: Runs the module alone: the folder of the whole package may also describe an installed one.
SCRIPT = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
print(runpy.run_path(sys.argv[2])["install_hint"]("serve"))
"""


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        (["reservoir-cli-slim"], "reservoir-cli-slim"),
        (["reservoir-cli-slim", "reservoir-cli"], "reservoir-cli"),
        ([], "reservoir-cli"),
    ],
)
def test_the_hint_names_the_installed_package(tmp_path, installed, expected):
    for name in installed:
        described = tmp_path / f"{name.replace('-', '_')}-1.dist-info"
        described.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
        (described / "METADATA").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", SCRIPT, str(tmp_path), installation.__file__]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == f'pip install "{expected}[serve]" --find-links dist\n'
