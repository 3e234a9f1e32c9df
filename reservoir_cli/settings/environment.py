"""Read settings from ``RESERVOIR_…`` variables, and find variables that have no effect."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from reservoir_cli.settings import paths
from reservoir_cli.settings.schema import SETTINGS, VARIABLES, setting_name, use_own_names
from reservoir_cli.settings.setting import Value
from reservoir_cli.settings.setting_keys import similar_settings

#: Names after ``RESERVOIR_`` that are not settings.
_OTHERS = re.compile("HOME|CONFIG|DB|DEBUG|MODEL_CACHE|PLUGINS|TEST_.*")


def read_environment(file: Path | None) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return the settings in environment variables, and warnings about variables without effect.

    :param file: the settings file, if it is not the one that the environment names.
    :raises UsageError: a value is invalid.
    """
    written = {
        name: SETTINGS[setting_name(name)].parse(os.environ[variable], variable)
        for name, variable in VARIABLES.items()
        if variable in os.environ
    }
    values, ignored = use_own_names(written)
    overridden = (
        f"{VARIABLES[loser]} is ignored: {VARIABLES[winner]} is set, too"
        for loser, winner in ignored
    )
    return values, (*_missing_file(file), *overridden, *unknown_variables())


def _missing_file(file: Path | None) -> Iterator[str]:
    """Yield a warning if the environment names a settings file that does not exist."""
    if file is None and os.environ.get("RESERVOIR_CONFIG") and not paths.config_file().exists():
        yield (
            f"RESERVOIR_CONFIG names {paths.config_file()}, which does not exist: "
            "using default settings"
        )


def unknown_variables() -> Iterator[str]:
    """Yield a warning for each variable that begins as ours, but is none of them."""
    known = [name.upper() for name in VARIABLES]
    for variable in sorted(os.environ):
        name = variable.removeprefix("RESERVOIR_")
        if name not in (variable, *known) and not _OTHERS.fullmatch(name):
            near = similar_settings(name.lower(), list(VARIABLES), "environment")
            suggestion = f"; did you mean RESERVOIR_{near[0].upper()}?" if near else ""
            yield f"{variable} is not a setting{suggestion}"
