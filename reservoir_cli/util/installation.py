"""The installed package: the command that starts it again, and the one that adds an extra."""

import sys
from contextlib import suppress

FULL, SLIM = "reservoir-cli", "reservoir-cli-slim"
#: The command that starts this program again.
#: ``-P`` excludes the current folder from the modules' path: its modules may be anybody's.
IN_PYTHON = (sys.executable, "-P", "-m", "reservoir_cli")


def install_command(requirement: str) -> str:
    """Return the command that installs one of our packages, from an index or from built wheels."""
    return f"pip install {requirement} --find-links dist"


def install_hint(extra: str) -> str:
    """Return the command that adds an extra, in double quotes, which all shells understand."""
    return install_command(f'"{_package()}[{extra}]"')


def _package() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, only needed for errors

    for name in (FULL, SLIM):
        with suppress(PackageNotFoundError):
            version(name)
            return name
    return FULL
