"""Our own modules are imported at the top of a file, without cycles."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import reservoir_cli

PACKAGE = Path(reservoir_cli.__file__).parent
#: How many imports are inside functions or under TYPE_CHECKING, for parts that few commands need.
MOST = 72


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


@cache
def own_imports(path: Path) -> list[tuple[ast.ImportFrom | ast.Import, set[str]]]:
    """Return each import statement of our own modules with the imported modules."""
    return list(_own_imports(path))


def _own_imports(path: Path) -> Iterator[tuple[ast.ImportFrom | ast.Import, set[str]]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports relatively"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name if name in MODULES else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
        else:
            continue
        if own := modules & MODULES.keys():
            yield node, own


def test_few_imports_of_our_own_modules_are_indented():
    indented = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        for node, _ in own_imports(path)
        if node.col_offset
    ]
    assert len(indented) <= MOST, "\n".join(sorted(indented))


def test_imports_in_functions_or_for_type_checking_hide_no_cycle():
    graph = {
        module: {name for _, names in own_imports(path) for name in names} - {module}
        for module, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
