"""Claude Code's sessions: a line for each part of a message, and for much that is none."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reservoir_cli.messages import Conversation
from reservoir_cli.transfer.importers import File, Record, Skipped, blocks, has_key, is_json
from reservoir_cli.transfer.importers.coerce import moment, obj, text
from reservoir_cli.transfer.importers.conversations import SourceIds, Thread
from reservoir_cli.transfer.importers.json_stream import entries

_SAID = ("user", "assistant")


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
        session = _Session(file.stem)
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
    threads: dict[str, Thread] = field(default_factory=dict)
    identities: SourceIds = field(default_factory=SourceIds)
    seen: set[str] = field(default_factory=set)
    held: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def read(self, place: str, line: dict[str, Any]) -> Iterator[Record | Skipped]:
        if line.get("isMeta") is True or line.get("isCompactSummary") is True:
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
        """The messages of the lines that were held."""
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
        """The session, or the helper of it that the line is from; and the model that speaks."""
        key = text(line.get("sessionId")) or self.stem
        if line.get("isSidechain") is True:
            key += "/" + (text(line.get("agentId")) or "sidechain")
        if key not in self.threads:
            made = Thread(ClaudeCode.name, Conversation(key, source=ClaudeCode.name))
            self.threads[key] = made
            self.identities.follow(id(made), key)
        model = text(obj(line.get("message")).get("model"))
        if model and not model.startswith("<"):  # "<synthetic>" is the program itself
            self.threads[key].conversation = Conversation(key, None, ClaudeCode.name, model)
        return self.threads[key]


def _content(line: dict[str, Any]) -> list[Any]:
    message = line.get("message")
    if not isinstance(message, dict):
        raise ValueError("not a message")
    content = message.get("content")
    if content is None:
        return []
    if not isinstance(content, str | list):
        raise ValueError("content is neither a text nor a list of blocks")
    return [content] if isinstance(content, str) else list(content)


def _same_reply(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two lines are parts of one reply: both ids are there, and equal."""
    keys = [
        (text(obj(each.get("message")).get("id")), text(each.get("requestId")))
        for each in (one, other)
    ]
    return one.get("type") == other.get("type") and keys[0] == keys[1] and None not in keys[0]
