"""``reservoir edit``: replace the text of a message."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.commands.tag_and_pin import Number, check_order, find
from reservoir_cli.cli.options import argument
from reservoir_cli.errors import ReservoirError, TextRemainsError, UsageError
from reservoir_cli.messages import StoredMessage
from reservoir_cli.redaction import Mode
from reservoir_cli.util.private_files import temporary_folder
from reservoir_cli.util.programs import split_command, with_path
from reservoir_cli.util.read_files import decode


def edit(
    ctx: typer.Context,
    number: Number,
    text: Annotated[
        str | None, argument("[TEXT]", "The new text; - reads stdin; if omitted, $EDITOR opens.")
    ] = None,
    partition: options.Partition = None,
) -> None:
    """Replace the text of a message.

    The old text is removed from all files of the store. The message is embedded again; the
    summary of the conversation is deleted until the next `summarize`. Importing the file again does
    not bring the old text back. Backups and exports made earlier still have it.
    """
    check_order(number, [text or ""])
    with open_store.open_reservoir(ctx) as reservoir:
        message = find(reservoir, number, partition)
        before = message.content
        if text is None and reservoir.redactor.mode(message.partition) is Mode.MASK:
            _refuse_masked(message)
        after = _edit_interactively(before) if text is None else options.text_or_stdin(text)
        if not after.strip():
            console.note(
                "the new text is empty: nothing was changed; reservoir forget deletes a message"
            )
        elif after == before:
            console.note("the text is the same: nothing was changed")
        else:
            with _saving_text(after) if text is None else nullcontext():
                changed = reservoir.edit(message.key, after)
            console.aside(options.first_words(changed))
            console.note("backups and exports made earlier still have the old text")


def _refuse_masked(message: StoredMessage) -> None:
    """Refuse a text with masked secrets, which an editor would store instead of the secrets."""
    if "[redacted:" in message.content:
        command = shlex.join(["reservoir", "edit", str(message.id), "-p", message.partition])
        raise ReservoirError(
            f"message {message.id} has masked secrets, which an editor would overwrite",
            hint=f"RESERVOIR_REDACT=mark {command} edits it as it is stored",
        )


@contextmanager
def _saving_text(text: str) -> Iterator[None]:
    """Print a text from an editor if it cannot be stored: its file is deleted."""
    try:
        yield
    except TextRemainsError:  # it is stored
        raise
    except ReservoirError:
        console.note("the new text is printed, since it was not stored")
        console.write(f"{text}\n")
        raise


def _edit_interactively(text: str) -> str:
    from tempfile import gettempdir  # few edits need it

    command = _editor()
    # Backup and swap files of the editor are deleted with the folder.
    with temporary_folder(Path(gettempdir()), "reservoir-") as folder:
        file = folder / "message.txt"
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        try:
            process = subprocess.run([*with_path(command), str(file)], check=False)
            edited = decode(file.read_bytes(), "the edited text")[0]
        except OSError as error:
            raise ReservoirError(
                f"cannot edit with {command[0]}: {error.strerror}", hint="set EDITOR, or give TEXT"
            ) from None
    if process.returncode:
        raise ReservoirError(
            f"{command[0]} exited with {process.returncode}: nothing was changed",
            hint="set EDITOR, or give TEXT",
        )
    # Most editors add a line break at the end.
    return edited if text.endswith("\n") else edited.removesuffix("\n").removesuffix("\r")


def _editor() -> list[str]:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = split_command(chosen)
    except ValueError:
        raise UsageError(f"cannot parse EDITOR: {chosen}", hint="close its quotes") from None
    if not command and not options.can_ask():
        raise UsageError("no text and no editor", hint="give TEXT, or set EDITOR")
    return command or ["notepad" if os.name == "nt" else "vi"]
