"""Import sessions of Qwen Code: one line per message, in the parts of Gemini's API."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import branch_name, obj, require_object, text
from reservoir_cli.transfer.reading.importer import Place
from reservoir_cli.transfer.reading.json_stream import readable_objects
from reservoir_cli.transfer.reading.message_trees import LineTree
from reservoir_cli.transfer.reading.platform_folders import tool_dir
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn

_ROLES = {"user": "user", "assistant": "assistant", "tool_result": "user"}


class _Session(Transcript):
    source = "qwen-code"

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._branch = self._survey(file)

    def _survey(self, file: File) -> set[str]:
        """Return the ids of the lines up to the last one; rewound ones are on other branches."""
        tree = LineTree()
        for line in readable_objects(file):
            if identity := text(line.get("uuid")):
                is_message = text(line.get("type")) in _ROLES
                tree.add(identity, text(line.get("parentUuid")), has_message=is_message)
        return tree.branch()

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        identity, kind = text(value.get("uuid")), value.get("type")
        if not isinstance(kind, str):
            raise ValueError("no type")
        session, agent = text(value.get("sessionId")), text(value.get("agentId"))
        key = f"{session}/{agent}" if session and agent else session
        self.thread.update(
            identity=key,
            title=obj(value.get("systemPayload")).get("customTitle"),
            folder=value.get("cwd"),
            branch=branch_name(value.get("gitBranch")),
        )
        if kind not in _ROLES or (identity and identity not in self._branch):
            return
        message = require_object(value.get("message"))
        content = message.get("parts", message.get("content"))
        time, model = value.get("timestamp"), text(value.get("model"))
        yield Turn(_ROLES[kind], content, identity, time, model)


class QwenCode(TranscriptImporter):
    """Reads the files below ``~/.qwen/projects``."""

    name = "qwen-code"
    title = "Qwen Code"
    instance = "qwen-code"
    transcript = _Session

    def detect(self, head: Head) -> bool:
        return head.has_all("sessionId", "uuid", depth=1) and head.has("parts")

    def places(self) -> Iterator[Place]:
        yield Place(tool_dir("QWEN_HOME", ".qwen") / "projects")
