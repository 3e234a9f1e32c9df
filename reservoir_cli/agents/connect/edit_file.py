"""Edit another program's settings file in place, with a backup and a record, or refuse to.

Records have hashes of the files before and after. They allow ``disconnect`` to restore byte for
byte a file that nobody else changed.
"""

import copy
import difflib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from reservoir_cli.agents.connect import jsonc, toml
from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import paths
from reservoir_cli.util.edit_toml import without_empty_tables
from reservoir_cli.util.private_files import (
    make_private_dir,
    missing_folders,
    replace_atomically,
    resolve_path,
    write_private,
)
from reservoir_cli.util.read_files import read_bounded, suggest_fix

_MAX_SIZE = 32 << 20  #: The largest settings file that is edited, in bytes.


class RefusedFileError(ReservoirError):
    """A settings file cannot be edited safely; ``snippet`` is what the user can paste into it."""

    snippet = ""


@dataclass(frozen=True)
class Edit:
    """A value to set at a path, or the removal of the value at a path."""

    path: jsonc.Path
    value: Any = None
    removes: bool = False


@dataclass(frozen=True)
class Change:
    """A change of a file that was made, or would be made."""

    file: Path
    kind: str
    backup: Path | None = None
    diff: str = ""


class SettingsFile:
    """Another program's settings file, with its contents when it was opened."""

    def __init__(
        self,
        path: Path,
        *,
        comments: bool = True,
        trailing_commas: bool = True,
        blank: bool = False,
    ) -> None:
        self.path = path
        self._format: ModuleType = jsonc
        self._accepts = {"comments": comments, "trailing_commas": trailing_commas}
        if path.suffix == ".toml":
            self._format, self._accepts = toml, {}
        self.original = None if blank else self._read()
        self.text = self._decode(self.original or b"")
        self.data = self._parse(self.text)
        self.record = find_record(path)

    @property
    def backup(self) -> Path:
        """Return the path of the backup: beside the file, or beside the link to it."""
        return self.path.with_name(self.path.name + ".before-reservoir")

    def find(self, path: jsonc.Path) -> Any:
        """Return the value at a path, or ``None``."""
        return lookup(self.data, path)

    def after(self, edits: Sequence[Edit]) -> str:
        """Return the text with edits applied."""
        text = self.text
        try:
            for edit in edits:
                text = self._apply(text, edit)
            parsed, data = self._format.loads(text, **self._accepts), self.data_after(edits)
            # An empty TOML table needs no header.
            if without_empty_tables(parsed) != without_empty_tables(data):
                raise ValueError("its layout cannot be edited")
            text.encode("utf-8")
        except (ValueError, LookupError, TypeError) as error:
            raise RefusedFileError(f"cannot edit {self.path}: {error}") from None
        return text

    def _apply(self, text: str, edit: Edit) -> str:
        if not edit.removes:
            return str(self._format.assign(text, edit.path, edit.value))
        if lookup(self._format.loads(text), edit.path) is None:
            return text  # a TOML table is removed with its last entry
        return str(self._format.remove(text, edit.path))

    def data_after(self, edits: Iterable[Edit]) -> dict[str, Any]:
        """Return the values with edits applied."""
        data = copy.deepcopy(self.data)
        for edit in edits:
            _edit_data(data, edit)
        return data

    def diff(self, text: str | None) -> str:
        """Return a unified diff to a new text; ``None`` means that the file is removed."""
        if text == self.text:
            return ""
        old = "/dev/null" if self.original is None else str(self.path)
        new = "/dev/null" if text is None else str(self.path)
        lines = difflib.unified_diff(
            self.text.splitlines(), (text or "").splitlines(), old, new, n=1, lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)

    def check_links(self) -> None:
        """Refuse a file that replacing would separate from its other names, and a dangling link."""
        for path in (self.path, self.backup):
            with _refusing(path, "read"):
                if path.is_symlink() and not path.exists():
                    raise RefusedFileError(f"{path} is a link to a file that does not exist")
                if path.is_file() and path.stat().st_nlink > 1:
                    raise RefusedFileError(f"{path} has another name as a hard link")

    def check_writable(self) -> None:
        """Refuse a file that is read-only, or must not be replaced because of links."""
        self.check_links()
        with _refusing(self.path, "write"):
            if self.original is not None and _is_read_only(resolve_path(self.path)):
                raise RefusedFileError(f"{self.path} is read-only")

    def save_backup(self) -> None:
        """Back up the contents, unless a backup has those from before our own last change."""
        if self.original is None or self._has_our_contents():
            return
        with _refusing(self.path, "write"), replace_atomically(self.backup) as temporary:
            temporary.write_bytes(self.original)

    def write(self, text: str) -> Change:
        """Replace the file's contents, and keep its mode."""
        kind = "created" if self.original is None else "changed"
        self._replace(text.encode("utf-8"))
        backup = self.backup if self.original is not None else None
        return Change(self.path, kind, backup, self.diff(text))

    def remember(
        self, folders: list[str], containers: Iterable[jsonc.Path], *, is_clean: bool
    ) -> None:
        """Record the current contents as our last change."""
        written = self._read()
        if written is None:
            return
        before: str | None = ""
        if self.record is not None and self._has_our_contents():
            before = self.record.before
        elif is_clean:
            before = None if self.original is None else fingerprint(self.original)
        added = [[str(step) for step in path] for path in containers]
        if self.record is not None:
            added, folders = self.record.containers + added, self.record.folders + folders
        save_record(self.path, FileRecord(before, fingerprint(written), added, folders))

    def forget(self) -> None:
        """Delete the record of the file and its backup."""
        if self.record is not None:
            with suppress(OSError):
                self.backup.unlink()
            save_record(self.path, None)

    def original_contents(self) -> bytes | None:
        """Return the contents before our first change; ``None`` if we created the file.

        :raises LookupError: somebody else changed the file since, or the backup is gone.
        """
        if self.record is None or not self._has_our_contents():
            raise LookupError
        if self.record.before is None:
            return None
        with suppress(OSError):
            data = read_bounded(self.backup, _MAX_SIZE)
            if fingerprint(data) == self.record.before:
                return data
        raise LookupError

    def without_settings(self, text: str) -> bytes | None:
        """Return what to restore instead of a text without settings; ``None`` for no file.

        :raises LookupError: the text has settings or comments, or the file had some.
        """
        nothing = "".join(text.split()) in ("", "{}")
        if not nothing or not self.record or self.record.before not in (None, fingerprint(b"")):
            raise LookupError
        return None if self.record.before is None else b""

    def restore(self, data: bytes | None, *, dry_run: bool) -> Change:
        """Restore the original contents, and delete the backup."""
        diff = self.diff(data.decode("utf-8") if data is not None else None)
        change = Change(self.path, "removed" if data is None else "restored", diff=diff)
        if dry_run:
            return change
        if data is None:
            with _refusing(self.path, "write"):
                self._check_unchanged()
                resolve_path(self.path).unlink()
            for folder in reversed(self.record.folders if self.record else []):
                with suppress(OSError):
                    os.rmdir(folder)
        else:
            self._replace(data)
        self.forget()
        return change

    def missing_folders(self) -> list[str]:
        """Return the folders that must be created for the file, the innermost last."""
        return [str(folder) for folder in missing_folders(resolve_path(self.path).parent)]

    def _has_our_contents(self) -> bool:
        return (
            self.record is not None
            and self.original is not None
            and fingerprint(self.original) == self.record.after
        )

    def _replace(self, data: bytes) -> None:
        with _refusing(self.path, "write"):
            target = resolve_path(self.path)
            make_private_dir(target.parent)
            self.check_writable()
            with replace_atomically(target) as temporary:
                temporary.write_bytes(data)
                if self.original is not None:
                    _copy_owner_and_mode(target, temporary)
                self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._read() != self.original:
            raise RefusedFileError(
                f"{self.path} changed meanwhile", hint="close the program, and try again"
            )

    def _read(self) -> bytes | None:
        with _refusing(self.path, "read"):
            try:
                return read_bounded(self.path, _MAX_SIZE)
            except FileNotFoundError:
                return None

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise RefusedFileError(f"{self.path} is not UTF-8 text") from None

    def _parse(self, text: str) -> dict[str, Any]:
        try:
            data = self._format.loads(text, **self._accepts)
        except ValueError as error:
            reason = error if self._format is jsonc else "it is not valid TOML"
            raise RefusedFileError(f"{self.path} is invalid: {reason}") from None
        if not isinstance(data, dict):
            raise RefusedFileError(f"{self.path} is invalid: it is not an object")
        return data


@contextmanager
def _refusing(path: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RefusedFileError(
            f"cannot {verb} {path}: {reason}", hint=suggest_fix(error, path)
        ) from None


def lookup(value: Any, path: jsonc.Path) -> Any:
    """Return the value at a path, or ``None``."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _is_read_only(path: Path) -> bool:
    """Return whether a file is read-only, even if we run as root."""
    return not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK)


def _copy_owner_and_mode(source: Path, target: Path) -> None:
    status = source.stat()
    if sys.platform != "win32":
        with suppress(OSError):  # only root may change the owner
            os.chown(target, status.st_uid, status.st_gid)
    target.chmod(stat.S_IMODE(status.st_mode))


def _edit_data(data: Any, edit: Edit) -> None:
    for depth, step in enumerate(edit.path[:-1]):
        missing = step not in data if isinstance(data, dict) else step == len(data)
        if missing:
            edit = Edit(edit.path[: depth + 1], jsonc.wrap(edit.path[depth + 1 :], edit.value))
            break
        data = data[step]
    step = edit.path[-1]
    if edit.removes:
        del data[step]
    elif isinstance(data, list) and step == len(data):
        data.append(edit.value)
    else:
        data[step] = edit.value


@dataclass(frozen=True)
class FileRecord:
    """A file that we changed: hashes of its contents, and what we added for our entries.

    :param before: the hash of its contents without our entries; ``None`` if we created it; empty if
        unknown, because it already contained entries of ours.
    """

    before: str | None
    after: str
    containers: list[list[str]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


def fingerprint(data: bytes) -> str:
    """Return the hash of a file's contents."""
    return sha256(data).hexdigest()


def find_record(path: Path) -> FileRecord | None:
    """Return the record of a file, if we changed it."""
    with suppress(LookupError, TypeError):  # missing, of another version, or damaged
        record = FileRecord(**_load()[str(path)])
        if isinstance(record.containers, list) and isinstance(record.folders, list):
            return record
    return None


def save_record(path: Path, record: FileRecord | None) -> None:
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
