"""Records of the files that ``connect`` changed, with hashes of them before and after.

They allow ``disconnect`` to restore byte for byte a file that nobody else changed.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import write_private
from reservoir_cli.util.read_files import read_bounded


@dataclass(frozen=True)
class Record:
    """A file that we changed.

    :param before: the hash of its contents without our entries; ``None`` if we created it; empty
        if unknown, because it already contained entries of ours.
    :param after: the hash of its contents after our change.
    :param containers: paths of the objects and arrays that we added for our entries.
    :param folders: the folders that we created for it, the innermost last.
    """

    before: str | None
    after: str
    containers: list[list[str]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


def fingerprint(data: bytes) -> str:
    """Return the hash of a file's contents."""
    return sha256(data).hexdigest()


def find(path: Path) -> Record | None:
    """Return the record of a file, if we changed it."""
    with suppress(LookupError, TypeError):  # missing, of another version, or damaged
        record = Record(**_load()[str(path)])
        if isinstance(record.containers, list) and isinstance(record.folders, list):
            return record
    return None


def save(path: Path, record: Record | None) -> None:
    """Store the record of a file; ``None`` deletes it."""
    records = _load()
    records.pop(str(path), None)
    if record is not None:
        records[str(path)] = asdict(record)
    if records:
        write_private(paths.connections_file(), json.dumps({"files": records}, indent=2) + "\n")
    else:
        paths.connections_file().unlink(missing_ok=True)


def _load() -> dict[str, Any]:
    with suppress(OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        records = json.loads(read_bounded(paths.connections_file()))["files"]
        return {path: record for path, record in records.items() if isinstance(record, dict)}
    return {}
