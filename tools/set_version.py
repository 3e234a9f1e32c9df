"""Set the version to that of a tag: ``python tools/set_version.py v0.2.0``.

The release workflow runs it before it builds, so that the tag alone decides the version. The
changelog must have a heading for it.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: A tag with a version that Python's packages accept.
_TAG = re.compile(r"v(\d+\.\d+\.\d+)((?:a|b|rc)\d+)?")

#: The files that name the version, with what surrounds it.
_PLACES = {
    "reservoir_cli/__init__.py": r'^(__version__ = ").*(")$',
    "docs/reservoir.1": r'^(\.TH RESERVOIR 1 "" "reservoir )[^"]*(")',
}


def set_version(tag: str, root: Path = ROOT) -> None:
    """Write the version of a tag into the package and the man page."""
    match = _TAG.fullmatch(tag)
    if not match:
        sys.exit(f"{tag} is not a tag such as v0.2.0 or v0.2.0rc1")
    if f"\n## {match[1]}\n" not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        sys.exit(f"CHANGELOG.md has no heading for {match[1]}")
    version = tag.removeprefix("v")
    for name, pattern in _PLACES.items():
        file = root / name
        text = file.read_text(encoding="utf-8")
        changed = re.sub(pattern, rf"\g<1>{version}\g<2>", text, count=1, flags=re.MULTILINE)
        file.write_text(changed, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    set_version(sys.argv[1])
