"""Import threads of Amp: documents with a list of messages in Anthropic's blocks."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, require_list, text, uri_path
from reservoir_cli.transfer.reading.importer import Place
from reservoir_cli.transfer.reading.platform_folders import editor_user_dirs, tool_dir, xdg_data_dir
from reservoir_cli.transfer.reading.transcripts import Transcript, TranscriptImporter, Turn


class _AmpThread(Transcript):
    source = "amp"

    def turns(self, value: dict[str, Any]) -> Iterator[Turn]:
        messages = require_list(value.get("messages"))
        trees = objects(obj(obj(value.get("env")).get("initial")).get("trees"))
        folder = uri_path(trees[0].get("uri")) if trees else None
        self.describe(identity=value.get("id"), title=value.get("title"), folder=folder)
        time = value.get("created")
        for message in messages:
            fields, usage = obj(message), obj(obj(message).get("usage"))
            time = obj(fields.get("meta")).get("sentAt") or usage.get("timestamp") or time
            number, role = fields.get("messageId"), str(fields.get("role"))
            number = number if type(number) is int else text(number)
            identity = f"{self.thread.conversation.id}:{number}" if number is not None else None
            yield Turn(role, fields.get("content"), identity, time, text(usage.get("model")))


class Amp(TranscriptImporter):
    """Reads ``T-*.json`` in the folder ``threads``."""

    name = "amp"
    title = "Amp"
    instance = "amp"
    transcript = _AmpThread

    def detect(self, head: Head) -> bool:
        is_thread = head.has_all("id", "messages", depth=1)
        is_numbered = '"T-' in head.text or head.has("messageId")
        return is_thread and is_numbered and head.has("created", "v", "agentMode", "env", depth=1)

    def places(self) -> Iterator[Place]:
        data = tool_dir("AMP_HOME", xdg_data_dir() / "amp")
        yield Place(data / "threads", (".json",))
        for user_dir in editor_user_dirs():
            yield Place(user_dir / "globalStorage" / "sourcegraph.amp" / "threads3", (".json",))
