"""Import the log of the ``llm`` command line: a SQLite file, opened read-only.

A file may contain two generations of tables. The older one has a row for each prompt and its
response. The newer one has content-addressed messages, each with the hash of the previous one, so
that conversations share their beginnings; a turn names the last message of its conversation at
that time.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Message, ToolCall
from reservoir_cli.transfer.reading.checkpoints import State, restoring
from reservoir_cli.transfer.reading.content_blocks import file_block, part_text, thought
from reservoir_cli.transfer.reading.decompressed_file import File
from reservoir_cli.transfer.reading.foreign_databases import ToolDatabase, read_database
from reservoir_cli.transfer.reading.foreign_values import call, obj, objects, parse_json, text
from reservoir_cli.transfer.reading.importer import (
    Checkpoint,
    Importer,
    Place,
    Record,
    Skipped,
    Thread,
)
from reservoir_cli.transfer.reading.platform_folders import app_dir
from reservoir_cli.transfer.reading.times import moment
from reservoir_cli.util.read_files import LARGEST

#: SQL expression for the conversation of a row in the older tables.
_CONVERSATION = "coalesce(conversation_id, id)"
_OVERLAP = timedelta(days=1)  #: The longest time between a prompt and the end of its response.
_ROLES = ("user", "assistant", "system", "tool")
_TABLES = {"responses", "turns"}  #: Every log has one of these tables.
#: The columns to read of each table; older logs lack some of them.
_COLUMNS = {
    "responses": "id conversation_id model datetime_utc system prompt response reasoning",
    "conversations": "id name",
    "tool_calls": "id response_id tool_call_id name arguments",
    "tool_results": "id response_id tool_call_id name output",
    "prompt_attachments": "attachment_id",
    "prompt_fragments": "fragment_id",
    "system_fragments": "fragment_id",
    "fragments": "id content",
    "attachments": "id type path url",
    "turns": "id thread_id tip_message_hash model datetime_utc",
    "threads": "id name",
    "messages": "hash parent_hash role",
    "parts": "type tool_name text payload",
}


class Llm(Importer):
    """Reads ``logs.db``."""

    name = "llm"
    title = "llm"
    tables = (frozenset({"responses.prompt"}), frozenset({"turns.tip_message_hash"}))
    instance = "llm"

    def places(self) -> Iterator[Place]:
        folder = os.environ.get("LLM_USER_PATH")
        yield Place((Path(folder) if folder else app_dir("io.datasette.llm")) / "logs.db", (".db",))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        return read_database(
            file, _COLUMNS, lambda database: self._log(database, file.name).read_all()
        )

    def resume(self, file: File, start: Checkpoint) -> Iterator[Record | Skipped | Checkpoint]:
        """Yield the messages since a day before the checkpoint.

        A prompt has the time when it was sent, and is written when its response is complete.
        """

        def read(database: ToolDatabase) -> Iterator[Record | Skipped | Checkpoint]:
            log = self._log(database, file.name)
            end = log.checkpoint_state()
            with restoring():
                if start.state and start.state["first"] == end["first"]:
                    log.since = str(start.state["since"])
            for item in log.read_all():
                yield item
                yield Checkpoint(state=start.state)
            yield Checkpoint(state=end, last=True)

        return read_database(file, _COLUMNS, read)

    def _log(self, database: ToolDatabase, name: str) -> "_Log":
        tables = database.tables
        if not tables & _TABLES:
            if "context_runs" in tables:
                raise ReservoirError(
                    f"{name} is a store of Reservoir",
                    hint=f"reservoir --db {shlex.quote(name)} export --all-partitions"
                    " | reservoir ingest - --format reservoir",
                )
            raise ReservoirError(
                f"{name} is a database, but not a log of llm",
                hint="llm logs path prints the path of the log",
            )
        reason = f"{name} is not a log as llm writes it"
        database.refuse_computed(reason, "llm logs path prints the path of llm's own log")
        return _Log(database)


@dataclass
class _Log:
    database: ToolDatabase
    fragment_size: int = 0  #: Characters that fragments added to the message being read.
    threads: dict[str, Thread] = field(default_factory=dict)
    system_prompts: dict[str, str] = field(default_factory=dict)
    older_ids: set[str] = field(default_factory=set)  #: Conversations in the older tables.
    seen_hashes: set[str] = field(default_factory=set)  #: Of messages read in any conversation.
    thread_hashes: dict[str, set[str]] = field(default_factory=dict)  #: By conversation.
    #: By table and response.
    row_ids: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    since: str = ""  #: ISO 8601; earlier messages were read before.

    @property
    def tables(self) -> set[str]:
        return self.database.tables

    def _rows_of_response(self, table: str, identity: str) -> list[dict[str, Any]]:
        """Return the rows of a response; the table has no index on responses."""
        if table not in self.row_ids:
            row_ids: dict[str, list[Any]] = {}
            if table in self.tables:
                query = f"SELECT response_id, id FROM [{table}] ORDER BY id"
                for owner, number in self.database.connection.execute(query):
                    row_ids.setdefault(owner, []).append(number)
            self.row_ids[table] = row_ids
        numbers = self.row_ids[table].get(identity, [])
        return [self.database.one(table, "id", number) for number in numbers]

    def _thread(self, key: str, table: str, model: str | None) -> Thread:
        if key not in self.threads:
            title = self.database.one(table, "id", key).get("name")
            self.threads[key] = Thread("llm", key, title=title, model=model)
        return self.threads[key]

    def read_all(self) -> Iterator[Record | Skipped]:
        if "responses" in self.tables:
            yield from self.read_responses()
        if "turns" in self.tables:
            yield from self.read_turns()

    def checkpoint_state(self) -> State:
        """Return the state of a checkpoint: the log's first id, and the time to read on from."""
        first, newest = None, ""
        for table in sorted(_TABLES & self.tables):
            row = self.database.connection.execute(
                f"SELECT min(rowid), max(datetime_utc) FROM [{table}]"
            ).fetchone()
            first = first or text(self.database.one(table, "rowid", row[0]).get("id"))
            newest = max(newest, row[1] if isinstance(row[1], str) else "")
        time = moment(newest)
        return {"first": first, "since": (time - _OVERLAP).isoformat() if time else ""}

    # The older generation

    def read_responses(self) -> Iterator[Record | Skipped]:
        newer = "SELECT id FROM turns WHERE id NOT NULL" if "turns" in self.tables else ""
        changed = ""
        if self.since and self.database.has("responses", "conversation_id"):
            query = f"SELECT DISTINCT {_CONVERSATION} FROM responses"
            keys = self.database.connection.execute(query)
            self.older_ids.update(filter(None, (text(key) for (key,) in keys)))
            # Read whole conversations: the system prompt may be in an earlier row.
            changed = (
                f"AND {_CONVERSATION} IN (SELECT {_CONVERSATION} FROM responses "
                "WHERE datetime_utc IS NULL OR datetime_utc >= ?)"
            )
        # Sort row ids only: a sort of whole rows could spill them into a temporary file.
        for (number,) in self.database.connection.execute(
            "SELECT rowid FROM responses "
            f"WHERE coalesce(id, '') NOT IN ({newer}) {changed} ORDER BY datetime_utc, rowid",
            [self.since] if changed else [],
        ):
            yield from Skipped.if_invalid(f"response {number}", self._read_response(number))

    def _read_response(self, number: int) -> Iterator[Record]:
        self.fragment_size = 0
        response = self.database.one("responses", "rowid", number)
        identity = text(response.get("id"))
        if identity is None:
            raise ValueError("no id")
        key = text(response.get("conversation_id")) or identity
        thread = self._thread(key, "conversations", text(response.get("model")))
        messages = list(self._row_messages(response, identity, thread))
        self.older_ids.add(thread.conversation.id)
        for part, message in messages:
            yield thread.record(message, f"{identity}:{part}")

    def _row_messages(
        self, response: dict[str, Any], identity: str, thread: Thread
    ) -> Iterator[tuple[str, Message]]:
        """Yield the messages of a row, with the last part of their ids."""
        time = moment(response.get("datetime_utc"))
        system = self._add_fragments("system_fragments", identity, response.get("system"))
        conversation_id = thread.conversation.id
        # Each row repeats the system prompt of its conversation.
        if system.strip() and self.system_prompts.get(conversation_id) != system:
            self.system_prompts[conversation_id] = system
            yield "system", Message("system", system, time)
        prompt = self._add_fragments("prompt_fragments", identity, response.get("prompt"))
        attachments = self.database.rows("prompt_attachments", "response_id", identity, "order")
        markers = [self._marker(row.get("attachment_id")) for row in attachments]
        results = self._rows_of_response("tool_results", identity)
        for row in results:
            # Attachments that tools return belong to the empty prompt with their results.
            returned = markers if row is results[-1] and not prompt.strip() else []
            yield f"result {row['id']}", _tool_result(row, time, returned)
        if prompt.strip() or not results:
            prompt = "\n".join([*markers, *filter(str.strip, [prompt])])
        if prompt.strip():
            yield "prompt", Message("user", prompt, time)
        reply, calls = _string(response.get("response")), self._calls(identity)
        if reply.strip() or calls:
            yield "response", Message("assistant", reply, time, tool_calls=calls)
        if thinking := _string(response.get("reasoning")).strip():
            yield "thinking", thought(thinking, time)

    def _calls(self, identity: str) -> tuple[ToolCall, ...]:
        return tuple(
            call(row.get("tool_call_id"), row.get("name"), row.get("arguments"))
            for row in self._rows_of_response("tool_calls", identity)
        )

    def _add_fragments(self, table: str, identity: str, prompt: Any) -> str:
        texts = [
            self._fragment(row.get("fragment_id"))
            for row in self.database.rows(table, "response_id", identity, "order")
        ]
        return "\n".join([*texts, *filter(None, [_string(prompt)])])

    def _fragment(self, identity: Any) -> str:
        content = _string(self.database.one("fragments", "id", identity).get("content"))
        self.fragment_size += len(content)
        if self.fragment_size > LARGEST:
            raise ValueError(f"larger than {LARGEST >> 20} MB")
        return content

    def _marker(self, identity: Any) -> str:
        attachment = self.database.one("attachments", "id", identity)
        location = text(attachment.get("path")) or text(attachment.get("url"))
        name = location.replace("\\", "/").rsplit("/", 1)[-1] if location else None
        return part_text(file_block(attachment.get("type"), name))

    # The newer generation

    def read_turns(self) -> Iterator[Record | Skipped]:
        """Yield the messages of the newer tables, each with the time of its first turn."""
        query = "SELECT rowid FROM turns ORDER BY datetime_utc, id"
        for number, (row,) in enumerate(self.database.connection.execute(query), 1):
            turn = self.database.one("turns", "rowid", row)
            place = f"turn {number}"
            key = text(turn.get("thread_id")) or text(turn.get("id"))
            if key is None:
                yield Skipped(place, "no id")
                continue
            model, time = text(turn.get("model")), moment(turn.get("datetime_utc"))
            thread = self._thread(key, "threads", model)
            new_rows = self._new_rows(key, turn.get("tip_message_hash"))
            if str(turn.get("datetime_utc") or "~") < self.since:  # imported before
                continue
            for message_row, following in pairwise([*new_rows, {}]):
                if self._attachment_markers(message_row):  # they belong to the result before
                    continue
                markers = self._attachment_markers(following)
                self.fragment_size = 0
                identity = message_row["hash"]
                read = partial(self._convert_row, message_row, time, markers)
                yield from thread.convert(f"{place}, message {identity}", f"{key}:{identity}", read)

    def _new_rows(self, key: str, tip: Any) -> list[dict[str, Any]]:
        """Return the messages that a turn adds to its conversation, oldest first.

        Messages of another conversation or of the older tables are not repeated, except a question
        that is answered here again.
        """
        conversation_hashes = self.thread_hashes.setdefault(key, set())
        is_known = not conversation_hashes and key in self.older_ids
        chain: list[dict[str, Any]] = []
        has_question = False
        while isinstance(tip, str) and tip not in conversation_hashes:
            row = self.database.one("messages", "hash", tip)
            is_repeated = is_known or tip in self.seen_hashes
            if not row or (has_question and is_repeated and row.get("role") != "system"):
                break
            conversation_hashes.add(tip)
            self.seen_hashes.add(tip)
            chain.append(row)
            has_question = has_question or (
                row.get("role") == "user" and not self._attachment_markers(row)
            )
            tip = row.get("parent_hash")
        return chain[::-1]

    def _attachment_markers(self, row: dict[str, Any]) -> list[str]:
        """Return markers of a tool's attachments, if a user message has nothing else."""
        before = self.database.one("messages", "hash", row.get("parent_hash"))
        if row.get("role") != "user" or before.get("role") != "tool":
            return []
        parts = self.database.rows("parts", "message_hash", row["hash"], "position")
        if any(part.get("type") != "attachment" for part in parts):
            return []
        return [self._marker(_attachment_id(_payload(part.get("payload")))) for part in parts]

    def _convert_row(
        self, row: dict[str, Any], time: datetime | None, markers: Sequence[str]
    ) -> list[Message]:
        """Convert a row into messages: results with their markers, the text, and the thinking."""
        role = row.get("role")
        if role not in _ROLES:
            raise ValueError("unknown role")
        texts, calls, results, thoughts = [], [], [], []
        for part in self.database.rows("parts", "message_hash", row["hash"], "position"):
            payload = _payload(part.get("payload"))
            match part.get("type"):
                case "reasoning":
                    thoughts.append(self._text(part, payload))
                case "tool_call":
                    name = payload.get("name") or part.get("tool_name")
                    tool_call = call(payload.get("tool_call_id"), name, payload.get("arguments"))
                    calls.append(tool_call)
                case "tool_result":
                    results.append({"name": part.get("tool_name"), **payload})
                case "attachment":
                    texts.append(self._marker(_attachment_id(payload)))
                case _:
                    texts.append(self._text(part, payload))
        content = "\n".join(filter(None, texts))
        messages = [
            _tool_result(result, time, markers if result is results[-1] else ())
            for result in results
        ]
        if content.strip() or calls:
            messages.append(Message(str(role), content, time, tool_calls=tuple(calls)))
        if thinking := "\n".join(filter(str.strip, thoughts)):
            messages.append(thought(thinking, time))
        return messages

    def _text(self, part: dict[str, Any], payload: dict[str, Any]) -> str:
        content = part.get("text")
        if isinstance(content, str):
            return content
        if isinstance(payload.get("text"), str):
            return str(payload["text"])
        pieces: Iterable[dict[str, Any]] = objects(payload.get("text_ref"))
        return "".join(
            _string(piece.get("literal")) or self._fragment(piece.get("fragment"))
            for piece in pieces
        )


def _payload(value: Any) -> dict[str, Any]:
    return obj(parse_json(value))


def _attachment_id(payload: dict[str, Any]) -> Any:
    return obj(payload.get("attachment")).get("id")


def _tool_result(row: dict[str, Any], time: datetime | None, markers: Sequence[str]) -> Message:
    call_id, name = text(row.get("tool_call_id")), text(row.get("name"))
    content = "\n".join([*filter(None, [_string(row.get("output"))]), *markers])
    return Message("tool", content, time, name=name, tool_call_id=call_id)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
