"""Build the published distributions into a folder: an sdist and three wheels.

The wheel of ``reservoir-cli`` is built from the sdist, as installers do that have only the sdist.
``reservoir-model-minilm`` compiles the model, which takes about 15 seconds.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(source: Path, target: Path, kind: str) -> Path:
    """Build one distribution, and return its path.

    :param kind: ``sdist`` or ``wheel``.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
        process = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        if process.returncode:
            sys.exit(f"{source} cannot be built:\n{process.stderr}")
        [built] = Path(folder).iterdir()
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, target / built.name))


def unpack(sdist: Path, target: Path) -> Path:
    """Unpack an sdist, and return its folder."""
    with tarfile.open(sdist) as archive:
        # Filters need Python 3.11.4; without one this is safe, too: we created the archive.
        options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(target, **options)
    return target / sdist.name.removesuffix(".tar.gz")


def main(target: Path) -> None:
    """Build all distributions, and print their sizes."""
    with tempfile.TemporaryDirectory() as folder:
        sdist = build(ROOT, target, "sdist")
        build(unpack(sdist, Path(folder)), target, "wheel")
    for name in ("slim", "model"):
        build(ROOT / "packages" / name, target, "wheel")
    for path in sorted(target.iterdir()):
        print(f"{path.stat().st_size / 1e6:7.1f} MB  {path}")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]))
