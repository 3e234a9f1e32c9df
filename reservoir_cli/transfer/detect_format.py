"""Find the files to import, and detect their formats by content."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path, PurePath

from reservoir_cli.errors import PluginError, ReservoirError
from reservoir_cli.transfer.formats.registry import (
    LISTS,
    TEXTS,
    importer_named,
    importers,
    likely_importers,
    plugin_importers,
)
from reservoir_cli.transfer.reading.decompressed_file import (
    COMPRESSED,
    DATABASES,
    HEAD,
    SQLITE,
    File,
    Head,
    LockedError,
    Unreadable,
)
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped
from reservoir_cli.transfer.reading.input_files import PassedOver, cannot_read, gather
from reservoir_cli.transfer.reading.json_stream import parse_line, read_lines, syntax_error
from reservoir_cli.util.read_files import NotTextError, decode

#: A run of NULs, as a crash leaves it in a file; UTF-16 and UTF-32 have only short runs.
_NULS = rb"\0{16,}"
_LINES = (".jsonl", ".ndjson")
_JSON = (".json", *_LINES)
_TEXT = (".txt", ".md", ".markdown")
_COMPRESSED = (".gz", ".zst")  # endings of compressed files, after those of their content
_DATABASES = (".db", ".sqlite", ".sqlite3", ".vscdb")
#: At most this many damaged lines at the beginning of a file are passed over to detect its format.
_MOST_DAMAGED = 100
_ENOUGH = 16  # after so many objects, a list of messages is taken for one
#: Endings of files in a folder or zip that may contain messages; others are not opened.
_SUFFIXES = (*_JSON, *_TEXT, *_DATABASES)
#: Errors that say nothing about a file's format.
_FATAL: tuple[type[ReservoirError], ...] = (LockedError, PluginError)
#: Where all formats are listed; there are too many for a line.
_NAMED = "reservoir ingest --help lists the formats"


@dataclass(frozen=True, slots=True)
class DetectedFile:
    """A file and its importer; ``is_certain`` if that recognised the content."""

    file: File
    importer: Importer
    is_certain: bool = True

    def records(self) -> Iterator[Record | Skipped]:
        """Yield the messages; if reading fails, end with a skipped record."""
        place = "the file"
        try:
            for entry in self.importer.read(self.file):
                yield entry
                place = "what follows"
        except Unreadable as error:
            yield Skipped("what follows", str(error))
        except OSError as error:
            yield Skipped(place, f"cannot be read: {error.strerror or 'unknown reason'}")

    def describe_nothing(self) -> str:
        """Return why the file has no messages."""
        return "no messages" if self.is_certain else "not a format that reservoir reads"


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The files of a file, folder or zip that are read, and what is left out.

    :param links: the paths of symbolic links, which are not followed.
    """

    files: list[DetectedFile] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


class Owners:
    """Tells in which tool's own place a file is, by its folder and its ending."""

    def __init__(self, tools: Iterable[Importer]) -> None:
        self._folders = {name: tool.name for tool in tools for name in tool.folders}
        self._places = [
            (f"{os.path.abspath(place.path)}{os.sep}", place.endings, place.inside, tool.name)
            for tool in tools
            for place in tool.places()
        ]

    def owner_of(self, path: Path) -> str | None:
        """Return the name of the tool's importer, if the file is in the place of one."""
        absolute = os.path.abspath(path)
        parts = absolute.split(os.sep)
        for folder, endings, inside, name in self._places:
            if absolute.startswith(folder) and absolute.endswith(endings):
                if not inside or not set(inside).isdisjoint(parts):
                    return name
        if not absolute.endswith((".json", ".jsonl")):
            return None
        return next((self._folders[part] for part in parts[:-1] if part in self._folders), None)


def find(source: Path | File, form: str | None, open_files: ExitStack) -> FileSelection:
    """List the files to read in a file, folder or zip.

    In a folder or zip only the most specific formats are read, as exports come with other data and
    notes, and a zip in a folder if it has conversations. What cannot be opened is listed, too.

    :param open_files: closed by the caller when everything has been read.
    :raises ReservoirError: the source cannot be read, or has no file of this or a known format.
    """
    if form is not None:
        importer_named(form)
    passed_over = PassedOver([], [])
    files, alone = gather(source, open_files, passed_over)
    if alone:
        return FileSelection([_require_format(files[0], form)])
    files = [member for file in files for member in _open_zip(file, open_files, passed_over)]
    candidates = [file for file in files if file.unlisted or _may_have_messages(file.name, form)]
    owners = Owners([importer_named(form)] if form else list(importers().values()))
    detected, unreadable = _detect_all(candidates, form, owners)
    detected = [file for file in detected if not _is_unknown(file)]
    best = min(map(_generality, detected), default=0)
    specific = [file for file in detected if _generality(file) == best]
    chosen = _choose_named(detected, form) if form else specific
    if unreadable and not chosen:
        file, error = unreadable[0]
        raise error if isinstance(error, LockedError) else cannot_read(file.name, error)
    if not chosen:
        raise _describe_nothing(source, form, files, passed_over.links)
    importer = importer_named(form) if form else chosen[0].importer
    chosen += [DetectedFile(file, importer) for file, _ in unreadable]
    read = {id(file.file) for file in chosen}  # files of a zip may share a name
    ignored = [file.name for file in files if id(file) not in read]
    return FileSelection(chosen, ignored + passed_over.others, passed_over.links)


def _require_format(file: File, form: str | None) -> DetectedFile:
    if form is None and file.name.lower().endswith(".zip"):
        raise ReservoirError(
            f"{file.name} is not a zip, despite its name",
            hint="export or download it again; --format text stores it as one message",
        )
    try:
        return DetectedFile(file, choose(file, form, explain=True), form is None)
    except Unreadable as error:
        raise cannot_read(file.name, error) from None


def _choose_named(detected: Sequence[DetectedFile], form: str) -> list[DetectedFile]:
    """Return the files of a format; without any, the lists and unknown lines, read as that."""
    unknown = [file for file in detected if file.importer.name in TEXTS and not file.is_certain]
    named = [file for file in detected if file.importer.name == form and file not in unknown]
    if named:
        return named
    importer = importer_named(form)
    if form in TEXTS:
        return []
    lists = [file for file in detected if form in LISTS and file.importer.name in LISTS]
    return [DetectedFile(file.file, importer, False) for file in lists + unknown]


def _describe_nothing(
    source: Path | File, form: str | None, files: Sequence[File], links: Sequence[str]
) -> ReservoirError:
    what = f"the format {form}" if form else "a known format"
    hint = _describe_zips(files) or (_NAMED if files else "there are no files in it to read")
    if links and not files:
        hint = f"it has only links, which are not followed: name the target of {links[0]}"
    return ReservoirError(f"no file in {source} has {what}", hint=hint)


def _may_have_messages(name: str, form: str | None) -> bool:
    if _has_known_ending(name):
        return True
    tools = [importer_named(form)] if form else plugin_importers().values()
    return any(name.lower().endswith(end.lower()) for tool in tools for end in tool.endings)


def _has_known_ending(name: str) -> bool:
    name = name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.endswith(_SUFFIXES)


def _is_unknown(detected: DetectedFile) -> bool:
    """Return whether a file only has the ending of a plugin's files: it is no note either."""
    is_expected = detected.file.unlisted or _has_known_ending(detected.file.name)
    return detected.importer.name in TEXTS and not is_expected


def _detect_all(
    files: Sequence[File], form: str | None, owners: Owners
) -> tuple[list[DetectedFile], list[tuple[File, OSError | LockedError | Unreadable]]]:
    detected, unreadable = [], []
    for file in files:
        try:
            if match := _detect(file, form, owners):
                detected.append(match)
        except FileNotFoundError:  # deleted since it was listed
            continue
        except (OSError, LockedError, Unreadable) as error:
            unreadable.append((file, error))
    return detected, unreadable


def _open_zip(file: File, open_files: ExitStack, passed_over: PassedOver) -> list[File]:
    """Return the files in a zip of a folder if one has conversations; otherwise the zip itself."""
    if file.path and file.name.lower().endswith(".zip"):
        with ExitStack() as archive, suppress(ReservoirError, OSError):
            inside = PassedOver([], [])
            members, _ = gather(file, archive, inside)
            texts = (member for member in members if member.name.lower().endswith(_JSON))
            if any(map(_has_conversations, texts)):
                open_files.enter_context(archive.pop_all())
                passed_over.links.extend(inside.links)
                return members
    return [file]


def _has_conversations(file: File) -> bool:
    try:
        detected = _detect(file)
    except Unreadable:  # it is named when it is read
        return True
    return detected is not None and detected.is_certain and detected.importer.name not in TEXTS


def _describe_zips(files: Sequence[File]) -> str:
    for file in files:
        if file.name.lower().endswith(".zip"):
            if file.path is None:
                return "a zip in a zip is not read: unpack it and name the file"
            command = f"reservoir ingest {shlex.quote(file.name)}"
            return f"a zip in a folder is read only for conversations: {command}"
    return ""


def choose(file: File, form: str | None = None, *, explain: bool = False) -> Importer:
    """Return the importer for a file: the one named, or the first that recognises it.

    :param explain: check the syntax of unknown JSON, for a better error.
    :raises ReservoirError: the file is not text, or is JSON of an unknown format.
    """
    data = file.head()
    if data.startswith(SQLITE) and (form is None or importer_named(form).tables):
        return importer_named(form) if form else _require_database_format(file)
    suffix, is_cut = _suffix(file.name), len(data) < file.size
    if suffix in _JSON and b"\0" in data:  # its entries are read without the NULs between them
        data = re.sub(_NULS, b"", data)
    text = decode(data, file.name, cut=is_cut)[0]
    if form is not None:
        return importer_named(form)
    if not text.strip():
        return importer_named("text")
    if importer := _recognise(file, text):
        return importer
    if suffix in _LINES and (importer := _recognise_behind_damage(file)):
        return importer
    if suffix in _JSON:
        if explain and (error := syntax_error(file)):
            raise ReservoirError(
                f"{file.name}, {error.place}: {error.reason}",
                hint="--format text stores it as one message",
            )
        raise ReservoirError(
            f"{file.name} has an unknown format",
            hint=f"--format text stores it as one message; {_NAMED}",
        )
    return importer_named("markdown" if suffix in (".md", ".markdown") else "text")


def _suffix(name: str) -> str:
    path = PurePath(name.lower())
    return PurePath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def _recognise(file: File, text: str) -> Importer | None:
    """Return the first importer that recognises a file by its keys, if one does.

    Of a long document more is read: the keys of a format may come after a long prompt.
    """
    head = Head(text)
    match = _recognise_ours(file, head)
    if match and match.name not in LISTS:
        return match
    plugins = plugin_importers().values()
    return next((importer for importer in plugins if importer.detect(head)), match)


def _recognise_ours(file: File, head: Head) -> Importer | None:
    match = _recognise_text(head)
    if not head.is_json or head.objects or (match and match.name not in LISTS):
        return match
    try:
        with file.open() as stream:
            stream.read(HEAD)
            while not head.objects and head.read_on(stream):
                match = _recognise_text(head) or match
                if match and match.name not in LISTS:
                    break
    except Unreadable:
        if match is None:
            raise
    return match


def _recognise_text(head: Head) -> Importer | None:
    if not head.is_json:
        aider = importer_named("aider")
        return aider if aider.detect(head) else None
    match: Importer | None = None
    while head.advance():
        likely = likely_importers(head.keys)
        match = next((importer for importer in likely if importer.detect(head)), None)
        if match and (match.name not in LISTS or head.objects >= _ENOUGH):
            break
    if match is None and head.start.split() == ["[]"]:
        return importer_named("openai")
    return match


def is_of_tool(path: Path, tool: str) -> bool:
    """Return whether a file among a tool's files has the tool's format.

    :raises ReservoirError: the file is a damaged database, or not text (:class:`NotTextError`).
    :raises Unreadable: the file is damaged.
    """
    file, importer = File.of_path(path, path.stat()), importer_named(tool)
    is_database = path.name.endswith(DATABASES)
    if is_database and importer.tables:
        _tables_of(path)  # raises an error if it is damaged
    errors = _FATAL if is_database else (*_FATAL, NotTextError)
    match = _detect(file, tool, Owners([importer]), errors)
    return match is not None and match.importer.name == tool


def _is_likely(file: File, importer: Importer | None, tool: str) -> bool:
    """Return whether a file has an ending of a tool's files, or is one of damaged lines."""
    if importer and importer.name not in (*LISTS, *TEXTS):
        return False
    if file.place.name.endswith(importer_named(tool).endings or ("\0",)):
        return True
    is_unknown = importer is None and file.name.lower().endswith(_LINES)
    return is_unknown and syntax_error(file) is not None


def _recognise_behind_damage(file: File) -> Importer | None:
    with suppress(ReservoirError, Unreadable):
        head = _head_behind_damage(file)
        return _recognise_text(head) if head else None
    return None


def _head_behind_damage(file: File) -> Head | None:
    with file.open() as stream:
        for line, _ in islice(read_lines(stream), _MOST_DAMAGED):
            if isinstance(parse_line("", line), dict):
                return Head(decode(line + stream.read(HEAD), file.name, cut=True)[0])
    return None


def _detect(
    file: File,
    form: str | None = None,
    owners: Owners | None = None,
    errors: tuple[type[ReservoirError], ...] = _FATAL,
) -> DetectedFile | None:
    """Detect a format, or expect ``form`` even if the beginning of the file is damaged.

    :param errors: raised, also for a file in a tool's own place.
    """
    importer: Importer | None = None
    damage: Unreadable | None = None
    is_database = False
    try:
        # A folder of notes and exports may also contain other programs' databases.
        is_database = file.path is not None and file.head().startswith(SQLITE)
        importer = _database_importer(file) if is_database else choose(file)
    except errors:
        raise
    except Unreadable as error:
        damage = error
    except ReservoirError:
        pass
    owner = owners.owner_of(file.path) if owners and file.path and not is_database else None
    if importer is None and file.path and file.name.endswith(COMPRESSED):
        owner = owner or form or "codex"  # it compresses its sessions; damage is reported
    if owner and (importer is None or importer.name != owner):
        return DetectedFile(file, importer_named(owner), importer is not None)
    if form and (importer is None or importer.name != form) and _is_likely(file, importer, form):
        return DetectedFile(file, importer_named(form), False)
    if importer is None and form and file.name.lower().endswith(_LINES):
        return DetectedFile(file, importer_named("text"), False)
    if damage:
        raise damage
    return DetectedFile(file, importer) if importer else None


def _database_importer(file: File) -> Importer | None:
    tables = _tables_of(file.path) if file.path else frozenset()
    for importer in chain(likely_importers(tables), plugin_importers().values()):
        if any(required <= tables for required in importer.tables):
            return importer
    return None


def _require_database_format(file: File) -> Importer:
    # The importer for llm names the command for a store of Reservoir, and for a database in a zip.
    if file.path is None or "context_runs" in _tables_of(file.path):
        return importer_named("llm")
    if database := _database_importer(file):
        return database
    programs = ", ".join(importer.title for importer in importers().values() if importer.tables)
    raise ReservoirError(
        f"{file.name} is a database of an unknown format",
        hint=f"Reservoir reads databases of {programs}",
    )


def _tables_of(path: Path) -> frozenset[str]:
    from reservoir_cli.transfer.reading import foreign_databases

    return foreign_databases.tables_of(path)


def _generality(detected: DetectedFile) -> int:
    return (detected.importer.name in LISTS) + 2 * (detected.importer.name in TEXTS)
