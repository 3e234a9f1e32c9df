"""The view of conversations: a list that is filtered and searched, and one conversation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from markupsafe import Markup

from reservoir_cli.messages import Key, Role, Scope, StoredMessage, call_text, plain_text
from reservoir_cli.reservoir import Filter, Reservoir
from reservoir_cli.retrieval.search_hits import Hit
from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.server.web.markdown import LONGEST, to_html
from reservoir_cli.server.web.query_parameters import MissingError, Wanted
from reservoir_cli.server.web.rendering import visible

#: Conversations, hits and messages of a page.
CONVERSATIONS, HITS, MESSAGES = 50, 50, 50
#: Characters of a hit.
_SNIPPET = 280
#: Partition, instance, and conversation: ``None`` for what an instance has outside of any.
Thread = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Item:
    """A conversation of the list.

    :param title: ``None`` for the messages of an instance that are in no conversation.
    :param messages: how many of its messages pass the filter.
    :param last: when the last of them was said.
    """

    partition: str
    instance: str
    conversation: str | None
    title: str | None
    source: str | None
    messages: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list: conversations, or hits of a search."""

    items: Sequence[Item]
    hits: "Sequence[Found]"
    total: int
    pages: int


@dataclass(frozen=True, slots=True)
class Found:
    """A message that a search found, and its best part in pieces: (text, is it a word)."""

    message: StoredMessage
    title: str | None
    pieces: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Said:
    """A message as a conversation shows it.

    :param html: its text, if it is not shown as it is.
    :param rest: how many characters are left out.
    """

    message: StoredMessage
    html: Markup | None
    text: str
    rest: int


@dataclass(frozen=True, slots=True)
class Talk:
    """A page of a conversation."""

    thread: Thread
    title: str | None
    said: Sequence[Said]
    first: int
    total: int
    page: int
    pages: int


def list_or_search(reservoir: Reservoir, wanted: Wanted) -> Listing:
    """Return conversations, the newest first; or with a text, the messages that fit it best."""
    return _search(reservoir, wanted) if wanted.text else _list(reservoir, wanted)


def _search(reservoir: Reservoir, wanted: Wanted) -> Listing:
    hits = reservoir.search(
        wanted.text, limit=HITS, scope=wanted.scope, where=wanted.where, passages=True
    )
    return Listing((), [_found(hit) for hit in hits], len(hits), 1)


def _found(hit: Hit) -> Found:
    text, words = choose_part(plain_text(hit.message), hit.words, hit.passage, _SNIPPET)
    return Found(hit.message, hit.title, list(_pieces(text, words)))


def _pieces(text: str, words: Iterable[tuple[int, int]]) -> Iterable[tuple[str, bool]]:
    end = 0
    for start, stop in words:
        if start >= end:
            yield visible(text[end:start]), False
            yield visible(text[start:stop]), True
            end = stop
    yield visible(text[end:]), False


def _list(reservoir: Reservoir, wanted: Wanted) -> Listing:
    threads = reservoir.lookup.threads(wanted.scope, wanted.where)
    known = {summary.thread: summary for summary in reservoir.conversations(wanted.scope)}
    loose = [Key(thread[0], ids[-1]) for thread, ids in threads.items() if thread not in known]
    ends = {message.key: message for message in reservoir.messages(loose)} if loose else {}
    items = []
    for thread, ids in threads.items():
        if about := known.get(thread):
            title, source, last = about.conversation.title, about.conversation.source, about.last
        elif end := ends.get(Key(thread[0], ids[-1])):
            title, source, last = None, end.source, end.created_at
        else:  # deleted since
            continue
        items.append(Item(*thread, title, source, len(ids), last))
    items.sort(key=attrgetter("last"), reverse=True)
    pages = _pages(len(items), CONVERSATIONS)
    start = (min(wanted.page, pages) - 1) * CONVERSATIONS
    return Listing(items[start : start + CONVERSATIONS], (), len(items), pages)


def _pages(count: int, size: int) -> int:
    return max(1, -(-count // size))


def find_message(reservoir: Reservoir, partition: str, number: int) -> StoredMessage:
    """Return a message by its id.

    :raises ReservoirError: it is not there, or no longer.
    """
    for message in reservoir.messages([Key(partition, number)]):
        return message
    raise MissingError(f"there is no message {number} in {partition}")


def read_thread(
    reservoir: Reservoir, thread: Thread, page: int | None, at: int | None = None
) -> Talk:
    """Return a page of a conversation; the last one if none is named.

    :param at: the id of a message; its page is returned.
    :raises MissingError: there is no such conversation.
    """
    partition, ids = thread[0], ids_of(reservoir, thread)
    if not ids:
        raise MissingError("there is no such conversation")
    pages = _pages(len(ids), MESSAGES)
    if at in ids:
        page = ids.index(at) // MESSAGES + 1
    page = min(page or pages, pages)
    start = (page - 1) * MESSAGES
    keys = [Key(partition, number) for number in ids[start : start + MESSAGES]]
    said = [show(message) for message in reservoir.messages(keys)]
    return Talk(thread, _title(reservoir, thread), said, start + 1, len(ids), page, pages)


def ids_of(reservoir: Reservoir, thread: Thread) -> Sequence[int]:
    """Return the ids of a conversation's messages, in order of time."""
    threads = reservoir.lookup.threads(Scope(*thread[:2]), Filter(conversation_id=thread[2]))
    return threads.get(thread, ())


def _title(reservoir: Reservoir, thread: Thread) -> str | None:
    """Return the title of a conversation; ``None`` for messages outside of one."""
    if thread[2] is None:
        return None
    summaries = reservoir.conversations(Scope(*thread[:2]))
    titles = (about.conversation.title for about in summaries if about.thread == thread)
    return next(titles, None) or thread[2]


def show(message: StoredMessage, *, whole: bool = False) -> Said:
    """Return a message as it is shown: Markdown rendered, results of tools as they are.

    :param whole: all of it, as it is.
    """
    calls = "\n".join(map(call_text, message.tool_calls))
    text = message.content if whole or message.role is Role.TOOL else ""
    if whole:
        return Said(message, None, visible("\n".join(filter(None, (text, calls)))), 0)
    html = None if message.role is Role.TOOL else to_html(message.content)
    shown = visible("\n".join(filter(None, (text[:LONGEST], calls[:LONGEST]))))
    return Said(message, html, shown, max(0, len(message.content) - LONGEST))


def forget(reservoir: Reservoir, thread: Thread) -> int:
    """Delete a conversation for good; return how many messages it had."""
    ids = ids_of(reservoir, thread)
    reservoir.forget([Key(thread[0], number) for number in ids])
    return len(ids)
