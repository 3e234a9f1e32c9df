"""Taking messages out for other programs: one format a file.

Messages are read in portions, so that what is written may be larger than memory. Formats of
conversations hold one conversation at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Scope
from reservoir_cli.redaction import Mask
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Filter, Progress

if TYPE_CHECKING:
    from reservoir_cli.transfer.exporters.conversations import Thread

#: ``document`` is ``json`` in an envelope, as every command prints with ``--json``.
ROWS = ("jsonl", "json", "document")
CONVERSATIONS = ("openai", "anthropic", "sharegpt", "markdown")
FORMATS = ("jsonl", "json", *CONVERSATIONS)


@dataclass
class Totals:
    """What an export wrote so far.

    :param left_out: messages that a format has no place for: thinking.
    :param masked: messages with a secret that is hidden.
    """

    messages: int = 0
    left_out: int = 0
    masked: int = 0


def export(
    store: Store,
    scope: Scope,
    where: Filter,
    form: str,
    totals: Totals,
    *,
    mask: Mask,
    embeddings: bool = False,
    progress: Progress = lambda *_: None,
) -> Iterator[str]:
    """The messages of a scope in a format, piece by piece.

    :param totals: counts what is written.
    :param mask: hides what secrets are to be hidden; such a message has no vectors.
    :param embeddings: with the vectors of the active model; rows only.
    :raises UsageError: an unknown format, or one that has no place for vectors.
    """
    if form in ROWS:
        return _rows(store, scope, where, form, totals, mask, embeddings, progress)
    if form not in CONVERSATIONS:
        raise UsageError(f"unknown format {form!r}", hint=f"formats are {', '.join(FORMATS)}")
    if embeddings:
        raise UsageError(f"the format {form} has no place for embeddings", hint="use jsonl or json")
    return _conversations(store, scope, where, form, totals, mask, progress)


def _rows(
    store: Store,
    scope: Scope,
    where: Filter,
    form: str,
    totals: Totals,
    mask: Mask,
    embeddings: bool,
    progress: Progress,
) -> Iterator[str]:
    from reservoir_cli.transfer.exporters import rows

    write = {"jsonl": rows.jsonl, "json": rows.array, "document": rows.document}[form]
    keys = store.find(scope, where)

    def counted() -> Iterator[rows.Row]:
        for row, masked in rows.rows(store, keys, mask, embeddings=embeddings):
            yield row
            totals.messages += 1
            totals.masked += masked
            progress("exporting", totals.messages, len(keys))

    return write(counted())


def _conversations(
    store: Store,
    scope: Scope,
    where: Filter,
    form: str,
    totals: Totals,
    mask: Mask,
    progress: Progress,
) -> Iterator[str]:
    from reservoir_cli.transfer.exporters.conversations import threads

    write = _writer(form)
    found = store.threads(scope, where)
    total = sum(map(len, found.values()))
    done = 0
    for read in threads(store, found):
        thread = read.masked(mask)
        kept = thread if form == "markdown" else thread.without_thinking()
        done += len(thread.messages)
        totals.masked += sum(
            a is not b for a, b in zip(read.messages, thread.messages, strict=True)
        )
        totals.messages += len(kept.messages)
        totals.left_out += len(thread.messages) - len(kept.messages)
        progress("exporting", done, total)
        if kept.messages:
            yield write(kept)


def _writer(form: str) -> Callable[["Thread"], str]:
    from reservoir_cli.transfer.exporters import anthropic, markdown, openai, sharegpt

    return {
        "openai": openai.write,
        "anthropic": anthropic.write,
        "sharegpt": sharegpt.write,
        "markdown": markdown.write,
    }[form]


__all__ = ["FORMATS", "Totals", "export"]
