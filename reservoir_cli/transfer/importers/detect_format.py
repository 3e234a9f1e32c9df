"""Find files to import, and detect their formats by content; all formats are listed here."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path, PurePath

from reservoir_cli.errors import ReservoirError, unknown_format
from reservoir_cli.transfer.importers import watched_files
from reservoir_cli.transfer.importers.importer import SQLITE, Importer, Record, Skipped
from reservoir_cli.transfer.importers.input_files import HEAD, File, Unreadable, cannot_read, gather
from reservoir_cli.transfer.importers.json_stream import parse_line, read_lines, syntax_error
from reservoir_cli.transfer.importers.zstd_files import COMPRESSED
from reservoir_cli.util.read_files import NotTextError, decode

#: Formats of lists of messages, which other files may resemble, and of any text. In a folder or
#: zip they are read only if no file has a more specific format.
_LISTS, _TEXTS = ("openai", "anthropic"), ("text", "markdown")
#: A run of NULs, as a crash leaves it in a file; UTF-16 and UTF-32 have only short runs.
_NULS = rb"\0{16,}"
_LINES = (".jsonl", ".ndjson")
_JSON = (".json", *_LINES)
#: At most this many damaged lines at the beginning of a file are passed over to detect its format.
_MOST_DAMAGED = 100
#: Endings of files in a folder or zip that may contain messages; others are not opened.
_SUFFIXES = (*_JSON, COMPRESSED, ".txt", ".md", ".markdown", ".db", ".sqlite", ".sqlite3", ".vscdb")
#: Module and class of each format, the most specific first; loaded when a file is read.
_CLASSES = {
    "reservoir": ("reservoir_rows", "Native"),
    "gemini-cli": ("gemini_cli", "GeminiCli"),
    "opencode": ("opencode", "OpenCode"),
    "copilot-chat": ("copilot_chat", "CopilotChat"),
    "copilot-cli": ("copilot_cli", "CopilotCli"),
    "cursor": ("cursor", "Cursor"),
    "chatgpt": ("chatgpt", "ChatGPT"),
    "claude": ("claude", "Claude"),
    "claude-code": ("claude_code", "ClaudeCode"),
    "codex": ("codex", "Codex"),
    "llm": ("llm", "Llm"),
    "cline": ("cline", "Cline"),
    "goose": ("goose", "Goose"),
    "lm-studio": ("lm_studio", "LmStudio"),
    "aider": ("aider", "Aider"),
    "zed": ("zed", "Zed"),
    "open-webui": ("open_webui", "OpenWebUI"),
    "sharegpt": ("sharegpt", "ShareGPT"),
    "anthropic": ("anthropic", "Anthropic"),
    "openai": ("openai", "OpenAI"),
    "markdown": ("text_and_markdown", "Markdown"),
    "text": ("text_and_markdown", "Plain"),
}
FORMATS = tuple(_CLASSES)
#: Formats of databases; a database has the format if it contains all tables of one of its sets.
DATABASES: dict[str, tuple[frozenset[str], ...]] = {
    "opencode": (
        frozenset({"session", "message", "part"}),
        frozenset({"session_v2", "session_message"}),
    ),
    "cursor": (frozenset({"cursorDiskKV"}),),
    "llm": (frozenset({"responses"}), frozenset({"turns"})),
    "goose": (frozenset({"sessions", "messages", "schema_version"}),),
    "open-webui": (frozenset({"chat", "auth", "user"}),),
    "zed": (frozenset({"threads"}),),
}
#: Where all formats are listed; there are too many for a line.
_NAMED = "reservoir ingest --help lists the formats"


@dataclass(frozen=True, slots=True)
class DetectedFile:
    """A file and the importer that reads it."""

    file: File
    importer: Importer

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


def find(
    source: Path | File, form: str | None, open_files: ExitStack
) -> tuple[list[DetectedFile], int]:
    """List the files to read in a file, folder or zip, and count the others.

    In a folder or zip only the most specific formats are read: neither the account data of an
    export nor notes beside it are conversations. A zip in a folder is read if it has conversations.
    A file or folder that cannot be opened is listed, so that it is reported.

    :param form: a format; ``None`` to detect it.
    :param open_files: closed by the caller when everything has been read.
    :raises UsageError: there is no format of that name.
    :raises ReservoirError: the source cannot be read, or has no file of a known format.
    """
    if form is not None:
        importer_named(form)
    files, alone = gather(source, open_files)
    if alone:
        if form is None and files[0].name.lower().endswith(".zip"):
            raise ReservoirError(
                f"{files[0].name} is not a zip, despite its name",
                hint="export or download it again; --format text stores it as one message",
            )
        return [DetectedFile(files[0], choose(files[0], form, explain=True))], 0
    files = [member for file in files for member in _open_zip(file, open_files)]
    candidates = [file for file in files if file.unlisted or file.name.lower().endswith(_SUFFIXES)]
    detected, unreadable = _detect_all(candidates, form)
    if form is not None:
        chosen = [file for file in detected if file.importer.name == form]
    else:
        best = min(map(_generality, detected), default=0)
        chosen = [file for file in detected if _generality(file) == best]
    if unreadable and not chosen:
        file, error = unreadable[0]
        raise cannot_read(Path(file.name), error)
    if not chosen:
        wanted = f"the format {form}" if form else "a known format"
        hint = _describe_zips(files) or (_NAMED if files else "it has no files that are read")
        raise ReservoirError(f"no file in {source} has {wanted}", hint=hint)
    importer = importer_named(form) if form else chosen[0].importer
    chosen += [DetectedFile(file, importer) for file, _ in unreadable]
    return chosen, len(files) - len(chosen)


def _detect_all(
    files: Sequence[File], form: str | None
) -> tuple[list[DetectedFile], list[tuple[File, OSError]]]:
    """Detect the formats of files; also return those that cannot be opened."""
    detected, unreadable = [], []
    for file in files:
        try:
            if known := _detect(file, form):
                detected.append(known)
        except FileNotFoundError:  # deleted since it was listed
            continue
        except OSError as error:
            unreadable.append((file, error))
    return detected, unreadable


def _open_zip(file: File, open_files: ExitStack) -> list[File]:
    """Return the files in a zip of a folder if one has conversations; otherwise the zip itself."""
    if file.path and file.name.lower().endswith(".zip"):
        with ExitStack() as archive, suppress(ReservoirError, OSError):
            members, _ = gather(file, archive)
            texts = (member for member in members if member.name.lower().endswith(_JSON))
            if any(found and found.importer.name not in _TEXTS for found in map(_detect, texts)):
                open_files.enter_context(archive.pop_all())
                return members
    return [file]


def _describe_zips(files: Sequence[File]) -> str:
    """Return how to import the first zip among the files of a folder or zip; empty if none."""
    for file in files:
        if file.name.lower().endswith(".zip"):
            if file.path is None:
                return "a zip in a zip is not read: unpack it and name the file"
            command = f"reservoir ingest {shlex.quote(file.name)}"
            return f"a zip in a folder is read only for conversations: {command}"
    return ""


def choose(file: File, form: str | None = None, *, explain: bool = False) -> Importer:
    """Return the importer for a file: the one named, or the first that recognises it.

    :param explain: if no importer recognises a JSON file, check its syntax for a better error.
    :raises UsageError: there is no format of that name.
    :raises ReservoirError: the file is not text, or is JSON of an unknown format.
    """
    known = importers()
    data = file.head()
    if data.startswith(SQLITE) and (form is None or form in DATABASES):
        return importer_named(form or _require_database_format(file))
    suffix, is_cut = PurePath(file.name).suffix.lower(), len(data) < file.size
    if suffix in _JSON:  # its entries are read one by one, without the NULs between them
        data = re.sub(_NULS, b"", data)
    head = decode(data, file.name, cut=is_cut)[0]
    if form is not None:
        return importer_named(form)
    if not head.strip():
        return known["text"]
    if importer := _recognise(head):
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
    return known["markdown" if suffix in (".md", ".markdown") else "text"]


def _recognise(head: str) -> Importer | None:
    """Return the first importer that recognises the beginning of a file, if one does."""
    others = (importer for name, importer in importers().items() if name not in _TEXTS)
    return next((importer for importer in others if importer.detect(head)), None)


def is_of_tool(path: Path, tool: str) -> bool:
    """Return whether a file among a tool's files has the tool's format.

    :raises NotTextError: the file is not text, as no program's file of that name is.
    :raises ReservoirError: the file is damaged, and its format therefore unknown.
    :raises Unreadable: likewise.
    """
    file = File.of_path(path, path.stat())
    try:
        if choose(file).name == tool:
            return True
    except NotTextError as error:
        if not path.name.endswith(watched_files.DATABASES):
            problem = f"cannot read {path} as a history of {tool}: it is not text"
            raise NotTextError(problem, hint=error.hint) from None
    except (ReservoirError, Unreadable):
        if path.name.endswith(COMPRESSED):
            raise
    if tool in DATABASES and path.name.endswith(watched_files.DATABASES):
        _tables_of(path)  # raises an error if it is damaged
    return _begins_damaged(file, tool)


def _begins_damaged(file: File, form: str) -> bool:
    """Return whether lines of a format, or none that are valid, follow damaged ones.

    Such a file must not be ignored: its damaged lines are reported, and the others are imported.
    """
    if not file.name.lower().endswith((*_LINES, COMPRESSED)):
        return False
    with suppress(ReservoirError, Unreadable):
        if not syntax_error(file):
            return False
        with file.open() as stream:
            for line, _ in islice(read_lines(stream), _MOST_DAMAGED):
                if isinstance(parse_line("", line), dict):
                    head = decode(line + stream.read(HEAD), file.name, cut=True)[0]
                    found = _recognise(head)
                    return found is not None and found.name == form
            return True
    return False


def _detect(file: File, form: str | None = None) -> DetectedFile | None:
    """Detect the format of a file; ``None`` if it is unknown.

    :param form: the format to expect, even if the beginning of the file is damaged.
    :raises OSError: the file cannot be opened.
    """
    try:
        # A folder of notes and exports may also contain other programs' databases.
        if file.path and file.head().startswith(SQLITE) and not _database_format(file):
            return None
        importer: Importer | None = choose(file)
    except (ReservoirError, Unreadable):
        # Codex compresses its sessions. One that cannot be read must not be ignored.
        is_session = file.path and file.name.endswith(COMPRESSED)
        importer = importer_named("codex") if is_session else None
    if form and (importer is None or importer.name in _TEXTS) and _begins_damaged(file, form):
        importer = importer_named(form)
    return DetectedFile(file, importer) if importer else None


def _database_format(file: File) -> str | None:
    """Detect the format of a database by its tables."""
    tables = _tables_of(file.path) if file.path else frozenset()
    known = ((name, required) for name, sets in DATABASES.items() for required in sets)
    return next((name for name, required in known if required <= tables), None)


def _require_database_format(file: File) -> str:
    """Detect the format of a database.

    :raises ReservoirError: it is unknown.
    """
    known = _database_format(file)
    # The importer for llm names the command for a store of Reservoir, and for a database in a zip.
    if known or file.path is None or "context_runs" in _tables_of(file.path):
        return known or "llm"
    raise ReservoirError(
        f"{file.name} is a database of an unknown format",
        hint=f"Reservoir reads databases of {', '.join(DATABASES)}",
    )


def _tables_of(path: Path) -> frozenset[str]:
    from reservoir_cli.transfer.importers import foreign_databases

    return foreign_databases.tables_of(path)


def _generality(detected: DetectedFile) -> int:
    return (detected.importer.name in _LISTS) + 2 * (detected.importer.name in _TEXTS)


def importers() -> dict[str, Importer]:
    """Return all importers by name, the most specific first."""
    return {name: _load(*place)() for name, place in _CLASSES.items()}


def importer_named(form: str) -> Importer:
    """Return the importer of a format.

    :raises UsageError: there is no format of that name.
    """
    if form not in _CLASSES:
        raise unknown_format(form, FORMATS)
    return _load(*_CLASSES[form])()


def _load(module: str, class_name: str) -> type[Importer]:
    loaded: type[Importer] = getattr(import_module(f"{__package__}.{module}"), class_name)
    return loaded
