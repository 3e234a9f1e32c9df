"""Import tasks of Cline and its descendants Roo Code and Kilo Code.

A task is a list of messages in the shape of Anthropic's API. Older versions write tool calls as
tags in the text of a reply, and their results as text of the user.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from reservoir_cli.messages import Conversation, Message, clean_text
from reservoir_cli.transfer.importers import content_blocks
from reservoir_cli.transfer.importers.base import Record, Skipped, has_key
from reservoir_cli.transfer.importers.claude_code_notices import opening_tags, split_tags
from reservoir_cli.transfer.importers.coerce import folder_name, moment_ms, obj, objects, text
from reservoir_cli.transfer.importers.content_blocks import content_text, part_text
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import entries
from reservoir_cli.util.read_files import open_regular

_HISTORY = "api_conversation_history.json"
_LARGEST_BESIDE = 4 << 20
#: A text that begins in a way typical of these tools.
_MARK = re.compile(r'"(?:text|content)"\s*:\s*"\s*<(?:task|environment_details|user_message)>')
#: Tags around the user's words, and around what the program adds to them.
_WORDS = ("task", "user_message", "feedback", "answer")
_ADDED = ("environment_details", "hook_context", "explicit_instructions")
_USER_TAGS = opening_tags((*_WORDS, *_ADDED))
_NOTICES = ("[TASK RESUMPTION]", "[ERROR] You did not use a tool", "(The user did not provide")
#: The beginning of a tool's result that is written as text of the user.
_RESULT = re.compile(r"\[(\w{1,64})\b.{0,4000}?\] Result:\s*", re.S)
#: Beginnings of texts that do not continue a result.
_OWN = re.compile(
    rf"<(?:{'|'.join((*_WORDS, *_ADDED))})[ >]|\[TASK RESUMPTION\]|New (?:instr|mess)"
)
_DENIED = "The user denied this operation"
#: Tools that show a text to the user, and the parameter with the text.
_SPEAKING = {
    "attempt_completion": "result",
    "ask_followup_question": "question",
    "plan_mode_respond": "response",
}
_TOOLS = (
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace search_files list_files list_code_definition_names codebase_search "
    "browser_action use_mcp_tool access_mcp_resource new_task switch_mode fetch_instructions "
    "load_mcp_documentation update_todo_list web_fetch edit_file"
).split()
_REPLY_TAGS = opening_tags((*_TOOLS, *_SPEAKING, "thinking"))
_MOST_PARAMETERS = 50
_PARAMETER = re.compile(r"<(\w{1,64})>")
#: Fields of the description of the environment.
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.{1,4096}?)\) Files")
_MODEL = re.compile(r"<model>([^<\n]{1,200})</model>")
_UTC = re.compile(r"ISO 8601 UTC format: (\S{1,40})")
_LOCAL = re.compile(
    r"# Current Time\s+(\d{1,2}/\d{1,2}/\d{4}, \d{1,2}:\d\d:\d\d\s[AP]M) "
    r"\([^()\n]{0,64}UTC([+-])(\d{1,2})(?::(\d\d))?\)"
)


class Cline:
    """Reads ``api_conversation_history.json`` and the files beside it."""

    name = "cline"
    instance = "cline"

    def detect(self, head: str) -> bool:
        """Recognise a list of messages with a text that begins in a typical way."""
        return head.lstrip()[:1] == "[" and has_key(head, "role") and bool(_MARK.search(head))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield the messages in order; skip environments, notices and summaries."""
        task = _Task(_about(file))
        for found in entries(file):
            if isinstance(found, Skipped):
                yield found
                continue
            place, value = found
            try:
                made = task.messages(value)
            except ValueError as error:
                yield Skipped(place, str(error))
                continue
            for message in made:
                yield task.record(message)


def _about(file: File) -> Conversation | None:
    """Return a task's id, model and project, from its folder and the files in it."""
    place = PurePath(file.name.replace("\\", "/"))
    if place.name != _HISTORY or not place.parent.name:
        return None
    used = objects(_beside(file, "task_metadata.json").get("model_usage"))
    models = [model for usage in used if (model := text(usage.get("model_id")))]
    return Conversation(
        clean_text(place.parent.name),
        source=Cline.name,
        model=models[-1] if models else None,
        project=folder_name(_beside(file, "history_item.json").get("workspace")),
    )


def _beside(file: File, name: str) -> dict[str, Any]:
    """Return the JSON object in a small file beside a task; an empty one if it is unreadable."""
    path = file.path.with_name(name) if file.path else None
    if path is None or path.is_symlink():
        return {}
    with suppress(OSError, ValueError, RecursionError), open_regular(path) as stream:
        return obj(json.loads(stream.read(_LARGEST_BESIDE)))
    return {}


@dataclass
class _Task:
    """A task while it is read.

    :param spoken: ids of calls that showed a text to the user.
    :param pending: names and ids of calls in text that have no result yet.
    :param called: how often each call in text occurred, by its digest.
    """

    about: Conversation | None
    identities: SourceIds = field(default_factory=SourceIds)
    spoken: set[str] = field(default_factory=set)
    pending: list[tuple[str, str]] = field(default_factory=list)
    called: dict[str, int] = field(default_factory=dict)
    time: datetime | None = None

    def __post_init__(self) -> None:
        self.thread = Thread(Cline.name, self.about)
        if self.about:
            self.identities.follow("", self.about.id)
            # Cline names a task after the millisecond in which it began.
            if re.fullmatch(r"[0-9]{13}", self.about.id):
                self.time = moment_ms(int(self.about.id))

    def record(self, message: Message) -> Record:
        """Return the record of the next message."""
        made = self.thread.record(message, self.identities.new("", message))
        about = made.conversation
        if about and self.about:
            about = replace(about, model=self.about.model, project=self.about.project)
            self.thread.conversation = about
        return replace(made, conversation=about)

    def messages(self, value: dict[str, Any]) -> list[Message]:
        """Return the messages of an entry.

        :raises ValueError: the entry cannot be read.
        """
        if any(value.get(mark) is True for mark in ("isSummary", "isTruncationMarker")):
            return []
        role, content = value.get("role"), value.get("content")
        if role not in ("user", "assistant"):
            if "role" not in value and value.get("type") == "reasoning":
                return []
            raise ValueError("unknown role")
        if isinstance(content, str):
            content = [content]
        if not isinstance(content, list):
            raise ValueError("content is neither a text nor a list of blocks")
        self._learn(model=text(obj(value.get("modelInfo")).get("modelId")))
        said = self._user(content) if role == "user" else self._reply(content)
        self.time = moment_ms(value.get("ts")) or self.time
        return [replace(message, created_at=self.time) for message in said]

    def _learn(self, model: str | None = None, project: str | None = None) -> None:
        if self.about is None:
            self.about = Conversation("", source=Cline.name)
        self.about = replace(
            self.about, model=model or self.about.model, project=self.about.project or project
        )

    # Entries of the user, which also contain the program's text

    def _user(self, content: list[Any]) -> list[Message]:
        said: list[Message] = []
        for block in content:
            if obj(block).get("type") == "tool_result":
                said += self._result(block)
            elif block is not None:
                self._text(part_text(block), said)
        return [message for message in said if message.role == "tool" or message.content.strip()]

    def _result(self, block: dict[str, Any]) -> list[Message]:
        answered, content = text(block.get("tool_use_id")), content_text(block.get("content"))
        if answered in self.spoken:
            return self._parted(content)[1]
        return self._answer(Message("tool", content, tool_call_id=answered))

    def _answer(self, result: Message) -> list[Message]:
        """Return a result, followed by the user's words if the user denied the call.

        The output of a tool may contain any tags; only a denial has the user's words in tags.
        """
        if not result.content.startswith(_DENIED):
            return [result]
        outside, words = self._parted(result.content)
        return [replace(result, content=outside), *words]

    def _text(self, content: str, said: list[Message]) -> None:
        """Add a text to the messages: the user's words, or a part of a tool's result."""
        mark = _RESULT.match(content)
        if mark and mark[1] not in _SPEAKING:
            result = Message("tool", content[mark.end() :].strip(), name=mark[1])
            said += self._answer(replace(result, tool_call_id=self._call(mark[1])))
        elif said and _goes_on(said[-1], content):
            result = said.pop()
            whole = "\n".join(filter(None, (result.content, content.strip())))
            said += self._answer(replace(result, content=whole))
        else:
            said += self._spoken(content, mark is not None or content.startswith(_NOTICES))

    def _spoken(self, content: str, notice: bool) -> list[Message]:
        """Return the user's words in a text: those in tags, or all of it without tags.

        :param notice: the text outside tags is the program's.
        """
        outside, words = self._parted(content)
        if words and outside.startswith("<"):  # files that the user mentions
            words[-1] = replace(words[-1], content=f"{words[-1].content}\n{outside}")
        return words if words or notice else [Message("user", outside)]

    def _call(self, name: str) -> str | None:
        """Return the id of the first pending call of a tool, which is no longer pending."""
        found = next((call for call in self.pending if call[0] == name), None)
        if found is None:
            return None
        self.pending.remove(found)
        return found[1]

    def _parted(self, content: str) -> tuple[str, list[Message]]:
        """Split a text into the text outside tags, and the user's words as messages."""
        outside, words = [], []
        for tag, part in split_tags(content, _USER_TAGS):
            if tag == "environment_details":
                self._surroundings(part)
            elif tag in _WORDS:
                words.append(Message("user", part.strip()))
            elif tag is None:
                outside.append(part)
        return "".join(outside).strip(), [word for word in words if word.content]

    def _surroundings(self, details: str) -> None:
        folder, model = _FOLDER.search(details), _MODEL.search(details)
        self._learn(text(model[1]) if model else None, folder_name(folder[1]) if folder else None)
        self.time = _current_time(details) or self.time

    # Entries of the model

    def _reply(self, content: list[Any]) -> list[Message]:
        told: list[Any] = []
        for block in content:
            kind = obj(block).get("type")
            if kind == "tool_use":
                told.append(self._used(block))
            elif isinstance(block, str) or kind == "text":
                told += self._opened(part_text(block).strip())
            elif block is not None:
                told.append(block)
        return content_blocks.messages("assistant", told, None)

    def _used(self, block: dict[str, Any]) -> dict[str, Any]:
        """Return a call unchanged, or as text if it shows a text to the user."""
        words = text(obj(block.get("input")).get(_SPEAKING.get(str(block.get("name")), "")))
        if words is None:
            return block
        self.spoken.add(str(block.get("id")))
        return {"type": "text", "text": words}

    def _opened(self, content: str) -> Iterator[dict[str, Any]]:
        """Yield the blocks of a text: its words, thinking, and calls of tools written as tags."""
        for tag, part in split_tags(content, _REPLY_TAGS):
            if tag == "thinking":
                yield {"type": "thinking", "thinking": part.strip()}
            elif tag is None:
                if part.strip():
                    yield {"type": "text", "text": part.strip()}
            else:
                parameters = _parameters(part)
                if words := text(parameters.get(_SPEAKING.get(tag, ""))):
                    yield {"type": "text", "text": words}
                elif tag not in _SPEAKING:
                    yield self._called(tag, parameters)

    def _called(self, name: str, parameters: dict[str, str]) -> dict[str, Any]:
        """Return a call in text as a block, with an id derived from its content."""
        arguments = json.dumps(parameters, ensure_ascii=False)
        digest = hashlib.sha256(f"{name} {arguments}".encode("utf-8", "replace")).hexdigest()[:24]
        self.called[digest] = self.called.get(digest, 0) + 1
        identity = f"call_{digest}_{self.called[digest]}"
        self.pending.append((name, identity))
        return {"type": "tool_use", "id": identity, "name": name, "input": parameters}


def _goes_on(result: Message, content: str) -> bool:
    """Return whether a text continues the result before it.

    The first text after the heading of a result does, unless it describes the environment.
    """
    if result.role != "tool" or result.name is None:
        return False
    if not result.content:
        return not content.startswith("<environment_details>")
    return _OWN.match(content) is None


def _parameters(part: str) -> dict[str, str]:
    """Return the parameters in the tag of a tool; a value extends to its last closing tag."""
    found: dict[str, str] = {}
    done = 0
    for _ in range(_MOST_PARAMETERS):
        match = _PARAMETER.search(part, done)
        if match is None:
            break
        end = part.rfind(f"</{match[1]}>", match.end())
        if end < 0 or match[1] in found:
            done = match.end()
            continue
        found[match[1]] = part[match.end() : end].strip("\n")
        done = end + len(match[1]) + 3
    return found


def _current_time(details: str) -> datetime | None:
    """Return the time in a description of the environment."""
    if match := _UTC.search(details):
        return moment_ms(match[1])
    if match := _LOCAL.search(details):
        with suppress(ValueError, OverflowError):
            local = datetime.strptime(" ".join(match[1].split()), "%m/%d/%Y, %I:%M:%S %p")
            offset = f"{match[2]}{int(match[3]):02}:{match[4] or '00'}"
            return moment_ms(f"{local.isoformat()}{offset}")
    return None
