"""Only public names of Typer are used, and its upper bound is still needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from environments import LIGHT_IMPORT, is_light

import reservoir_cli

PACKAGE = Path(reservoir_cli.__file__).parent


def imported_modules(path: Path) -> list[str]:
    """Return every module that a file imports from, also under TYPE_CHECKING."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    return [*names, *(alias.name for node in plain for alias in node.names)]


@pytest.mark.parametrize("folder", ["reservoir_cli"])
def test_nothing_private_of_typer_is_imported(folder):
    files = sorted((PACKAGE.parent / folder).rglob("*.py"))
    private = [
        (path.name, name)
        for path in files
        for name in imported_modules(path)
        if name.split(".")[0] == "typer" and any(part[0] == "_" for part in name.split("."))
    ]
    assert files
    assert private == []


def test_the_installed_typer_imports_no_pydantic():
    command = [sys.executable, "-c", LIGHT_IMPORT]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert is_light(result.stdout)
