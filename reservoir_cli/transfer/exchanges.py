"""Store what passed the proxy: a request is an import of its messages, and an answer behind them.

What is known is known by the identities that the proxy gives; see
:mod:`reservoir_cli.server.proxy.request`.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reservoir_cli.messages import Conversation, Message, Scope, StoredMessage
from reservoir_cli.storage.marks import Tags
from reservoir_cli.storage.records import Filter
from reservoir_cli.storage.sources import Sources
from reservoir_cli.transfer.importers import Record
from reservoir_cli.transfer.ingest import Destination, Ingestor
from reservoir_cli.transfer.proxied import SOURCE

#: Tag of an answer that was cut.
PARTIAL = "partial"
#: A history that was shortened has a summary, a question and its answer at least.
_SHORTENED = 3
_STEP = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer.

    :param conversation: the id of the conversation.
    :param messages: of the request, with their identities as ``source_id``.
    :param reply: likewise; ``None`` if there was none.
    :param partial: the reply was cut.
    """

    scope: Scope
    conversation: str
    model: str | None
    messages: tuple[Message, ...]
    reply: Message | None
    partial: bool = False


def store(ingestor: Ingestor, exchange: Exchange, now: datetime) -> int:
    """Store what is new of an exchange; a new answer to the same question replaces the old one.

    :returns: how many messages were added.
    """
    records = _new(ingestor, exchange, list(_records(exchange, now)))
    added = 0
    if records:
        destination = Destination(str(exchange.scope.partition), exchange.scope.instance, "")
        added = ingestor.load(records, destination, where=SOURCE, now=now).imported
    if exchange.reply:
        _renew(ingestor, exchange, exchange.reply, now)
    return added


def _records(exchange: Exchange, now: datetime) -> Iterator[Record]:
    about = Conversation(exchange.conversation, source=SOURCE, model=exchange.model)
    replies = [] if exchange.reply is None else [exchange.reply]
    if exchange.partial:
        replies = [replace(reply, tags=(PARTIAL,)) for reply in replies]
    trace, moment = "", now - _STEP * (len(exchange.messages) + len(replies))
    for message in [*exchange.messages, *replies]:
        moment += _STEP
        if message.role == "user" or not trace:
            trace = str(uuid.uuid5(uuid.NAMESPACE_OID, str(message.source_id)))
        whole = replace(
            message,
            created_at=moment,
            trace_id=trace,
            source=SOURCE,
            conversation_id=exchange.conversation,
        )
        yield Record(whole, conversation=about)


def _new(ingestor: Ingestor, exchange: Exchange, records: Sequence[Record]) -> list[Record]:
    """Return the records that are not stored yet.

    A client that shortens its history begins a new list under the same id, in which some of the
    old messages come again under new identities.
    """
    ids = [(SOURCE, str(record.message.source_id)) for record in records]
    known = Sources(ingestor.store).present([exchange.scope], ids)
    new = [record for record, own in zip(records, ids, strict=True) if own not in known]
    if ids[0] in known or len(records) < _SHORTENED:
        return new
    said = _said(ingestor, exchange)
    newest = {own for _, own in ids[-2:]}
    return [
        record
        for record in new
        if record.message.source_id in newest
        or (str(record.message.role), record.message.content) not in said
    ]


def _said(ingestor: Ingestor, exchange: Exchange) -> set[tuple[str, str]]:
    """Return role and text of what is stored of a conversation."""
    where = Filter(conversation_id=exchange.conversation)
    messages = ingestor.store.last(exchange.scope, 0, where)
    return {(str(message.role), message.content) for message in messages}


def _stored(
    ingestor: Ingestor, exchange: Exchange, messages: Sequence[Message]
) -> dict[str, StoredMessage]:
    ids = [message.source_id for message in messages if message.source_id]
    return Sources(ingestor.store).stored(exchange.scope, SOURCE, ids)


def _renew(ingestor: Ingestor, exchange: Exchange, reply: Message, now: datetime) -> None:
    """Let a new answer take the place of the one that is stored, unless a person edited that."""
    old = next(iter(_stored(ingestor, exchange, [reply]).values()), None)
    if old is None or (exchange.partial and PARTIAL not in old.tags):
        return
    partition = str(exchange.scope.partition)
    message, _ = ingestor.redactor.scan(reply, partition)
    if (message.content, message.tool_calls) != (old.content, old.tool_calls):
        if ingestor.store.edited([old]):
            return
        whole = replace(
            message,
            source=SOURCE,
            trace_id=old.trace_id,
            created_at=old.created_at,
            conversation_id=exchange.conversation,
        )
        ingestor.store.replace({old.key: whole}, counter=ingestor.counter(partition), now=now)
    if PARTIAL in old.tags and not exchange.partial:
        Tags(ingestor.store).remove(old.key, [PARTIAL])
