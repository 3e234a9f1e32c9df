"""Print the Homebrew formula of a release: ``python tools/homebrew_formula.py dist``.

It is ``packages/homebrew/reservoir.rb`` with the version and the checksum of the source
distribution in the folder.
"""

import hashlib
import sys
from pathlib import Path

TEMPLATE = Path(__file__).parents[1] / "packages" / "homebrew" / "reservoir.rb"


def formula(folder: Path) -> str:
    """Return the formula for the source distribution in a folder."""
    [sdist] = folder.glob("reservoir_cli-*.tar.gz")
    version = sdist.name.removeprefix("reservoir_cli-").removesuffix(".tar.gz")
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    _, _, text = TEMPLATE.read_text(encoding="utf-8").partition("\n")  # without the first comment
    return text.replace("@VERSION@", version).replace("@SHA256@", checksum)


if __name__ == "__main__":
    sys.stdout.write(formula(Path(sys.argv[1])))
