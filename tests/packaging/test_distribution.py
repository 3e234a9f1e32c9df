"""The contents and metadata of the built distributions."""

import ast
import re
import sys
import tarfile
import tomllib
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from distributions import build, unpack
from each import each
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import reservoir_cli

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reservoir_cli.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distributions")


@pytest.fixture(scope="module")
def archive(folder: Path) -> Path:
    """Build the source distribution."""
    return build(ROOT, folder, "sdist")


@pytest.fixture(scope="module")
def sdist(archive: Path, folder: Path) -> Path:
    """Unpack the source distribution."""
    return unpack(archive, folder)


@pytest.fixture(scope="module")
def full(folder: Path, sdist: Path) -> Path:
    """Build the wheel of reservoir-cli as it is published."""
    return build(sdist, folder, "wheel")


@pytest.fixture(scope="module")
def slim(folder: Path) -> Path:
    """Build the wheel of reservoir-cli-slim."""
    return build(ROOT / "packages" / "slim", folder, "wheel")


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    [text] = [text for name, text in contents(wheel).items() if name.endswith("/METADATA")]
    return Parser().parsestr(text.decode())


def package() -> set[str]:
    """Return the files of the package, as a wheel names them."""
    return {
        f"reservoir_cli/{path.relative_to(ROOT / 'reservoir_cli').as_posix()}"
        for path in (ROOT / "reservoir_cli").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def described(name: str) -> set[str]:
    """Return the metadata files of a wheel with a command."""
    files = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    return {f"{name}-{reservoir_cli.__version__}.dist-info/{file}" for file in files}


def shared(name: str) -> set[str]:
    """Return the files of a wheel for man, bash, zsh and fish, where these look for them."""
    files = {
        "man/man1/reservoir.1",
        "bash-completion/completions/reservoir",
        "zsh/site-functions/_reservoir",
        "fish/vendor_completions.d/reservoir.fish",
    }
    return {f"{name}-{reservoir_cli.__version__}.data/data/share/{file}" for file in files}


def commands(wheel: Path) -> list[str]:
    [text] = [text for name, text in contents(wheel).items() if "entry_points" in name]
    return text.decode().split()


def required(wheel: Path, extra: str = "") -> dict[str, Requirement]:
    """Return the requirements of a wheel, with an extra or without any."""
    requirements = map(Requirement, metadata(wheel).get_all("Requires-Dist", []))
    return {
        canonicalize_name(requirement.name): requirement
        for requirement in requirements
        if requirement.marker is None or (extra and requirement.marker.evaluate({"extra": extra}))
    }


def test_the_slim_wheel_holds_the_package_and_the_command(slim):
    name = "reservoir_cli_slim"
    assert set(contents(slim)) == {*package(), *shared(name), *described(name)}
    assert "reservoir_cli/py.typed" in package()
    assert "reservoir_cli/server/web/templates/base.html" in package()
    assert "reservoir_cli/server/web/static/page.css" in package()
    assert commands(slim) == ["[console_scripts]", "reservoir", "=", *main(), *plugin()]


def test_shells_find_the_completion_that_the_program_installs(slim):
    by_end = {name.partition(".data/data/")[2]: data for name, data in contents(slim).items()}
    scripts = PACKAGE / "cli" / "completions"
    for installed, own in (
        ("share/bash-completion/completions/reservoir", "reservoir.bash"),
        ("share/zsh/site-functions/_reservoir", "_reservoir"),
        ("share/fish/vendor_completions.d/reservoir.fish", "reservoir.fish"),
    ):
        assert by_end[installed] == (scripts / own).read_bytes()
    assert by_end["share/zsh/site-functions/_reservoir"].startswith(b"#compdef reservoir\n")


def test_the_full_wheel_requires_the_slim_one_and_shares_no_file_with_it(full, slim):
    assert set(contents(full)) == described("reservoir_cli")
    assert commands(full) == ["[console_scripts]", "reservoir-cli", "=", *main()]
    requirements = required(full)
    assert (
        str(requirements.pop("reservoir-cli-slim"))
        == f"reservoir-cli-slim=={reservoir_cli.__version__}"
    )
    assert set(requirements) - set(required(slim)) == {
        *("torch", "transformers", "sentence-transformers", "onnx", "onnxscript")
    }
    assert set(required(slim)) <= set(requirements)
    assert set(requirements) == {
        canonicalize_name(Requirement(dependency).name) for dependency in PROJECT["dependencies"]
    }


def test_the_extra_of_the_slim_wheel_is_a_model_without_torch(slim):
    model = tomllib.loads((ROOT / "packages" / "model" / "pyproject.toml").read_text())["project"]
    [name] = set(required(slim, "bundled-model")) - set(required(slim))
    assert name == model["name"]
    assert required(slim, "bundled-model")[name].specifier.contains(model["version"])
    names = {
        canonicalize_name(Requirement(dependency).name) for dependency in model["dependencies"]
    }
    assert names <= set(required(slim))


@pytest.mark.parametrize("extra", ["mcp", "serve"])
def test_the_slim_wheel_has_the_extras_that_errors_name(slim, extra):
    dependencies = PROJECT["optional-dependencies"][extra]
    names = {canonicalize_name(Requirement(dependency).name) for dependency in dependencies}
    assert names <= set(required(slim, extra))


def test_an_installation_from_a_checkout_holds_the_package(folder):
    wheel = build(ROOT, folder / "checkout", "wheel")
    name = "reservoir_cli"
    assert set(contents(wheel)) == {*package(), *shared(name), *described(name)}
    assert commands(wheel) == ["[console_scripts]", "reservoir", "=", *main(), *plugin()]
    assert "reservoir-cli-slim" not in required(wheel)


def test_the_slim_wheel_can_be_built_from_an_sdist(slim, sdist, folder):
    rebuilt = build(sdist / "packages" / "slim", folder / "again", "wheel")
    assert contents(rebuilt) == contents(slim)


@pytest.mark.parametrize("name", ["slim", "model"])
def test_each_package_has_the_licence(name):
    assert (ROOT / "packages" / name / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_sdist_holds_tests_and_benchmarks(archive):
    tracked = {"Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"}
    tracked |= {"pyproject.toml", "constraints.txt", "reservoir.toml.example"}
    tracked |= {"PKG-INFO", ".gitignore", "hatch_build.py"}
    folders = {"reservoir_cli", "packages", "tests", "samples", "docs", "benchmarks", "tools"}
    with tarfile.open(archive) as opened:
        held = [Path(*Path(name).parts[1:]) for name in opened.getnames()]
    assert {path.parts[0] for path in held} == tracked | folders
    assert not [path for path in held if path.suffix in (".pyc", ".db")]


@pytest.mark.parametrize("name", ["full", "slim"])
def test_the_metadata_describes_the_package(name, request):
    fields = metadata(request.getfixturevalue(name))
    assert fields["Version"] == reservoir_cli.__version__
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Description-Content-Type"] == "text/markdown"
    assert fields["Requires-Python"] == PROJECT["requires-python"]


def main() -> list[str]:
    return [PROJECT["scripts"]["reservoir"]]


def test_the_classifiers_name_the_tested_pythons():
    script = (ROOT / "tests" / "packaging" / "environments.py").read_text(encoding="utf-8")
    tried = {PROJECT["requires-python"].removeprefix(">="), *re.findall(r'"(3\.\d+)"', script)}
    python = "Programming Language :: Python :: 3."
    named = {classifier for classifier in PROJECT["classifiers"] if classifier.startswith(python)}
    assert named == {f"Programming Language :: Python :: {version}" for version in tried}


def imported(path: Path) -> set[str]:
    """Return the third-party names that a module imports anywhere."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names - sys.stdlib_module_names - {"reservoir_cli"}


def test_every_imported_package_is_a_dependency():
    # Some are imported on demand only, and required by extras.
    extras = PROJECT["optional-dependencies"]
    dependencies = [*PROJECT["dependencies"], *extras["postgres"], *extras["mcp"], *extras["serve"]]
    required_names = {
        canonicalize_name(Requirement(dependency).name) for dependency in dependencies
    }
    # mcp depends on the first two and uses their types; llm itself loads the plugin.
    required_names |= {"anyio", "pydantic", "llm"}
    names = set().union(*map(imported, PACKAGE.rglob("*.py")))
    assert {"numpy", "typer"} <= names
    known = packages_distributions()
    missing = {
        name
        for name in names
        if not required_names & {canonicalize_name(package) for package in known.get(name, [name])}
    }
    assert not missing


@each("dependency", PROJECT["dependencies"])
def test_every_dependency_has_one_lowest_version(dependency):
    assert [specifier.operator for specifier in Requirement(dependency).specifier].count(">=") == 1


def plugin() -> list[str]:
    return ["[llm]", "reservoir", "=", PROJECT["entry-points"]["llm"]["reservoir"]]
