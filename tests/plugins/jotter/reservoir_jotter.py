"""Read the chats of Jotter: a file a chat, a line a note, the first line about the chat."""

from pathlib import Path

from reservoir_cli.plugins import Place, Transcript, TranscriptImporter, Turn

ROLES = {"me": "user", "bot": "assistant"}


class Chat(Transcript):
    source = "jotter"

    def turns(self, line):
        if "jotter" in line:
            self.describe(identity=line["chat"], title=line.get("about"), folder=line.get("dir"))
            return []
        if line.get("who") not in ROLES:
            raise ValueError("nobody said it")
        source_id = f"{self.thread.conversation.id}/{line.get('nr')}"
        return [Turn(ROLES[line["who"]], line.get("said"), source_id, line.get("when"))]


class Jotter(TranscriptImporter):
    name = "jotter"
    title = "Jotter"
    instance = "jotter"
    transcript = Chat

    def detect(self, head):
        return head.has_all("jotter", "chat", depth=1)

    def places(self):
        yield Place(Path.home() / ".jotter" / "chats", (".jsonl",))
