"""Import threads of Zed's agent: database rows of JSON, mostly compressed with zstd."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from reservoir_cli.errors import ReservoirError
from reservoir_cli.transfer.reading import content_blocks
from reservoir_cli.transfer.reading.content_blocks import file_marker, tool_result, tool_use
from reservoir_cli.transfer.reading.decompressed_file import WINDOW_LOG, NoLibrary, load_zstd
from reservoir_cli.transfer.reading.foreign_databases import (
    DatabaseConversation,
    DatabaseImporter,
    ToolDatabase,
    size_in_bytes,
)
from reservoir_cli.transfer.reading.foreign_values import (
    folder_name,
    obj,
    objects,
    require_list,
    text,
)
from reservoir_cli.transfer.reading.importer import Place, Record, Skipped, Thread
from reservoir_cli.transfer.reading.platform_folders import app_dir, xdg_data_dir
from reservoir_cli.transfer.reading.times import moment
from reservoir_cli.util.read_files import LARGEST

_COLUMNS = {"threads": "id parent_id summary updated_at created_at folder_paths data_type data"}
#: A thread may unpack to this many times its size, or to this size if that is more. Parsed, it
#: takes many times the memory.
_RATIO, _HARMLESS = 200, 8 << 20
_NO_LIST = "content is not a list"

Decompress = Callable[[bytes], bytes]


class Zed(DatabaseImporter):
    """Reads ``threads.db``."""

    name = "zed"
    title = "Zed"
    instance = "zed"
    columns = _COLUMNS
    tables = (frozenset({"threads.data", "threads.data_type"}),)

    def places(self) -> Iterator[Place]:
        if sys.platform == "darwin":
            data = app_dir("Zed")
        elif sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            data = (Path(local) if local else Path.home() / "AppData" / "Local") / "Zed"
        else:
            data = xdg_data_dir("FLATPAK_XDG_DATA_HOME") / "zed"
        yield Place(data / "threads" / "threads.db", (".db",))

    def read_all(self, name: str, database: ToolDatabase) -> Iterator[Record | Skipped]:
        if "threads" not in database.tables:
            yield Skipped("the file", "a database, but not Zed's")
        yield from super().read_all(name, database)

    def conversations(self, database: ToolDatabase, name: str) -> Iterator[DatabaseConversation]:
        database.refuse_computed("not a database as Zed writes it")
        if "threads" not in database.tables:
            return
        compressed = database.connection.execute(
            "SELECT count(*) FROM threads WHERE data_type = 'zstd'"
        ).fetchone()[0]
        decompress = _make_decompressor() if compressed else None
        columns = f"rowid, id, updated_at, {size_in_bytes('data')}"
        query = f"SELECT {columns} FROM threads ORDER BY updated_at"
        for row in database.connection.execute(query):
            read = partial(_read_thread, database, row[0], decompress)
            yield DatabaseConversation(row[1], tuple(row), read)


def _read_thread(
    database: ToolDatabase, number: int, decompress: Decompress | None
) -> Iterator[Record | Skipped]:
    row = database.one("threads", "rowid", number)
    place = f"thread {number}"
    try:
        value = _parse_thread(database, row, decompress)
    except ValueError as error:
        yield Skipped(place, str(error))
        return
    yield from _ZedThread(row["id"], row, value).read(place)


def _parse_thread(
    database: ToolDatabase, row: dict[str, Any], decompress: Decompress | None
) -> dict[str, Any]:
    data = row.get("data")
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if not isinstance(data, bytes):
        raise ValueError("no data")
    if row.get("data_type") == "zstd" and decompress:
        data = decompress(data)
        database.spend(len(data))
    try:
        value = json.loads(data.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("not valid JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise ValueError("no list of messages")
    return value


def _make_decompressor() -> Decompress:
    try:
        zstd = load_zstd()
    except NoLibrary as error:
        raise ReservoirError(
            "threads of Zed are compressed with zstd, which this Python cannot decompress",
            hint=str(error),
        ) from None
    options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}

    def decompress(data: bytes) -> bytes:
        decompressor = zstd.ZstdDecompressor(options=options)
        limit = min(LARGEST, max(_HARMLESS, _RATIO * len(data)))
        try:
            decompressed: bytes = decompressor.decompress(data, max_length=limit + 1)
        except (zstd.ZstdError, EOFError):
            raise ValueError("damaged, or not compressed with zstd") from None
        if len(decompressed) > limit:
            raise ValueError("unpacks to far more than its size")
        return decompressed

    return decompress


@dataclass
class _ZedThread:
    identity: str
    row: dict[str, Any]
    value: dict[str, Any]
    anchor: str = ""  #: The last question's id, a prefix for messages without one.
    count: int = 0

    def __post_init__(self) -> None:
        spawned = obj(self.value.get("subagent_context"))
        self.thread = Thread(
            Zed.name,
            self.identity,
            title=text(self.row.get("summary")) or self.value.get("title"),
            model=obj(self.value.get("model")).get("model"),
            folder=self._folder(),
            parent=text(self.row.get("parent_id")) or spawned.get("parent_thread_id"),
        )
        self.end_time = moment(self.row.get("updated_at")) or moment(self.value.get("updated_at"))
        self.start_time = moment(self.row.get("created_at")) or self.end_time

    def _folder(self) -> str | None:
        paths = (text(self.row.get("folder_paths")) or "").splitlines()
        snapshot = obj(self.value.get("initial_project_snapshot"))
        worktrees = objects(snapshot.get("worktree_snapshots"))
        paths += [str(worktree.get("worktree_path") or "") for worktree in worktrees]
        return next((path for path in paths if folder_name(path)), None)

    def read(self, place: str) -> Iterator[Record | Skipped]:
        """Yield the messages: the last turn at the thread's end time, others at its start."""
        messages = self.value["messages"]
        questions = [index for index, message in enumerate(messages) if _is_question(message)]
        for index, message in enumerate(messages):
            time = self.end_time if questions and index >= questions[-1] else self.start_time
            yield from Skipped.if_invalid(
                f"{place}, message {index + 1}", self._message(message, time)
            )

    def _message(self, value: Any, time: datetime | None) -> Iterator[Record]:
        fields = obj(value)
        # A compaction summarises earlier messages, which stay in the thread.
        if value == "Resume" or "Compaction" in fields or fields.get("is_hidden") is True:
            return
        role, blocks, message_id = _content(value)
        messages = content_blocks.messages(role, blocks, time, message_id or "")
        if role == "user" and message_id:
            self.anchor, self.count = f"{self.identity}:{message_id}", 0
            source_id = self.anchor
        else:
            self.count += 1
            source_id = f"{self.anchor or self.identity}/{self.count}"
        yield from self.thread.records(source_id, messages)


def _is_question(value: Any) -> bool:
    return isinstance(value, dict) and ("User" in value or value.get("role") == "user")


def _content(value: Any) -> tuple[str, list[Any], str | None]:
    if not isinstance(value, dict):
        raise ValueError("not a message")
    if isinstance(value.get("User"), dict):
        user = value["User"]
        blocks = list(map(_part_block, require_list(user.get("content"), _NO_LIST)))
        return "user", blocks, text(user.get("id"))
    if isinstance(value.get("Agent"), dict):
        agent = value["Agent"]
        blocks = list(map(_part_block, require_list(agent.get("content"), _NO_LIST)))
        results = agent.get("tool_results")
        answers = list(results.values()) if isinstance(results, dict) else []
        return "assistant", [*blocks, *map(_result_block, objects(answers))], None
    if value.get("role") in ("user", "assistant", "system"):
        return _older_content(value)
    raise ValueError("neither from the user nor from the agent")


def _older_content(value: dict[str, Any]) -> tuple[str, list[Any], str | None]:
    """Return the same for a message in the format before thread version 0.3.0."""
    segments = objects(value.get("segments")) or [{"type": "text", "text": value.get("text")}]
    blocks: list[Any] = [part for part in segments if text(part.get("text"))]
    blocks += [{"type": "tool_use", **use} for use in objects(value.get("tool_uses"))]
    blocks += [_result_block(result) for result in objects(value.get("tool_results"))]
    message_id = value.get("id")
    return str(value["role"]), blocks, str(message_id) if isinstance(message_id, int) else None


def _part_block(part: Any) -> Any:
    """Return a part as a block; a mention becomes a marker."""
    fields = obj(part)
    if "Mention" in fields:
        name = _mention_name(obj(fields["Mention"]).get("uri"))
        return {"type": "text", "text": file_marker(name)}
    if "Thinking" in fields:
        return {"type": "thinking", "thinking": obj(fields["Thinking"]).get("text")}
    if "ToolUse" in fields:
        use = obj(fields["ToolUse"])
        return tool_use(use.get("id"), use.get("name"), use.get("input"))
    if "Image" in fields:
        return {"type": "image"}
    return {"type": "text", "text": fields["Text"]} if text(fields.get("Text")) else None


def _mention_name(uri: Any) -> str | None:
    fields = obj(next(iter(obj(uri).values()), None))
    name = folder_name(fields.get("abs_path")) or text(fields.get("name"))
    return name or text(fields.get("url"))


def _result_block(result: dict[str, Any]) -> dict[str, Any]:
    content = result.get("content")
    parts = content if isinstance(content, list) else [content]
    return tool_result(result.get("tool_use_id"), [_result_part(part) for part in parts])


def _result_part(part: Any) -> Any:
    """Return a part of a result, which Zed writes in several formats."""
    lowered = {str(key).lower(): value for key, value in obj(part).items()}
    if "text" in lowered:
        return lowered["text"]
    return {"type": "image"} if "image" in lowered or "source" in lowered else part
