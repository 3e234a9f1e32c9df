"""What is shipped is what is meant to be."""

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import reservoir_cli

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reservoir_cli.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def build(source: Path, target: Path, kind: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target],
        cwd=source,
        capture_output=True,
        check=True,
    )
    [built] = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    packed = build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")
    with tarfile.open(packed) as archive:
        # Python 3.11.4 brought filters; what is unpacked here was packed here.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(packed.parent, **safely)
    return packed.with_name(packed.name.removesuffix(".tar.gz"))


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    [text] = [text for name, text in contents(wheel).items() if name.endswith("/METADATA")]
    return Parser().parsestr(text.decode())


def test_the_wheel_holds_the_package_and_what_is_said_of_it(wheel: Path) -> None:
    told = f"reservoir_cli-{reservoir_cli.__version__}.dist-info"
    package = {
        f"reservoir_cli/{path.relative_to(ROOT / 'reservoir_cli').as_posix()}"
        for path in (ROOT / "reservoir_cli").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    page = f"reservoir_cli-{reservoir_cli.__version__}.data/data/share/man/man1/reservoir.1"
    assert set(contents(wheel)) == {*package, page, *(f"{told}/{name}" for name in about)}
    assert "reservoir_cli/py.typed" in package


def test_the_sdist_gives_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert contents(build(sdist, tmp_path, "wheel")) == contents(wheel)


def test_the_sdist_holds_what_testing_and_measuring_need(sdist: Path) -> None:
    tracked = {"Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"}
    tracked |= {"pyproject.toml", "constraints.txt", "reservoir.toml.example"}
    tracked |= {"PKG-INFO", ".gitignore"}
    folders = {"reservoir_cli", "tests", "samples", "docs", "benchmarks", "tools"}
    assert {each.name for each in sdist.iterdir()} == tracked | folders
    assert not [each for each in sdist.rglob("*") if each.suffix in (".pyc", ".db")]


def test_the_metadata_says_what_it_is_and_how_it_is_called(wheel: Path) -> None:
    told = metadata(wheel)
    assert told["Version"] == reservoir_cli.__version__
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Description-Content-Type"] == "text/markdown"
    [commands] = [text for name, text in contents(wheel).items() if "entry_points" in name]
    assert commands.decode().split() == ["[console_scripts]", "reservoir", "=", *main()]


def main() -> list[str]:
    return [PROJECT["scripts"]["reservoir"]]


def test_the_classifiers_name_the_pythons_that_are_tried() -> None:
    script = (ROOT / "tests" / "packaging" / "environments.py").read_text(encoding="utf-8")
    tried = {PROJECT["requires-python"].removeprefix(">="), *re.findall(r'"(3\.\d+)"', script)}
    python = "Programming Language :: Python :: 3."
    named = {each for each in PROJECT["classifiers"] if each.startswith(python)}
    assert named == {f"Programming Language :: Python :: {each}" for each in tried}


def imported(path: Path) -> set[str]:
    """The names outside of the standard library that a module imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - {"reservoir_cli"}


def test_whatever_is_imported_is_asked_for() -> None:
    # psycopg is imported only for a store on a server, and asked for by an extra of its own.
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["postgres"]]
    asked = {canonicalize_name(Requirement(each).name) for each in wanted}
    names = set().union(*map(imported, PACKAGE.rglob("*.py")))
    assert {"numpy", "typer"} <= names
    known = packages_distributions()
    missing = {
        name
        for name in names
        if not asked & {canonicalize_name(each) for each in known.get(name, [name])}
    }
    assert not missing


@pytest.mark.parametrize("asked", PROJECT["dependencies"])
def test_every_dependency_has_one_lowest_version(asked: str) -> None:
    assert [each.operator for each in Requirement(asked).specifier].count(">=") == 1
