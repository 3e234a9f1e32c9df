"""Import Grok's data export: conversations with their responses."""

from collections.abc import Iterator
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import obj, objects, require_list, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, SourceIds, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.message_trees import find_branch
from reservoir_cli.transfer.reading.times import seconds
from reservoir_cli.transfer.reading.transcripts import Turn, read_conversation

_PARENT = "parent_response_id"


class Grok(Importer):
    """Reads ``prod-grok-backend.json``."""

    name = "grok"
    title = "Grok"
    instance = "grok"

    def detect(self, head: Head) -> bool:
        return head.has("responses", depth=3) and head.has("conversation", "conversations")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        identities = SourceIds()

        def read(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
            listed = value.get("conversations")
            if not isinstance(listed, list):
                yield from _read_conversation(identities, place, value)
                return
            for number, entry in enumerate(listed, 1):
                where = f"{place}, conversation {number}"
                yield from Skipped.if_invalid(where, _read_conversation(identities, where, entry))

        return read_entries(file, read)


def _read_conversation(identities: SourceIds, place: str, value: Any) -> Iterator[Record | Skipped]:
    responses = require_list(obj(value).get("responses"))
    about = obj(value.get("conversation"))
    identity, title = about.get("id"), about.get("title")
    thread = Thread(Grok.name, identity, title=title, identities=identities)
    rows = [obj(row).get("response", row) for row in responses]
    yield from read_conversation(thread, place, enumerate(map(_turn, _branch(rows)), 1))


def _branch(rows: list[Any]) -> list[Any]:
    """Return the responses of the newest branch; all of them if they name no parents."""
    if not any(text(obj(row).get(_PARENT)) for row in rows):
        return rows
    nodes = {identity: row for row in objects(rows) if (identity := text(row.get("_id")))}
    return find_branch(nodes, None, _PARENT, lambda row: seconds(_time(row.get("create_time"))))


def _turn(row: Any) -> Turn | None:
    if not isinstance(row, dict):
        return None
    role = str(row.get("sender")).lower()
    thinking = {"type": "thinking", "thinking": row.get("thinking_trace")}
    content = [row.get("message") or "", thinking]
    model = text(row.get("model"))
    return Turn(role, content, text(row.get("_id")), _time(row.get("create_time")), model)


def _time(value: Any) -> Any:
    """Return a time, which MongoDB writes as nested objects."""
    date = obj(value).get("$date", value)
    return obj(date).get("$numberLong", date)
