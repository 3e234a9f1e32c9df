"""Read the histories of other tools, one module per format.

``registry`` lists them. An importer yields records and does not know the store;
``store_records`` stores them. A bad record is skipped with its position and never ends the run.
"""

from reservoir_cli.transfer.importers.detect_format import (
    DetectedFile,
    Selection,
    choose,
    find,
    is_of_tool,
)
from reservoir_cli.transfer.importers.importer import Importer, Record, Skipped, Vectors
from reservoir_cli.transfer.importers.input_files import File, Unreadable, read_text
from reservoir_cli.transfer.importers.registry import (
    FORMATS,
    all_formats,
    importer_named,
    importers,
)

__all__ = [
    "FORMATS",
    "DetectedFile",
    "File",
    "Importer",
    "Record",
    "Selection",
    "Skipped",
    "Unreadable",
    "Vectors",
    "all_formats",
    "choose",
    "find",
    "importer_named",
    "importers",
    "is_of_tool",
    "read_text",
]
