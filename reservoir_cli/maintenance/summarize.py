"""Summarise a partition's conversations with sentences of their own, or with a command."""

import hashlib
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import (
    Filter,
    Role,
    Scope,
    StoredMessage,
    clean_text,
    plain_text,
    to_epoch_ms,
)
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval.embed_summaries import embed_summaries
from reservoir_cli.storage.passage import Passage
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.conversations import ConversationSummary
from reservoir_cli.storage.tables.summaries import Summaries, Summary
from reservoir_cli.tokens import ApproximateCounter
from reservoir_cli.util.programs import split_command, with_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Limits of a command's time in seconds, its summary in characters, and its output in bytes.
_SECONDS, LONGEST, _MOST_BYTES = 120, 2_000, 1 << 20
#: Seconds between checks whether a command has ended while its output is still open, and to read
#: the rest of the output then.
_POLL, _GRACE = 0.2, 1.0
EXTRACT = "extract"
_MOST_TOKENS = 60  #: The most tokens of an extractive summary.
_MOST_SENTENCES = 100  #: How many sentences of the most central messages are compared.
_FEWEST_WORDS, _MOST_WORDS = 4, 60  #: The fewest and most words of a sentence worth quoting.
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。\uff01\uff1f])|\n+")


class CannotRunError(ReservoirError):
    """The command cannot be started for any conversation."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one conversation."""

    conversation: ConversationSummary
    summary: Summary | None = None
    reason: str | None = None


def summarize(
    store: Store,
    load_embedder: Callable[[], Embedder],
    mask: Redactor,
    scope: Scope,
    *,
    command: Sequence[str] = (),
    dry_run: bool = False,
    announce: Callable[[str], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Summarise the conversations that have no summary or have changed since.

    A command also replaces the summaries that it has not written itself, with these arguments.

    :param command: a program and its arguments, which reads a conversation on stdin and prints
        the summary; without it the summary is extracted from the conversation's own sentences.
    :param announce: called with the command before its first run.
    """
    made_by = Path(command[0]).name if command else EXTRACT
    summaries = Summaries(store)
    stored, active = summaries.read(scope), store.active_model()
    if not dry_run and any(not active or summary.model_id != active[0] for summary in stored):
        embed_summaries(store, load_embedder(), scope)
    digests = {
        (summary.instance, summary.conversation_id): (summary.digest, summary.made_by)
        for summary in stored
    }
    for conversation in store.conversations(scope):
        conversation_id = conversation.conversation.id
        selection = Filter(conversation_id=conversation_id)
        own_scope = Scope(conversation.partition, conversation.instance)
        messages = mask.messages(store.by_key(list(store.find(own_scope, selection))))
        digest = _digest(messages)
        key = (conversation.instance, conversation_id)
        if not messages or _is_current(digests.get(key), digest, made_by, command):
            continue
        if dry_run:
            yield Outcome(conversation)
            continue
        embedder = load_embedder()
        if command:
            with store.write():
                pass  # a store that cannot be written to is an error before the command runs
            announce(shlex.join(command))
            announce = _ignore
        try:
            text = (
                _run_command(command, messages)
                if command
                else _extract_summary(store, messages, embedder)
            )
        except CannotRunError:
            raise
        except ReservoirError as error:
            yield Outcome(conversation, reason=error.message)
            continue
        if not text:
            continue
        summary = Summary(
            conversation.partition,
            conversation.instance,
            conversation_id,
            _add_command(digest, command),
            mask.text(conversation.partition, text),
            made_by,
            to_epoch_ms(conversation.first),
            embedder.model_id,
        )
        summary = summary._replace(vector=embedder.encode_documents([summary.text])[0])
        with store.write():
            # Messages may have been forgotten or edited in the meantime.
            now = mask.messages(store.by_key(list(store.find(own_scope, selection))))
            if _digest(now) != digest:
                yield Outcome(conversation, reason="it changed in the meantime")
                continue
            summaries.put(summary)
        yield Outcome(conversation, summary)


def _is_current(
    summary: tuple[str, str] | None, digest: str, made_by: str, command: Sequence[str]
) -> bool:
    """Return whether a summary may stay: an extract never replaces what a program wrote."""
    if summary is None:
        return False
    if not command:
        return summary[0].partition(":")[0] == digest
    return summary == (_add_command(digest, command), made_by)


def _add_command(digest: str, command: Sequence[str]) -> str:
    """Add a hash of the command, so that other arguments, such as a prompt, renew a summary."""
    if not command:
        return digest
    typed = shlex.join(command).encode(errors="surrogatepass")
    return f"{digest}:{hashlib.sha256(typed).hexdigest()}"


def _ignore(_: str) -> None:
    """Ignore the announcement: only the first run is announced."""


def parse_command(text: str | None) -> list[str]:
    """Split a command into its program and arguments, without a shell."""
    if text is None:
        return []
    try:
        command = split_command(text)
    except ValueError as error:
        raise UsageError(
            f"--with cannot be read: {error}", hint="quote its arguments as in a shell"
        ) from None
    if not command:
        raise UsageError("--with is empty", hint='name a command, such as --with "llm -s summary"')
    return command


def _digest(messages: Sequence[StoredMessage]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(f"{message.id}\0{message.role}\0{plain_text(message)}\0".encode())
    return digest.hexdigest()


def _extract_summary(store: Store, messages: Sequence[StoredMessage], embedder: Embedder) -> str:
    active = store.active_model()
    passages_by_key = store.passages([message.key for message in messages])
    comparable = active is not None and active[0] == embedder.model_id
    passages = (
        [passage for stored in passages_by_key.values() for passage in stored] if comparable else []
    )
    return extract(messages, passages, embedder)


def _run_command(command: Sequence[str], messages: Sequence[StoredMessage]) -> str:
    text = "\n\n".join(f"{message.role}: {plain_text(message)}" for message in messages)
    try:
        output, code = _pipe_through(with_path(command), text.encode("utf-8", "replace"))
    except subprocess.TimeoutExpired:
        raise ReservoirError(f"{command[0]} took more than {_SECONDS} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a command"
        raise CannotRunError(
            f"cannot run {command[0]}: {reason}",
            hint="install it, or omit --with to summarise without a command",
        ) from None
    summary = clean_text(output.decode("utf-8", "replace")).strip()
    if len(summary) > LONGEST or len(output) > _MOST_BYTES:
        raise ReservoirError(f"{command[0]} printed more than {LONGEST:,} characters")
    if code:
        raise ReservoirError(f"{command[0]} ended with code {code}")
    if not summary:
        raise ReservoirError(f"{command[0]} printed nothing")
    return summary


def _pipe_through(command: Sequence[str], data: bytes) -> tuple[bytes, int]:
    deadline = monotonic() + _SECONDS
    output = bytearray()
    pipe = subprocess.PIPE
    # Closing a buffered pipe would wait for the threads; programs of a command may keep it open.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def write() -> None:
            rest = memoryview(data)
            with suppress(OSError, ValueError), stdin:
                while rest:  # a signal may interrupt a write
                    rest = rest[stdin.write(rest) :]

        def read() -> None:
            with suppress(OSError, ValueError):
                while len(output) <= _MOST_BYTES and (chunk := stdout.read(1 << 16)):
                    output.extend(chunk)

        try:
            Thread(target=write, daemon=True).start()
            reader = Thread(target=read, daemon=True)
            reader.start()
            while reader.is_alive() and process.poll() is None and monotonic() < deadline:
                reader.join(_POLL)
            reader.join(_GRACE)
            if len(output) <= _MOST_BYTES:
                process.wait(max(0.0, deadline - monotonic()))
        finally:
            process.kill()
    return bytes(output), process.returncode


def extract(
    messages: Sequence[StoredMessage], passages: Sequence[Passage], embedder: Embedder
) -> str:
    """Return the sentences nearest to a conversation's centroid, in order, at most 60 tokens."""
    candidates = _split_sentences(messages)
    if not candidates:
        return ""
    if passages:
        centroid = np.mean([passage.vector for passage in passages], axis=0)
        candidates = _most_central(candidates, messages, passages, centroid)
    candidates = candidates[:_MOST_SENTENCES]
    vectors = embedder.encode_documents([sentence for _, sentence in candidates])
    if not passages:
        centroid = vectors.mean(axis=0)
    return _join_fitting([sentence for _, sentence in candidates], vectors @ centroid)


def _split_sentences(messages: Sequence[StoredMessage]) -> list[tuple[int, str]]:
    message_of: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.role in (Role.USER, Role.ASSISTANT):
            for sentence in _SENTENCE_END.split(_CODE.sub("\n", message.content)):
                words = sentence.split()
                enough = len(words) >= _FEWEST_WORDS or len(sentence) - sentence.count(" ") > 20
                if enough and len(words) <= _MOST_WORDS and len(sentence) <= 600:
                    message_of.setdefault(" ".join(words), index)
    return [(index, sentence) for sentence, index in message_of.items()]


def _most_central(
    candidates: list[tuple[int, str]],
    messages: Sequence[StoredMessage],
    passages: Sequence[Passage],
    centroid: "NDArray[np.float32]",
) -> list[tuple[int, str]]:
    similarities: dict[int, float] = {}
    for passage in passages:
        cosine = float(passage.vector @ centroid)
        similarities[passage.message_id] = max(cosine, similarities.get(passage.message_id, -1.0))
    ranked = sorted(candidates, key=lambda pair: -similarities.get(messages[pair[0]].id, -1.0))
    return sorted(ranked[:_MOST_SENTENCES], key=candidates.index)


def _join_fitting(sentences: Sequence[str], similarities: "NDArray[np.float32]") -> str:
    count = ApproximateCounter().count
    chosen: list[int] = []
    for index in np.argsort(-similarities, kind="stable").tolist():
        text = " ".join(sentences[chosen_index] for chosen_index in sorted([*chosen, index]))
        if count(text) <= _MOST_TOKENS:
            chosen.append(index)
    return " ".join(sentences[index] for index in sorted(chosen))
