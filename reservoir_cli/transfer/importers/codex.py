"""Import Codex's sessions (rollouts): one line per item sent to or received from the model."""

import json
from collections.abc import Container, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers.content_blocks import content_text, remove_marks
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.importers.foreign_values import (
    branch_name,
    call,
    folder_name,
    obj,
    objects,
    text,
)
from reservoir_cli.transfer.importers.importer import Record, Skipped, has_key, is_json
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import entries
from reservoir_cli.transfer.importers.message_times import moment
from reservoir_cli.transfer.importers.resume import Checkpoint, StartOver, State, lines
from reservoir_cli.transfer.importers.watched_files import contains
from reservoir_cli.util.read_files import read_bounded

#: Beginnings of user messages that the program writes.
_INJECTED = (
    "<environment_context>",
    "<permissions",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
)
#: Beginnings of others that were once imported as messages: they still count for source ids.
_NOTICES = (
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<skill>",
)
#: The heading of an editor's context, and the heading of the question after it.
_SETUP, _REQUEST = "# Context from my IDE setup:", "\n## My request for Codex:"
_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
#: Codex's list of sessions copied from other tools, and how many folders above them to look.
_COPIES, _DEPTH = "external_agent_session_imports.json", 5
#: Events that end a turn.
_ENDS = ("task_complete", "turn_aborted")
#: The event by which the user takes back the last turns, mostly to edit a question.
_ROLLBACK = "thread_rolled_back"


class Codex:
    """Reads the rollouts below ``~/.codex/sessions``."""

    name = "codex"
    instance = "codex"
    version = 2
    only_databases = False
    names_are_dated = True

    def detect(self, head: str) -> bool:
        """Recognise lines with a payload of a known type."""
        has_type = any(f'"{line_type}"' in head for line_type in _LINES)
        return is_json(head) and has_type and has_key(head, "payload")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages in order; skip events, which repeat the items."""
        if _is_copy(file):
            return
        rollout = _Rollout(file.stem, _taken_back(file, Checkpoint()))
        for entry in entries(file):
            if isinstance(entry, Skipped):
                yield entry
            else:
                yield from rollout.read(*entry)

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages after a checkpoint; a turn ends with an event or a new question."""
        if _is_copy(file):
            yield replace(start, complete=True, last=True)
            return
        rollout = _Rollout(file.stem, _taken_back(file, start))
        rollout.restore(start.state)
        turn, complete = start, True
        for line in lines(file, start):
            value = line.value
            if isinstance(value, Skipped):
                yield value
                continue
            kind, payload = value.get("type"), obj(value.get("payload"))
            if kind == "session_meta" and start.state:  # it changes the source ids
                raise StartOver
            if kind == "response_item":
                begins = complete or _is_question(payload)
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

    :param taken_back: the positions of the items that the user took back.
    """

    def __init__(self, session: str, taken_back: Container[str]) -> None:
        self._taken_back = taken_back
        self._identities = SourceIds()
        self._begin(session)
        self._is_named = False
        self._folder: str | None = None

    def _begin(self, session: str) -> None:
        self._about = Conversation(session, source=Codex.name)
        self._thread = Thread(Codex.name, self._about)
        self._is_named = True
        # Sessions may begin with the same words: the first message's id depends on the session.
        self._identities.follow("", session)

    def restore(self, state: State | None) -> None:
        """Restore the state of a checkpoint."""
        if state is None:
            return
        model, project, branch = state["about"]
        self._begin(state["session"])
        self._identities.follow("", state["previous"])
        about = Conversation(state["session"], None, Codex.name, model, project, branch)
        self._about = self._thread.conversation = about
        self._thread.trace, self._folder = state["trace"], state["folder"]
        self._thread.parent = state["parent"]

    def state(self, lines: int) -> State:
        """Return the state needed to continue; it contains no text of messages.

        :param lines: the number of lines read.
        """
        return {
            "lines": lines,
            "session": self._about.id,
            "previous": self._identities.last(""),
            "trace": self._thread.trace,
            "folder": self._folder,
            "parent": self._thread.parent,
            "about": (self._about.model, self._about.project, self._about.branch),
        }

    def read(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        payload, kind = obj(line.get("payload")), line.get("type")
        if kind == "session_meta" and self._is_named:
            self._identities.follow("", text(payload.get("id")) or self._identities.last(""))
        elif kind in ("session_meta", "turn_context"):
            if kind == "session_meta" and (session := text(payload.get("id"))):
                self._begin(session)
                self._thread.parent = _parent(payload)
            self._about = self._thread.conversation = _update_metadata(self._about, payload)
            self._folder = text(payload.get("cwd")) or self._folder
        elif kind == "response_item":
            yield from self._read_item(place, line)
        elif not isinstance(kind, str):
            yield Skipped(place, "no type")

    def _read_item(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        try:
            message = _message(line)
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        if message is not None:
            # The id depends on the whole text, so that earlier imports are recognised.
            source_id = self._identities.new("", message)
            cleaned = _clean_message(message)
            is_kept = cleaned.content or message.role == "tool" or message.tool_calls
            if is_kept and place not in self._taken_back:
                yield self._thread.record(cleaned, source_id, self._folder)


def _parent(payload: dict[str, Any]) -> str | None:
    """Return the id of the session that started a subagent."""
    spawned = obj(obj(obj(payload.get("source")).get("subagent")).get("thread_spawn"))
    return text(spawned.get("parent_thread_id")) or text(payload.get("parent_thread_id"))


def _taken_back(file: File, start: Checkpoint) -> set[str]:
    """Return the positions of the items after a checkpoint that the user took back."""
    taken: set[str] = set()
    if not contains(file, _ROLLBACK.encode()):
        return taken
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
                taken.update(items[first:])
                del items[first:]
            del questions[len(questions) - len(undone) :]
    return taken


def _is_typed(line: dict[str, Any]) -> bool:
    """Return whether an item is a message that the user typed."""
    try:
        message = _message(line)
    except ValueError:
        return False
    return message is not None and message.role == "user" and bool(_clean_message(message).content)


def _is_copy(file: File) -> bool:
    """Return whether a session is Codex's copy of another tool's session."""
    if file.path is None:
        return False
    return any(
        file.stem.endswith(session_id)
        for folder in list(file.path.parents)[:_DEPTH]
        for session_id in _read_copies(folder / _COPIES)
    )


@lru_cache(maxsize=16)
def _read_copies(path: Path) -> frozenset[str]:
    """Return the ids of the sessions that Codex lists as copies."""
    try:
        document = json.loads(read_bounded(path))
    except (OSError, ValueError, RecursionError):
        return frozenset()
    records = objects(obj(document).get("records"))
    return frozenset(filter(None, (text(record.get("imported_thread_id")) for record in records)))


def _is_question(item: dict[str, Any]) -> bool:
    return item.get("type") == "message" and item.get("role") == "user"


def _update_metadata(about: Conversation, payload: dict[str, Any]) -> Conversation:
    """Return a conversation updated with the model, folder and branch of a line."""
    return replace(
        about,
        model=text(payload.get("model")) or about.model,
        project=about.project or folder_name(payload.get("cwd")),
        branch=branch_name(obj(payload.get("git")).get("branch")) or about.branch,
    )


def _clean_message(message: Message) -> Message:
    """Return a reply without citation marks, or a user message without an editor's context.

    The program's notices become empty.
    """
    if message.role == "assistant":
        return replace(message, content=remove_marks(message.content))
    if message.role != "user":
        return message
    content = message.content.strip()
    if content.startswith(_NOTICES):
        return replace(message, content="")
    before, heading, question = content.partition(_REQUEST)
    if heading and before.startswith(_SETUP):
        return replace(message, content=question.strip())
    return message


def _message(line: dict[str, Any]) -> Message | None:
    """Return the message of an item; ``None`` if the program wrote it.

    :raises ValueError: the item cannot be read.
    """
    item, created_at = line.get("payload"), moment(line.get("timestamp"))
    if not isinstance(item, dict):
        raise ValueError("not an item")
    match item.get("type"):
        case "message":
            role, content = item.get("role"), content_text(item.get("content"))
            if role in ("system", "developer") or not content.strip():
                return None
            if role not in ("user", "assistant"):
                raise ValueError("unknown role")
            injected = role == "user" and content.lstrip().startswith(_INJECTED)
            return None if injected else Message(role, content, created_at)
        case "function_call":
            return _call(item, item.get("name"), item.get("arguments"), created_at)
        case "custom_tool_call":
            return _call(item, item.get("name"), item.get("input"), created_at)
        case "local_shell_call":
            return _call(item, "local_shell", item.get("action"), created_at)
        case "function_call_output" | "custom_tool_call_output":
            call_id = text(item.get("call_id"))
            return Message("tool", _output(item), created_at, tool_call_id=call_id)
        case _:
            return None


def _call(item: dict[str, Any], name: Any, arguments: Any, created_at: Any) -> Message:
    tool_call = call(item.get("call_id"), name, arguments)
    return Message("assistant", "", created_at, tool_calls=(tool_call,))


def _output(item: dict[str, Any]) -> str:
    output = item.get("output")
    return content_text(output.get("content") if isinstance(output, dict) else output)
