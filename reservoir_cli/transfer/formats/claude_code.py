"""Import Claude Code's sessions: one line per part of a message, and other lines to skip."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter
from typing import Any

from reservoir_cli.messages import Message
from reservoir_cli.transfer.formats.claude_code_notices import (
    change_texts,
    remove_plumbing,
    remove_reminders,
)
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.checkpoints import State, lines, restoring
from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import branch_name, obj, text
from reservoir_cli.transfer.reading.importer import (
    Checkpoint,
    Importer,
    Place,
    Record,
    Skipped,
    SourceIds,
    Thread,
)
from reservoir_cli.transfer.reading.json_stream import read_entries, readable_objects
from reservoir_cli.transfer.reading.platform_folders import app_dir, claude_config_dirs
from reservoir_cli.transfer.reading.times import moment

_MESSAGE_TYPES = ("user", "assistant")
#: Flags of lines that the program wrote itself.
_INTERNAL_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
#: The origins of messages that other sessions, agents and services sent.
_PASSED_ON = frozenset(
    "agent ci ci-monitor cross-session hook monitor peer schedule scheduled session subagent "
    "system task task-notification teammate".split()
)
_METADATA = attrgetter("model", "project", "branch")  #: Of a conversation, in a checkpoint.
_SYNTHETIC = "<synthetic>"  #: The model of replies that the program wrote itself.
#: The key of a title by the type of its line, the best last.
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
#: Stop reasons of replies after which the turn continues; ``None`` while the reply is written.
_CONTINUING = (None, "tool_use", "pause_turn")
#: How many of the latest lines and conversations are remembered until the next import.
_LINES, _THREADS = 32, 8


class ClaudeCode(Importer):
    """Reads the files below ``~/.claude/projects``."""

    name = "claude-code"
    title = "Claude Code"
    instance = "claude-code"
    version = 2
    resumes_lines = True

    def detect(self, head: Head) -> bool:
        has_session = head.has("sessionId", "parentUuid", depth=1)
        has_session = has_session and head.has("content", "isSidechain")
        return head.has("type") and (has_session or head.has("leafUuid", "isSnapshotUpdate"))

    def places(self) -> Iterator[Place]:
        for folder in claude_config_dirs():
            yield Place(folder / "projects")
        cowork = app_dir("Claude") / "local-agent-mode-sessions"
        yield Place(cowork, inside=("projects",), title="Claude Desktop")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages without the program's own; the lines of one reply are one message."""
        session = _Session(file.stem, *_survey(file))
        yield from read_entries(file, session.read)
        yield from session.end()

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages after a checkpoint; a turn ends where the next question begins."""
        session = _Session(file.stem, *_survey(file))
        with restoring():
            session.restore(start.state)
        turn = start
        for line in lines(file, start):
            value = line.value
            if isinstance(value, Skipped):
                yield value
                continue
            if session.begins(message := _as_message(value)):
                yield from session.end()
                is_question = _is_question(message)
                checkpoint = Checkpoint(line.offset, session.state(line.number), is_question)
                turn = checkpoint if is_question else turn
                yield checkpoint
            yield from session.read(line.place, value)
        complete = session.is_complete()
        yield from session.end()
        # More lines of the last reply may follow: the next import reads it again.
        yield replace(turn, complete=complete, last=True)


@dataclass
class _Session:
    """A session while it is read. A reply is held until a line that does not belong to it."""

    stem: str
    titles: dict[str, str]
    taken_back: set[str]
    threads: dict[str, Thread] = field(default_factory=dict)
    identities: SourceIds = field(default_factory=SourceIds)
    seen: dict[str, None] = field(default_factory=dict)
    held: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def restore(self, state: State | None) -> None:
        if state is None:
            return
        self.seen = dict.fromkeys(reversed(state["seen"]))
        for key, fields in reversed(state["threads"].items()):
            trace, previous, model, project, branch = fields
            about = {"title": self.titles.get(key), "model": model, "branch": branch}
            about |= {"project": project, "identities": self.identities}
            thread = self.threads[key] = Thread(ClaudeCode.name, key, **about)
            thread.trace = trace
            thread.follow(previous)

    def state(self, line: int) -> State:
        """Return the state needed to continue at a line; it contains no text of messages."""
        return {
            "lines": line - 1,
            "seen": list(islice(reversed(self.seen), _LINES)),
            "threads": {
                key: (thread.trace, thread.last_id, *_METADATA(thread.conversation))
                for key, thread in islice(reversed(self.threads.items()), _THREADS)
            },
        }

    def begins(self, line: dict[str, Any]) -> bool:
        """Return whether a line begins a new message instead of continuing the held reply."""
        line_id = text(line.get("uuid"))
        if not _is_message(line) or line_id in self.seen or line_id in self.taken_back:
            return False
        return not self.held or not _is_same_reply(self.held[-1][1], line)

    def is_complete(self) -> bool:
        if not self.held:
            return True
        line = self.held[-1][1]
        is_reply = line.get("type") == "assistant"
        return is_reply and obj(line.get("message")).get("stop_reason") not in _CONTINUING

    def read(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        line = _as_message(line)
        if not isinstance(line.get("type"), str):
            yield Skipped(place, "no type")
        if not _is_message(line):
            return
        line_id = text(line.get("uuid"))
        if line_id in self.seen or line_id in self.taken_back:
            return  # a resumed session repeats earlier lines
        if line_id:
            self.seen[line_id] = None
        if self.held and not _is_same_reply(self.held[-1][1], line):
            yield from self.end()
        self.held.append((place, line))

    def end(self) -> Iterator[Record | Skipped]:
        held, self.held = self.held, []
        if not held:
            return
        place, line = held[0]
        line_id, created_at = text(line.get("uuid")), moment(line.get("timestamp"))

        def read() -> list[Message]:
            content = [block for _, part in held for block in _content(part)]
            return content_blocks.messages(str(line["type"]), content, created_at, line_id or "")

        yield from self._thread(line).convert(place, line_id, read, text(line.get("cwd")))

    def _thread(self, line: dict[str, Any]) -> Thread:
        """Return the conversation of a line, a session or a sub-agent, with updated metadata."""
        session = text(line.get("sessionId")) or self.stem
        key, title = session, self.titles.get(session)
        if line.get("isSidechain") is True:
            key, title = f"{session}/{text(line.get('agentId')) or 'sidechain'}", None
        if key not in self.threads:
            thread = Thread(ClaudeCode.name, key, title=title, identities=self.identities)
            self.threads[key] = thread
        thread = self.threads[key] = self.threads.pop(key)  # move the last one used to the end
        model = text(obj(line.get("message")).get("model"))
        thread.update(
            model=None if model == _SYNTHETIC else model,
            folder=line.get("cwd"),
            branch=branch_name(line.get("gitBranch")),
        )
        return thread


def _as_message(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with its type, or the line of a message typed while a reply was written.

    If the model read that before the end of its turn, it has no other line.
    """
    role = obj(line.get("message")).get("role")
    if "type" not in line and role in _MESSAGE_TYPES:
        return line | {"type": role}
    attachment = obj(line.get("attachment"))
    if line.get("type") != "attachment" or attachment.get("type") != "queued_command":
        return line
    if attachment.get("commandMode") not in (None, "prompt") or not _is_typed(attachment):
        return line
    times = {"timestamp": line.get("timestamp") or attachment.get("timestamp")}
    message = {"role": "user", "content": attachment.get("prompt")}
    return line | times | {"type": "user", "message": message}


def _is_message(line: dict[str, Any]) -> bool:
    """Return whether a line is part of a message, but not of the program or another session."""
    if line.get("type") == "user" and (_has_results(line) or _is_from_channel(line)):
        return True
    is_passed_on = line.get("type") == "user" and not _is_typed(line)
    is_main = line.get("isSidechain") is not True
    is_internal = any(line.get(flag) is True for flag in _INTERNAL_FLAGS)
    is_kept = not is_internal and not (is_passed_on and is_main)
    return line.get("type") in _MESSAGE_TYPES and is_kept


def _is_typed(value: dict[str, Any]) -> bool:
    """Return whether a human wrote a message, as one without an origin."""
    return text(obj(value.get("origin")).get("kind")) not in _PASSED_ON


def _is_from_channel(line: dict[str, Any]) -> bool:
    """Return whether the user sent a message through another program, such as Telegram."""
    return obj(line.get("origin")).get("kind") == "channel"


def _has_results(line: dict[str, Any]) -> bool:
    content = obj(line.get("message")).get("content")
    blocks = content if isinstance(content, list) else ()
    return any(obj(block).get("type") == "tool_result" for block in blocks)


def _is_question(line: dict[str, Any]) -> bool:
    is_main = line.get("type") == "user" and line.get("isSidechain") is not True
    return is_main and not _has_results(line)


def _has_words(line: dict[str, Any]) -> bool:
    """Return whether a line is a question with words or pictures of the user."""
    with suppress(ValueError):
        return _is_question(line) and _is_message(line) and bool(_content(line))
    return False


def _content(line: dict[str, Any]) -> list[Any]:
    """Return the blocks of a line, without the program's own text."""
    message = line.get("message")
    if not isinstance(message, dict):
        raise ValueError("not a message")
    content = message.get("content")
    if content is None or message.get("model") == _SYNTHETIC:
        return []
    blocks = content_blocks.block_list(content)
    if line.get("type") != "user":
        return blocks
    return [block for block in map(_clean_block, blocks) if block != ""]


def _clean_block(block: Any) -> Any:
    """Return a block of a user's line without the program's text; empty if none remains."""
    if isinstance(block, str):
        return remove_plumbing(block)
    kind = obj(block).get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return remove_plumbing(block["text"])
    if kind == "tool_result":
        return block | {"content": change_texts(block.get("content"), remove_reminders)}
    return block


def _survey(file: File) -> tuple[dict[str, str], set[str]]:
    """Return the titles of a file's sessions, and the ids of the lines that the user took back.

    A summary names the last line it covers, and is ignored for a line in another file, unless
    it is the only one.
    """
    sessions: dict[str, str] = {}
    titles: dict[str, dict[str, str]] = {kind: {} for kind in _TITLES}
    summaries: dict[str, str] = {}
    branches = _Branches()
    for line in readable_objects(file):
        kind, session = text(line.get("type")), text(line.get("sessionId")) or file.stem
        if line_id := text(line.get("uuid")):
            sessions[line_id] = session
            branches.add(line_id, line)
        if kind in _TITLES and (title := text(line.get(_TITLES[kind]))):
            if kind == "summary":
                summaries[text(line.get("leafUuid")) or ""] = title
            else:
                titles[kind][session] = title
    first = next(iter(sessions.values()), file.stem)
    for leaf, title in summaries.items():
        if leaf in sessions or len(summaries) == 1:
            titles["summary"][sessions.get(leaf, first)] = title
    by_session = titles["summary"] | titles["ai-title"] | titles["custom-title"]
    return by_session, branches.taken_back()


class _Branches:
    """A file's lines as a tree: a second question takes back a first that ends before it."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._questions: dict[str, str] = {}
        self._replaced: dict[str, int] = {}

    def add(self, line_id: str, line: dict[str, Any]) -> None:
        parent = text(line.get("parentUuid"))
        if parent is None or line_id in self._parents:
            return
        self._parents[line_id] = parent
        if _has_words(line):
            if earlier := self._questions.get(parent):
                self._replaced[earlier] = len(self._parents)
            self._questions[parent] = line_id

    def taken_back(self) -> set[str]:
        if not self._replaced:
            return set()
        first: dict[str, str] = {}
        last: dict[str, int] = {}
        for number, (line_id, parent) in enumerate(self._parents.items(), 1):
            question = line_id if line_id in self._replaced else first.get(parent)
            if question:
                first[line_id], last[question] = question, number
        return {line for line, top in first.items() if last[top] < self._replaced[top]}


def _is_same_reply(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether two lines are parts of one reply: both have both ids, and they are equal."""
    if first.get("type") != second.get("type"):
        return False
    ids = [
        (text(obj(line.get("message")).get("id")), text(line.get("requestId")))
        for line in (first, second)
    ]
    return ids[0] == ids[1] and None not in ids[0]
