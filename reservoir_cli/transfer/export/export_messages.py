"""Export messages in a format, to a file or a stream; all formats but rows are written here.

Only a batch, or for some formats a conversation, is in memory at a time.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from reservoir_cli.chat.turn import Turn
from reservoir_cli.context.render.request_bodies import to_anthropic, to_openai
from reservoir_cli.errors import ReservoirError, UsageError, unknown_format
from reservoir_cli.messages import (
    ConversationName,
    Filter,
    Role,
    Scope,
    StoredMessage,
    ToolCall,
    plain_text,
)
from reservoir_cli.redaction import Redactor
from reservoir_cli.settings import paths
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.export import export_rows as rows
from reservoir_cli.transfer.export.build_turns import (
    StoredConversation,
    build_turns,
    count_quoted,
    read_conversations,
)
from reservoir_cli.transfer.reports import ExportReport
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.private_files import replace_atomically
from reservoir_cli.util.progress import Progress, no_progress
from reservoir_cli.util.read_files import open_pipe_to_write, suggest_fix

#: ``document`` is ``json`` in the envelope that every command prints with ``--json``.
_ROWS = {"jsonl": rows.write_jsonl, "json": rows.write_array, "document": rows.write_document}
_BATCH = 1 << 16  # characters written at once
#: The roles of ShareGPT's format.
_SHAREGPT_ROLES = {Role.USER.value: "human", Role.ASSISTANT.value: "gpt"}


def write_sharegpt(conversation: StoredConversation) -> str:
    """Return a line with id, title, model and entries; empty without messages."""
    about = conversation.about
    fields = {
        "id": conversation.name[2],
        "title": about.title if about else None,
        "model": about.model if about else None,
    }
    entries = list(_sharegpt_entries(build_turns(conversation)))
    row = {key: value for key, value in fields.items() if value} | {"conversations": entries}
    return json.dumps(row, ensure_ascii=False) + "\n" if entries else ""


def _sharegpt_entries(turns: list[Turn]) -> Iterator[dict[str, str]]:
    """Yield the entries of a conversation, each call right before its result."""
    for index, turn in enumerate(turns):
        if turn.role == Role.TOOL:
            continue  # written with its call
        if turn.content.strip():
            yield {"from": _SHAREGPT_ROLES.get(turn.role, "system"), "value": turn.content}
        results = turns[index + 1 : index + 1 + len(turn.tool_calls)]
        for call, result in zip(turn.tool_calls, results, strict=True):
            yield {"from": "function_call", "value": _call_json(call)}
            yield {"from": "observation", "value": result.content}


def _call_json(call: ToolCall) -> str:
    """Return a call as JSON; arguments that are not a strict JSON object stay text."""
    try:
        parsed = json.loads(call.arguments)
        if isinstance(parsed, dict):
            text = json.dumps(
                {"name": call.name, "arguments": parsed}, ensure_ascii=False, allow_nan=False
            )
            text.encode()  # raises for unpaired surrogates
            return text
    except (ValueError, RecursionError):
        pass
    return json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)


def write_anthropic(conversation: StoredConversation) -> str:
    """Return the line ``{"system", "messages", "tools"}``, without ``max_tokens``; may be empty."""
    body = to_anthropic(build_turns(conversation), None, 0)
    del body["max_tokens"]
    return json.dumps(body, ensure_ascii=False) + "\n" if body["messages"] else ""


def write_openai(conversation: StoredConversation) -> str:
    """Return the line ``{"messages": […]}``; empty without messages."""
    body = to_openai(build_turns(conversation), None)
    return json.dumps(body, ensure_ascii=False) + "\n" if body["messages"] else ""


def write_markdown(conversation: StoredConversation) -> str:
    """Render a conversation as Markdown: a title, and each message under its role and time."""
    partition, instance, _ = conversation.name
    title = _join_lines(conversation.title)
    channel = f"{partition}/{instance}"
    parts = [f"# {title or channel}", *([f"*{channel}*"] if title else [])]
    return "\n\n".join([*parts, *map(_format_message, conversation.messages)]) + "\n\n"


def _join_lines(text: str | None) -> str:
    return " ".join((text or "").split())


def _format_message(message: StoredMessage) -> str:
    name = _join_lines(message.name)
    author = f"{message.role.value} ({name})" if name else message.role.value
    time = message.created_at.isoformat(timespec="seconds")
    return f"## {author} · {time}\n\n{plain_text(message)}"


#: The function that writes a conversation, by format.
CONVERSATIONS: dict[str, Callable[[StoredConversation], str]] = {
    "openai": write_openai,
    "anthropic": write_anthropic,
    "sharegpt": write_sharegpt,
    "markdown": write_markdown,
}
FORMATS = ("jsonl", "json", *CONVERSATIONS)


def export_to(
    out: Path | Callable[[str], object],
    store: Store,
    scope: Scope,
    where: Filter,
    form: str,
    *,
    redactor: Redactor,
    embeddings: bool,
    settings: Path,
    progress: Progress,
    explain_empty: Callable[[], str],
) -> ExportReport:
    """Export the messages of a scope to a file, or in batches to a function.

    A file gets one state of the store. A function may take any time, for which a snapshot would
    keep the words of forgotten messages in the store's files.

    :param settings: the settings file, which must not be overwritten.
    :param explain_empty: returns the hint if nothing matches and the file is not empty.
    :raises UsageError: the format is unknown, or cannot hold embeddings.
    """
    report = ExportReport()
    start = partial(export, store, scope, where, form, report, mask=redactor, embeddings=embeddings)
    if isinstance(out, Path):
        with store.snapshot():
            store.lift_timeouts()
            pieces = _unless_empty(start(progress=progress), report, out, explain_empty)
            _save(out, pieces, store.files(), settings)
    else:
        _write_batches(out, start())
    return report


def _unless_empty(
    pieces: Iterator[str], report: ExportReport, out: Path, explain_empty: Callable[[], str]
) -> Iterator[str]:
    """Yield an export; fail if it is empty and would replace an existing one."""
    yield from pieces
    if not report.messages and out.is_file() and out.stat().st_size:
        raise ReservoirError(f"nothing to export: {out} is left unchanged", hint=explain_empty())


def export(
    store: Store,
    scope: Scope,
    where: Filter,
    form: str,
    report: ExportReport,
    *,
    mask: Redactor,
    embeddings: bool = False,
    progress: Progress = no_progress,
) -> Iterator[str]:
    """Yield the messages of a scope in a format, piece by piece, and update the report.

    :param mask: redacts secrets; a redacted message is exported without its vectors.
    :param embeddings: include the vectors of the active model; formats of rows only.
    :raises UsageError: the format is unknown, or cannot hold vectors.
    """
    if form in _ROWS:
        keys = store.find(scope, where)
        records = rows.read_rows(store, keys, mask, embeddings=embeddings)
        return _ROWS[form](_count_rows(records, len(keys), report, progress))
    write = _writer(form)
    if embeddings:
        raise UsageError(f"the format {form} cannot hold embeddings", hint="use jsonl or json")
    ids_by_conversation = store.ids_by_conversation(scope, where)
    return _conversations(store, ids_by_conversation, form, write, report, mask, progress)


def _writer(form: str) -> Callable[[StoredConversation], str]:
    if form in CONVERSATIONS:
        return CONVERSATIONS[form]
    plugins = installed_plugins.find_plugins("exports")
    if form not in plugins:
        raise unknown_format(form, [*FORMATS, *plugins])
    write = installed_plugins.load(plugins[form])
    return lambda conversation: str(
        installed_plugins.run(plugins[form], lambda: write(conversation))
    )


def _count_rows(
    records: Iterator[tuple[rows.Row, bool]], total: int, report: ExportReport, progress: Progress
) -> Iterator[rows.Row]:
    for row, masked in records:
        yield row
        report.messages += 1
        report.masked += masked
        progress("exporting", report.messages, total)
    report.missing = total - report.messages


def _conversations(
    store: Store,
    ids_by_conversation: Mapping[ConversationName, Sequence[int]],
    form: str,
    write: Callable[[StoredConversation], str],
    report: ExportReport,
    mask: Redactor,
    progress: Progress,
) -> Iterator[str]:
    total, processed = sum(map(len, ids_by_conversation.values())), 0
    for_people = form == "markdown"  # who see what a model thought, and what was quoted
    for stored in read_conversations(store, ids_by_conversation):
        conversation = stored.masked(mask)
        exported = conversation if for_people else conversation.without_thinking()
        report.quoted += 0 if for_people else count_quoted(exported)
        processed += len(conversation.messages)
        report.masked += sum(
            a is not b for a, b in zip(stored.messages, conversation.messages, strict=True)
        )
        report.messages += len(exported.messages)
        report.left_out += len(conversation.messages) - len(exported.messages)
        progress("exporting", processed, total)
        if exported.messages:
            yield write(exported)
    report.missing = total - processed


def _write_batches(write: Callable[[str], object], pieces: Iterator[str]) -> None:
    gathered: list[str] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size > _BATCH:
            write("".join(gathered))
            gathered, size = [], 0
    write("".join(gathered))


def _save(path: Path, pieces: Iterator[str], store: Iterable[Path], settings: Path) -> None:
    try:
        paths.refuse_own_files(path, store, settings)
        if path.exists() and not path.is_file():
            _write(path, pieces)  # a pipe or a device; a folder raises an error
            return
        with replace_atomically(path) as unfinished:
            _write(unfinished, pieces)
    except OSError as error:
        raise ReservoirError(
            f"cannot write {path}: {error.strerror}", hint=suggest_fix(error, path)
        ) from None


def _write(path: Path, pieces: Iterator[str]) -> None:
    opener = open_pipe_to_write if path.is_fifo() else None
    with open(path, "w", encoding="utf-8", errors="replace", newline="\n", opener=opener) as file:
        for piece in pieces:
            file.write(piece)
