"""Say how optional parts are installed."""

from contextlib import suppress

FULL, SLIM = "reservoir-cli", "reservoir-cli-slim"


def install_hint(extra: str) -> str:
    """Return the command that adds an extra to the package that is installed."""
    return f"pip install '{_package()}[{extra}]'"


def _package() -> str:
    """Return the name of the installed package: the slim one only if the full one is absent."""
    from importlib.metadata import PackageNotFoundError, version  # 20 ms, for an error alone

    for name in (FULL, SLIM):
        with suppress(PackageNotFoundError):
            version(name)
            return name
    return FULL
