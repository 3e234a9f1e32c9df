import ast
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from each import each

import reservoir_cli

PACKAGE = Path(reservoir_cli.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def run(script: str) -> list[str]:
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return result.stdout.split()


def test_public_names_are_the_visible_ones():
    names = run("import reservoir_cli; print(*dir(reservoir_cli))")
    assert [name for name in names if not name.startswith("_")] == reservoir_cli.__all__


def test_public_names_are_sorted_and_unique():
    assert reservoir_cli.__all__ == sorted(set(reservoir_cli.__all__))


@each("name", reservoir_cli.__all__)
def test_a_public_name_exists_and_equals_that_in_its_module(name):
    value = getattr(reservoir_cli, name)
    assert value.__name__ == name
    assert getattr(importlib.import_module(value.__module__), name) is value


def test_type_checkers_see_the_same_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    [guard] = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.asname or alias.name
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(reservoir_cli.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Sponge'"):
        _ = reservoir_cli.Sponge


def test_star_imports_give_all_public_names():
    script = "from reservoir_cli import *; print(*(n for n in dir() if n[0] != '_'))"
    assert run(script) == reservoir_cli.__all__


def test_importing_the_package_loads_nothing_heavy():
    loaded = set(run("import sys, reservoir_cli; print(*sys.modules)"))
    heavy = {"numpy", "torch", "sqlite3", "sqlite_utils", "typer", "rich", "tomlkit"}
    assert not loaded & heavy
    assert {name for name in loaded if name.startswith("reservoir_cli.")} == set()


VERBS = {
    *("backup", "budget", "context", "conversations", "doctor", "edit", "embed", "export", "find"),
    *("forget", "import_files", "ingest", "messages", "models", "move_partition", "partitions"),
    *("pin", "recall", "search", "stats", "summarize", "sync", "tag", "unpin", "untag", "view"),
}


def test_reservoir_has_a_method_for_every_verb_and_few_others():
    methods = {name for name in dir(reservoir_cli.Reservoir) if not name.startswith("_")}
    assert methods >= VERBS
    assert len(methods) <= 37


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()


def _public(node: Definition, name: str) -> list[tuple[str, Definition]]:
    """Yield a definition and the public ones inside it, with their names."""
    definitions = [(name, node)]
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                decorators = [ast.unparse(decorator) for decorator in child.decorator_list]
                if not child.name.startswith("_") and "overload" not in decorators:
                    definitions += _public(child, f"{name}.{child.name}")
    return definitions


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _classes() -> dict[str, list[ast.ClassDef]]:
    """Return the definitions of the classes of each name."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for node in (node for path in MODULES for node in _tree(path).body):
        if isinstance(node, ast.ClassDef):
            classes.setdefault(node.name, []).append(node)
    return classes


def _documents(cls: str, method: str) -> bool:
    """Return whether a class of a name documents a method, or inherits its docstring."""
    for node in _classes().get(cls, []):
        own = (child for child in node.body if isinstance(child, ast.FunctionDef))
        if any(child.name == method and ast.get_docstring(child) for child in own):
            return True
        bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases} - {cls}
        if any(_documents(base, method) for base in bases):
            return True
    return False


@each("path", MODULES)
def test_everything_public_has_a_docstring(path):
    undocumented = [
        name
        for name, node in _public(_tree(path), path.stem)
        if not (ast.get_docstring(node) or _documents(*f".{name}".rsplit(".", 2)[-2:]))
    ]
    assert undocumented == []
