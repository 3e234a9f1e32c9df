"""Import Codex's sessions (rollouts): one line per item sent to or received from the model."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.formats.codex_notices import (
    clean_question,
    remove_citations,
    review_results,
)
from reservoir_cli.transfer.reading.checkpoints import (
    StartOver,
    State,
    lines,
    restoring,
)
from reservoir_cli.transfer.reading.content_blocks import content_text, item_message, remove_marks
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import (
    branch_name,
    obj,
    objects,
    require_object,
    text,
)
from reservoir_cli.transfer.reading.importer import (
    Checkpoint,
    Importer,
    Place,
    Record,
    Skipped,
    SourceIds,
    Thread,
)
from reservoir_cli.transfer.reading.json_stream import contains, read_entries
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.times import moment
from reservoir_cli.util.read_files import read_bounded

#: Beginnings of user messages that the program writes.
_INJECTED = (
    "<environment_context>",
    "<permissions",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
)
_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
#: How a session of a version before September 2025 begins: as lines, or as a document.
_OLD_HEADER = re.compile(r'\s*\{\s*(?:"session"\s*:\s*\{\s*)?"(?:id|timestamp)"\s*:\s*"')
#: The working folder in the first message of such a session.
_OLD_FOLDER = re.compile(r"<cwd>([^<\n]+)</cwd>|Current working directory: ([^\n]+)")
#: Endings of files that are always read as a whole: documents, and compressed files.
_WHOLE = (".json", ".zst")
#: Codex's list of sessions copied from other tools, and how many folders above them to look.
_COPIES, _DEPTH = "external_agent_session_imports.json", 5
_ENDS = ("task_complete", "turn_aborted")  #: Events that end a turn.
#: The event by which the user takes back the last turns, mostly to edit a question.
_ROLLBACK = "thread_rolled_back"
_NAMED = "thread_name_updated"  #: The event by which the user names a session.


class Codex(Importer):
    """Reads the rollouts below ``~/.codex/sessions``."""

    name = "codex"
    title = "Codex"
    instance = "codex"
    version = 4
    resumes_lines = True
    names_are_dated = True

    def detect(self, head: Head) -> bool:
        return _is_old(head) or (head.has("payload") and head.has_kind(*_LINES))

    def is_repeated(self, file: File) -> bool:
        return _is_copy(file)

    def places(self) -> Iterator[Place]:
        folder = tool_dir("CODEX_HOME", ".codex") / "sessions"
        yield Place(folder, (".json", ".jsonl", ".jsonl.zst"))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages in order; skip events, which repeat the items."""
        if _is_copy(file):
            return
        rollout = _Rollout(file, Checkpoint())

        def read_document(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
            for line_place, line in _lines_of(place, value):
                yield from rollout.read(line_place, line)

        yield from read_entries(file, read_document)

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages after a checkpoint; a turn ends with an event or a new question."""
        if _is_copy(file):
            yield replace(start, complete=True, last=True)
            return
        if file.path and file.path.suffix in _WHOLE:
            yield from self.read(File.of_path(file.path, file.path.stat()))
            yield Checkpoint(last=True)
            return
        rollout = _Rollout(file, start)
        with restoring():
            rollout.restore(start.state)
        turn, complete = start, True
        for line in lines(file, start):
            value = line.value
            if isinstance(value, Skipped):
                yield value
                continue
            value = _as_line(value)
            kind, payload = value.get("type"), obj(value.get("payload"))
            if kind == "session_meta" and start.state:  # it changes the source ids
                raise StartOver
            if kind == "response_item":
                is_question = payload.get("type") == "message" and payload.get("role") == "user"
                begins = complete or is_question
                checkpoint = Checkpoint(line.offset, rollout.state(line.number - 1), begins)
                turn, complete = (checkpoint if begins else turn), False
                yield checkpoint
            yield from rollout.read(line.place, value)
            if kind == "event_msg" and payload.get("type") in _ENDS:
                turn, complete = Checkpoint(line.end, rollout.state(line.number)), True
        yield replace(turn, complete=complete, last=True)


class _Rollout:
    """A rollout while it is read.

    A fork begins with its own metadata, and repeats those and the messages of the session that it
    continues. They have the same ids there, so that only what follows is new.
    """

    def __init__(self, file: File, start: Checkpoint) -> None:
        self._taken_back = _taken_back(file, start)
        self._names = _names(file, start)
        self._identities = SourceIds()
        self._begin(file.stem)
        self._is_named = False
        self._folder: str | None = None
        self._started: Any = None
        self._review = ""

    def _begin(self, session: str, **about: Any) -> None:
        # Sessions may begin with the same words: the first message's id depends on the session.
        about |= {"title": self._names.get(session), "identities": self._identities}
        self._thread = Thread(Codex.name, session, **about)
        self._is_named = True

    def restore(self, state: State | None) -> None:
        if state is None:
            return
        model, project, branch = state["about"]
        about = {"model": model, "project": project, "branch": branch, "parent": state["parent"]}
        self._begin(state["session"], **about)
        self._thread.follow(state["previous"])
        self._thread.trace, self._folder = state["trace"], state["folder"]

    def state(self, lines: int) -> State:
        """Return the state needed to continue after some lines, without any text of messages."""
        about = self._thread.conversation
        return {
            "lines": lines,
            "session": about.id,
            "previous": self._thread.last_id,
            "trace": self._thread.trace,
            "folder": self._folder,
            "parent": self._thread.parent,
            "about": (about.model, about.project, about.branch),
        }

    def read(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        payload, kind = obj(line.get("payload")), line.get("type")
        if kind == "session_meta" and self._is_named:
            self._thread.follow(text(payload.get("id")) or self._thread.last_id)
        elif kind in ("session_meta", "turn_context"):
            if kind == "session_meta" and (session := text(payload.get("id"))):
                self._begin(session, parent=_parent(payload))
            branch = branch_name(obj(payload.get("git")).get("branch"))
            self._thread.update(
                model=payload.get("model"), folder=payload.get("cwd"), branch=branch
            )
            self._folder = text(payload.get("cwd")) or self._folder
            self._started = payload.get("timestamp") or self._started
        elif kind == "response_item":
            yield from self._read_item(place, line)
        elif not isinstance(kind, str):
            yield Skipped(place, "no type")

    def _read_item(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        if "timestamp" not in line:  # in old versions, only the session has a time
            line = line | {"timestamp": self._started}
        try:
            message = _message(line)
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        if message is None:
            self._find_folder(obj(line.get("payload")))
            return
        # The id depends on the whole text, so that earlier imports are recognised.
        source_id = self._thread.new_id(message)
        cleaned = self._join_review(_clean_message(message, line["payload"]))
        is_kept = cleaned.content or message.role == "tool" or message.tool_calls
        if is_kept and place not in self._taken_back:
            yield self._thread.record(cleaned, source_id, self._folder)

    def _find_folder(self, item: dict[str, Any]) -> None:
        """Take the working folder from the program's first message, if no line has stated one."""
        if self._folder is None and item.get("role") == "user":
            match = _OLD_FOLDER.search(content_text(item.get("content")))
            if match:
                self._folder = match[1] or match[2]
                self._thread.update(folder=self._folder)

    def _join_review(self, message: Message) -> Message:
        """Return the results of a review as a reply, and the reply that repeats them as empty."""
        results = review_results(message.content) if message.role == "user" else None
        if results is not None:
            self._review = results
            return replace(message, role="assistant", content=results)
        if message.content and self._review:
            is_repeated = message.content.split() == self._review.split()
            self._review = ""
            return replace(message, content="") if is_repeated else message
        return message


def _is_old(head: Head) -> bool:
    """Return whether a file begins like a session of a version before September 2025."""
    has_header = head.has_all("id", "timestamp", "instructions") and not head.has("messages")
    return has_header and bool(_OLD_HEADER.match(head.start))


def _lines_of(place: str, value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a line, or those of a session that the first versions stored as one document."""
    header, items = value.get("session"), value.get("items")
    if not isinstance(header, dict) or not isinstance(items, list):
        yield place, _as_line(value)
        return
    yield place, {"type": "session_meta", "payload": header}
    for number, item in enumerate(items, 1):
        yield f"{place}, item {number}", {"type": "response_item", "payload": item}


def _as_line(value: dict[str, Any]) -> dict[str, Any]:
    """Return a line in today's form: before September 2025 a line was a header or an item."""
    if "payload" in value:
        item = obj(value["payload"])
        is_message = "role" in item and "type" not in item
        return value | {"payload": {"type": "message"} | item} if is_message else value
    if isinstance(value.get("type"), str):
        return {"type": "response_item", "payload": value}
    if "record_type" in value:
        return {"type": "state"}
    is_header = text(value.get("id")) and text(value.get("timestamp"))
    return {"type": "session_meta", "payload": value} if is_header else value


def _parent(payload: dict[str, Any]) -> Any:
    spawned = obj(obj(obj(payload.get("source")).get("subagent")).get("thread_spawn"))
    return text(spawned.get("parent_thread_id")) or payload.get("parent_thread_id")


def _taken_back(file: File, start: Checkpoint) -> set[str]:
    """Return the positions of the items after a checkpoint that the user took back."""
    undone_items: set[str] = set()
    if not contains(file, _ROLLBACK.encode()):
        return undone_items
    items: list[str] = []
    questions: list[int] = []
    for line in lines(file, start):
        value = {} if isinstance(line.value, Skipped) else line.value
        kind, payload = value.get("type"), obj(value.get("payload"))
        if kind == "response_item":
            if _is_typed(value):
                questions.append(len(items))
            items.append(line.place)
        elif kind == "event_msg" and payload.get("type") == _ROLLBACK:
            count = payload.get("num_turns")
            undone = questions[-count:] if isinstance(count, int) and count > 0 else []
            for first in undone[:1]:
                undone_items.update(items[first:])
                del items[first:]
            del questions[len(questions) - len(undone) :]
    return undone_items


def _names(file: File, start: Checkpoint) -> dict[str, str]:
    names: dict[str, str] = {}
    if contains(file, _NAMED.encode()):
        for line in lines(file, start):
            value = {} if isinstance(line.value, Skipped) else line.value
            payload = obj(value.get("payload"))
            session, name = text(payload.get("thread_id")), text(payload.get("thread_name"))
            if payload.get("type") == _NAMED and session and name:
                names[session] = name
    return names


def _is_typed(line: dict[str, Any]) -> bool:
    try:
        message = _message(line)
    except ValueError:
        return False
    if message is None or message.role != "user" or review_results(message.content) is not None:
        return False
    return bool(_clean_message(message, line["payload"]).content)


def _is_copy(file: File) -> bool:
    if file.path is None:
        return False
    return any(
        file.stem.endswith(session_id)
        for folder in list(file.path.parents)[:_DEPTH]
        for session_id in _copies_in(folder / _COPIES)
    )


def _copies_in(path: Path) -> frozenset[str]:
    try:
        return _read_copies(path, path.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=16)
def _read_copies(path: Path, changed: int) -> frozenset[str]:
    try:
        document = json.loads(read_bounded(path))
    except (OSError, ValueError, RecursionError):
        return frozenset()
    records = objects(obj(document).get("records"))
    return frozenset(filter(None, (text(record.get("imported_thread_id")) for record in records)))


def _clean_message(message: Message, item: dict[str, Any]) -> Message:
    """Return a reply without citation marks, or a user message without the program's text."""
    if message.role == "assistant":
        return replace(message, content=remove_citations(remove_marks(message.content)))
    if message.role == "user":
        question = clean_question(item.get("content"))
        return replace(message, content=question if question.strip() else "")
    return message


def _message(line: dict[str, Any]) -> Message | None:
    """Return an item's message, ``None`` for the program's; raise ValueError for others."""
    item = require_object(line.get("payload"), "not an item")
    kind, created_at = str(item.get("type")), moment(line.get("timestamp"))
    if kind == "message":
        return _words(item, created_at)
    if kind == "image_generation_call":
        return Message("assistant", "[image]", created_at)
    return item_message(item, created_at)


def _words(item: dict[str, Any], created_at: datetime | None) -> Message | None:
    role, content = item.get("role"), content_text(item.get("content"))
    if role in ("system", "developer") or not content.strip():
        return None
    if role not in ("user", "assistant"):
        raise ValueError("unknown role")
    injected = role == "user" and content.lstrip().startswith(_INJECTED)
    return None if injected else Message(role, content, created_at)
