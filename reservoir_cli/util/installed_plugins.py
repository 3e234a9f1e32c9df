"""Find and load plugins: what other packages offer by entry points of ``reservoir.KIND``."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from reservoir_cli.errors import ModelUnavailableError, PluginError, ReservoirError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: What plugins may offer, by the last part of the group of their entry points.
KINDS = ("importers", "exports", "counters", "embedders", "secrets")
VARIABLE = "RESERVOIR_PLUGINS"  #: Switches all plugins off.
#: The beginning of a group of ours in a package's list of entry points.
_GROUP = re.compile(rb"^\[\s*reservoir\.", re.M)
_PACKAGES = (".dist-info", ".egg-info")
#: ``SCHEME:ARGUMENT``; a single letter is a drive of Windows.
_SCHEME = re.compile(r"([A-Za-z][\w.-]+):(.+)", re.S)


class Plugin(NamedTuple):
    """What a package offers."""

    kind: str
    name: str
    package: str
    entry: "EntryPoint"

    def __str__(self) -> str:
        return f"plugin {self.name} of {self.package}"


def leave_out() -> None:
    """Use no plugins, neither in this process nor in those that it starts."""
    os.environ[VARIABLE] = "off"


def find_plugins(kind: str) -> dict[str, Plugin]:
    """Return the installed plugins of a kind by name, in the order of their names."""
    if os.environ.get(VARIABLE, "").strip().lower() in ("off", "0", "no", "false"):
        return {}
    return _by_kind(tuple(sys.path)).get(kind, {})


@cache
def _by_kind(path: tuple[str, ...]) -> dict[str, dict[str, Plugin]]:
    if not any(map(_has_plugins, path)):
        return {}
    from importlib.metadata import entry_points  # takes 30 ms

    plugins: dict[str, dict[str, Plugin]] = {}
    for kind in KINDS:
        entries = sorted(entry_points(group=f"reservoir.{kind}"), key=lambda entry: entry.name)
        for entry in entries:
            package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?"
            plugin = Plugin(kind, entry.name, package, entry)
            plugins.setdefault(kind, {}).setdefault(entry.name, plugin)
    return plugins


def _has_plugins(folder: str) -> bool:
    """Return whether a folder of packages has one with plugins; reads small files only."""
    try:
        with os.scandir(folder) as entries:
            packages = [entry.path for entry in entries if entry.name.endswith(_PACKAGES)]
    except OSError:  # a zip, or a folder that is missing
        return False
    return any(map(_offers_plugins, packages))


def _offers_plugins(package: str) -> bool:
    try:
        with open(os.path.join(package, "entry_points.txt"), "rb") as file:
            return _GROUP.search(file.read()) is not None
    except OSError:  # most packages have no entry points
        return False


@cache
def load(plugin: Plugin) -> Any:
    """Return what a plugin's entry point names."""
    return run(plugin, plugin.entry.load)


def run(plugin: Plugin, function: Callable[[], Any]) -> Any:
    """Call a function of a plugin; the error of one that fails does not repeat its text."""
    try:
        return function()
    except ReservoirError:
        raise
    except Exception as error:
        raise failure(plugin, type(error).__name__) from error


def failure(plugin: Plugin, problem: str) -> ReservoirError:
    """Return the error for a plugin that fails."""
    is_model = plugin.kind in ("counters", "embedders")
    return (ModelUnavailableError if is_model else PluginError)(
        f"the {plugin} failed: {problem}",
        hint="update or uninstall the package; --no-plugins before the command leaves it out",
    )


def make(kind: str, name: str) -> Any | None:
    """Return what the plugin of a scheme makes of an argument; ``None`` without such a plugin."""
    plugin, argument = find_scheme(kind, name)
    return run(plugin, lambda: load(plugin)(argument)) if plugin else None


def find_scheme(kind: str, name: str) -> tuple[Plugin | None, str]:
    """Return the plugin of the scheme in ``SCHEME:ARGUMENT``, if there is one, and the argument."""
    match = _SCHEME.fullmatch(name)
    return (find_plugins(kind).get(match[1]), match[2]) if match else (None, "")


def check_all() -> Iterator[tuple[Plugin, ReservoirError | None]]:
    """Load every installed plugin; yield each with the error if it cannot be loaded."""
    for kind in KINDS:
        for plugin in find_plugins(kind).values():
            try:
                load(plugin)
            except ReservoirError as error:
                yield plugin, error
            else:
                yield plugin, None
