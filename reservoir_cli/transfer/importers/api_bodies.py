"""Messages as the APIs take them: a body is a conversation, bare messages are one a file."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from reservoir_cli.messages import Conversation, Message
from reservoir_cli.transfer.importers.base import Record, Skipped
from reservoir_cli.transfer.importers.coerce import obj, text, time_of
from reservoir_cli.transfer.importers.conversation_identity import SourceIds, Thread
from reservoir_cli.transfer.importers.input_files import File
from reservoir_cli.transfer.importers.json_stream import read_each

#: Makes messages of a value of the file; a ``ValueError`` says why it is none.
Read = Callable[[Any], Iterable[Message]]


def read_bodies(
    file: File, source: str, read: Read, *, before: tuple[str, Read] | None = None
) -> Iterator[Record | Skipped]:
    """Yield the messages of the request bodies and bare messages in a file.

    :param read: given each message.
    :param before: a key of the body, and what reads the value that stands under it.
    """
    identities = SourceIds()
    bare: dict[str | None, _Talk] = {}

    def body(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
        listed = value.get("messages")
        if not isinstance(listed, list):
            named = text(value.get("conversation_id"))
            if named not in bare:
                bare[named] = _Talk(source, identities, {"conversation_id": named})
            yield from bare[named].records(place, value, read)
            return
        talk = _Talk(source, identities, value)
        if before:
            key, read_before = before
            yield from talk.records(f"{place}, {key}", value.get(key), read_before)
        for number, each in enumerate(listed, 1):
            yield from talk.records(f"{place}, message {number}", each, read)

    return read_each(file, body)


class _Talk:
    """One conversation: its messages get their ids from what they follow.

    A message without a time gets that of the one before it, the first one that of the body.
    """

    def __init__(self, source: str, identities: SourceIds, body: dict[str, Any]) -> None:
        named = text(body.get("conversation_id"))
        self._thread = Thread(source, Conversation(named, source=source) if named else None)
        self._identities = identities
        self._time = time_of(body)
        # The address may be that of an earlier talk, whose last message this one does not follow.
        identities.follow(id(self), named or "")

    def records(self, place: str, value: Any, read: Read) -> Iterator[Record | Skipped]:
        try:
            made = read(value)
        except ValueError as error:
            yield Skipped(place, str(error))
            return
        self._time = time_of(obj(value)) or self._time
        for message in made:
            timed = replace(message, created_at=self._time)
            yield self._thread.record(timed, self._identities.new(id(self), timed))
