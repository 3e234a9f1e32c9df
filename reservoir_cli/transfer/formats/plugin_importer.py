"""An importer of a plugin, whose errors name it."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.reading.file import File, Head, Unreadable
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped
from reservoir_cli.transfer.reading.watched_files import SUFFIXES
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.installed_plugins import Plugin

#: Attributes of an importer's class.
_ATTRIBUTES = ("title", "instance", "endings", "folders", "tables")


@cache
def load_plugin(plugin: Plugin) -> Importer:
    """Return a plugin's importer under the name of its entry point, or raise PluginError."""
    importer = installed_plugins.run(plugin, installed_plugins.load(plugin))
    if not isinstance(importer, Importer):
        raise installed_plugins.failure(plugin, "it is no importer")
    return PluginImporter(plugin, importer)


class PluginImporter(Importer):
    """Calls the importer of a plugin."""

    def __init__(self, plugin: Plugin, importer: Importer) -> None:
        self._plugin, self._importer = plugin, importer
        described: dict[str, Any] = {
            name: getattr(importer, name, getattr(Importer, name, plugin.name))
            for name in _ATTRIBUTES
        }
        if not described["endings"]:
            named = (ending for place in self.places() for ending in place.endings)
            described["endings"] = tuple(end for end in named if not end.endswith(SUFFIXES))
        #: Raised by the plugin when it reads more of the same files: they are read again then.
        self.version = getattr(importer, "version", 1)
        vars(self).update(described, name=plugin.name)

    def detect(self, head: Head) -> bool:
        return bool(installed_plugins.run(self._plugin, lambda: self._importer.detect(head)))

    def places(self) -> Iterator[Place]:
        yield from installed_plugins.run(self._plugin, lambda: list(self._importer.places()))

    def is_repeated(self, file: File) -> bool:
        return bool(installed_plugins.run(self._plugin, lambda: self._importer.is_repeated(file)))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield what the plugin yields; what follows an error of the plugin is skipped."""
        try:
            yield from self._importer.read(file)
        except (ReservoirError, Unreadable, OSError):
            raise
        except Exception as error:
            raise Unreadable(
                installed_plugins.failure(self._plugin, type(error).__name__).message
            ) from error
