"""Find the histories of other tools on this machine.

Only names, sizes and numbers of files are read here. Importers read the contents, once the user
has agreed.
"""

from dataclasses import dataclass, field
from pathlib import Path

from reservoir_cli.transfer.formats.registry import importers, plugin_importers
from reservoir_cli.transfer.reading.importer import Importer, Place
from reservoir_cli.transfer.sync.watched_files import walk


@dataclass(frozen=True, slots=True)
class History:
    """The location and size of a tool's history."""

    tool: str
    form: str  #: The name of its importer, and the source of its messages.
    path: Path
    files: int = 0  #: The number of files to read; 0 without a history.
    size: int = 0  #: The total size of the files in bytes.
    nearby: bool = False  #: Whether the current folder and those above it were searched first.
    links: tuple[str, ...] = field(default=(), compare=False)  #: Links that are not followed.


def look(form: str | None = None) -> list[History]:
    """Return the places of each tool that have a history, else its first, of one format or all."""
    histories: list[History] = []
    for importer in (importers() | plugin_importers()).values():
        if form not in (None, importer.name):
            continue
        local = [_inspect(importer, place) for place in importer.places()]
        histories += [history for history in local if history.files or history.links] or local[:1]
    return histories


def _inspect(importer: Importer, place: Place) -> History:
    """Count the files in a location that an importer would read, without following links."""
    title = place.title or importer.title
    links: list[str] = []
    walked = walk(place.path, lambda _: False, lambda *_: None, links, place.endings)
    sizes = [file.size for file in walked if _is_counted(place, file.path)]
    return History(
        title, importer.name, place.path, len(sizes), sum(sizes), place.nearby, tuple(sorted(links))
    )


def _is_counted(place: Place, path: str) -> bool:
    """Return whether a file is the place itself, or one of its files in a folder."""
    is_inside = not place.inside or not set(place.inside).isdisjoint(Path(path).parent.parts)
    return path == str(place.path) or (is_inside and path.endswith(place.endings))
