"""Build what is published into a folder: an sdist, and three wheels.

The wheel of ``reservoir-cli`` is built from the sdist, as installers that have only the sdist build
it. ``reservoir-model-minilm`` compiles the model, which takes about 15 seconds.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(source: Path, target: Path, kind: str) -> Path:
    """Build one distribution.

    :param kind: ``sdist`` or ``wheel``.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{source} cannot be built:\n{done.stderr}")
        [built] = Path(folder).iterdir()
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, target / built.name))


def unpack(sdist: Path, target: Path) -> Path:
    """Unpack an sdist, and return its folder."""
    with tarfile.open(sdist) as archive:
        # Python 3.11.4 brought filters; what is unpacked here was packed here.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(target, **safely)
    return target / sdist.name.removesuffix(".tar.gz")


def main(target: Path) -> None:
    """Build everything, and say what was built."""
    with tempfile.TemporaryDirectory() as folder:
        sdist = build(ROOT, target, "sdist")
        build(unpack(sdist, Path(folder)), target, "wheel")
    for name in ("slim", "model"):
        build(ROOT / "packages" / name, target, "wheel")
    for path in sorted(target.iterdir()):
        print(f"{path.stat().st_size / 1e6:7.1f} MB  {path}")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]))
