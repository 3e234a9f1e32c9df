"""Claude Code's sessions: a line for each part of a message, and for much that is none."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from reservoir_cli.messages import Conversation
from reservoir_cli.transfer.importers import (
    File,
    Record,
    Skipped,
    Unreadable,
    blocks,
    has_key,
    is_json,
)
from reservoir_cli.transfer.importers.coerce import branch_name, folder_name, moment, obj, text
from reservoir_cli.transfer.importers.conversations import SourceIds, Thread
from reservoir_cli.transfer.importers.json_stream import entries
from reservoir_cli.transfer.importers.plumbing import without_plumbing, without_reminders

_SAID = ("user", "assistant")
#: Marks of lines that the program wrote itself.
_NOT_SAID = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
#: The model of replies that the program wrote itself.
_SYNTHETIC = "<synthetic>"
#: Where a title is, by the type of its line, the best last.
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


class ClaudeCode:
    """Reads the files below ``~/.claude/projects``."""

    name = "claude-code"
    instance = "claude-code"

    def detect(self, head: str) -> bool:
        """Its lines name a session, or the line they belong to."""
        named = has_key(head, "sessionId", "leafUuid", "parentUuid", "isSnapshotUpdate")
        return is_json(head) and named and has_key(head, "type")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Message by message; the lines of one reply are one message.

        What the program itself put among them (notices, summaries, progress) is passed over.
        """
        session = _Session(file.stem, _titles(file))
        for found in entries(file):
            if isinstance(found, Skipped):
                yield found
                continue
            place, line = found
            if line.get("type") not in _SAID:
                if not isinstance(line.get("type"), str):
                    yield Skipped(place, "no type")
                continue
            yield from session.read(place, line)
        yield from session.end()


@dataclass
class _Session:
    """Lines as they come in. A reply is held until a line that does not belong to it."""

    stem: str
    titles: dict[str, str]
    threads: dict[str, Thread] = field(default_factory=dict)
    identities: SourceIds = field(default_factory=SourceIds)
    seen: set[str] = field(default_factory=set)
    held: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def read(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        if any(line.get(mark) is True for mark in _NOT_SAID):
            return
        identity = text(line.get("uuid"))
        if identity in self.seen:  # a session that was taken up again repeats its lines
            return
        if identity:
            self.seen.add(identity)
        if self.held and not _same_reply(self.held[-1][1], line):
            yield from self.end()
        self.held.append((place, line))

    def end(self) -> Iterator[Record | Skipped]:
        """Return the messages of the lines that were held."""
        held, self.held = self.held, []
        if not held:
            return
        place, line = held[0]
        try:
            content = _content(line)
            for _, further in held[1:]:
                content += _content(further)
            role, own = str(line["type"]), text(line.get("uuid"))
            made = blocks.messages(role, content, moment(line.get("timestamp")), own or "")
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        thread = self._thread(line)
        for number, each in enumerate(made, 1):
            numbered = own if number == 1 else f"{own}#{number}"
            source_id = (own and numbered) or self.identities.new(id(thread), each)
            yield thread.record(each, source_id)

    def _thread(self, line: dict[str, Any]) -> Thread:
        """Return the conversation of a line, a session or its sub-agent, with the model."""
        session = text(line.get("sessionId")) or self.stem
        key, title = session, self.titles.get(session)
        if line.get("isSidechain") is True:
            key, title = f"{session}/{text(line.get('agentId')) or 'sidechain'}", None
        if key not in self.threads:
            made = Thread(ClaudeCode.name, Conversation(key, title, ClaudeCode.name))
            self.threads[key] = made
            self.identities.follow(id(made), key)
        thread = self.threads[key]
        about = thread.conversation or Conversation(key, title, ClaudeCode.name)
        model = text(obj(line.get("message")).get("model"))
        thread.conversation = replace(
            about,
            model=model if model and model != _SYNTHETIC else about.model,
            project=about.project or folder_name(line.get("cwd")),
            branch=branch_name(line.get("gitBranch")) or about.branch,
        )
        return thread


def _content(line: dict[str, Any]) -> list[Any]:
    """Return the blocks of a line, without what the program put into them."""
    message = line.get("message")
    if not isinstance(message, dict):
        raise ValueError("not a message")
    content = message.get("content")
    if content is None or message.get("model") == _SYNTHETIC:
        return []
    if not isinstance(content, str | list):
        raise ValueError("content is neither a text nor a list of blocks")
    blocks = [content] if isinstance(content, str) else list(content)
    if line.get("type") != "user":
        return blocks
    return [said for said in map(_said, blocks) if said != ""]


def _said(block: Any) -> Any:
    """Return a block of a user's line without plumbing; empty if there is nothing else."""
    if isinstance(block, str):
        return without_plumbing(block)
    kind = obj(block).get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return without_plumbing(block["text"])
    if kind == "tool_result":
        return block | {"content": _answered(block.get("content"))}
    return block


def _answered(content: Any) -> Any:
    """Return the content of a tool's result without reminders."""
    if isinstance(content, str):
        return without_reminders(content)
    if not isinstance(content, list):
        return content
    return [
        part | {"text": without_reminders(part["text"])}
        if isinstance(obj(part).get("text"), str)
        else part
        for part in content
    ]


def _titles(file: File) -> dict[str, str]:
    """Return the titles of a file's sessions; they may come after their sessions.

    A summary names the line it ends with. One of another file is no title here, unless it is the
    only one and stands alone at the beginning.
    """
    sessions: dict[str, str] = {}
    known: dict[str, dict[str, str]] = {kind: {} for kind in _TITLES}
    summaries: dict[str, str] = {}
    with suppress(Unreadable, OSError):
        for _, line in (entry for entry in entries(file) if not isinstance(entry, Skipped)):
            kind, session = text(line.get("type")), text(line.get("sessionId")) or file.stem
            if own := text(line.get("uuid")):
                sessions[own] = session
            if kind in _TITLES and (title := text(line.get(_TITLES[kind]))):
                if kind == "summary":
                    summaries[text(line.get("leafUuid")) or ""] = title
                else:
                    known[kind][session] = title
    first = next(iter(sessions.values()), file.stem)
    for leaf, title in summaries.items():
        if leaf in sessions or len(summaries) == 1:
            known["summary"][sessions.get(leaf, first)] = title
    return known["summary"] | known["ai-title"] | known["custom-title"]


def _same_reply(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two lines are parts of one reply: both ids are there, and equal."""
    keys = [
        (text(obj(each.get("message")).get("id")), text(each.get("requestId")))
        for each in (one, other)
    ]
    return one.get("type") == other.get("type") and keys[0] == keys[1] and None not in keys[0]
