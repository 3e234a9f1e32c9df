"""Read the conversations view: the filtered or searched list, and a single conversation."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from markupsafe import Markup

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import (
    DOCUMENT_SOURCES,
    ConversationName,
    Filter,
    Key,
    Role,
    Scope,
    StoredMessage,
    call_text,
    plain_text,
    title_of,
)
from reservoir_cli.reservoir import ConversationList, ListedConversation, Reservoir
from reservoir_cli.retrieval.hits import Hit
from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.server import limits
from reservoir_cli.server.web.conversation_filter import ConversationFilter
from reservoir_cli.server.web.markdown import to_html, to_plain_html
from reservoir_cli.server.web.rendering import month, visible
from reservoir_cli.util.front_matter import FRONT_MATTER, find_title
from reservoir_cli.util.progress import counted

#: Conversations, hits and messages on one page, and the characters of a hit's snippet.
CONVERSATIONS, HITS, MESSAGES, MAX_SNIPPET = 50, 50, 50, 280
_HEADING = re.compile(r"#{1,6}[ \t]")
_SEARCHED = 10_000  # how many characters of a document are searched for its title


class MissingError(ReservoirError):
    """The conversation or message that an address names is not in the store."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """A row of the list: a conversation, a document, or the single messages of an instance.

    :param document: the id of the document's message; ``None`` for the others.
    :param source: the tool it came from, if its instance has another name.
    :param snippet: what it begins with, if the title does not say so already, or its last text.
    :param messages: how many of its messages match the filter.
    """

    partition: str
    instance: str
    conversation: str | None
    document: int | None
    title: str | None
    source: str | None
    snippet: str
    messages: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list, by the month of the last message: conversations, or hits of a search.

    :param total: how many rows all pages have, with the single messages of instances.
    """

    items: "Sequence[tuple[str, Sequence[ListItem]]]"
    hits: "Sequence[HitSnippet]"
    total: int
    conversations: int
    documents: int
    pages: int

    def count(self) -> str:
        """Return how many rows there are, in words."""
        singles = self.total - self.conversations - self.documents
        parts = [
            *([counted(self.conversations, "conversation")] if self.conversations else []),
            *([counted(self.documents, "document")] if self.documents else []),
            *(["single messages"] if singles else []),
        ]
        *first, last = parts or ["0 conversations"]
        text = f"{', '.join(first)} and {last}" if first else last
        is_sorted = self.conversations or self.documents or not self.total
        return f"{text}, the newest first" if is_sorted else text.capitalize()


@dataclass(frozen=True, slots=True)
class HitSnippet:
    """A search hit, and its snippet in pieces: (text, whether it is a matching word)."""

    message: StoredMessage
    title: str | None
    pieces: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as the page shows it: as HTML, or plain text such as tool calls.

    :param rest: how many characters are left out.
    """

    message: StoredMessage
    html: Markup | None
    text: str
    rest: int


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """A page of a conversation, or a document with the id of its message."""

    name: ConversationName
    title: str | None
    messages: Sequence[ShownMessage]
    first: int
    total: int
    number: int
    pages: int
    document: int | None = None


def list_or_search(reservoir: Reservoir, query: ConversationFilter) -> Listing:
    """Return the conversations, newest first; or if the query has a text, its best matches."""
    if not query.text:
        return _list(reservoir, query)
    hits = reservoir.search(
        query.text, limit=HITS, scope=query.scope, where=query.where, passages=True
    )
    return Listing((), [_hit_snippet(hit) for hit in hits], len(hits), 0, 0, 1)


def _hit_snippet(hit: Hit) -> HitSnippet:
    text, words = choose_part(plain_text(hit.message), hit.words, hit.passage, MAX_SNIPPET)
    title = document_title(hit.message) if is_document(hit.message) else hit.title
    return HitSnippet(hit.message, title, list(_split_words(text, words)))


def _split_words(text: str, words: Iterable[tuple[int, int]]) -> Iterable[tuple[str, bool]]:
    end = 0
    for start, stop in words:
        if start >= end:
            yield visible(text[end:start]), False
            yield visible(text[start:stop]), True
            end = stop
    yield visible(text[end:]), False


def _list(reservoir: Reservoir, query: ConversationFilter) -> Listing:
    size = CONVERSATIONS

    def read(page: int) -> ConversationList:
        return reservoir.lookup.newest_conversations(
            query.scope, query.where, size, (page - 1) * size
        )

    listing = read(query.page)
    if not listing.listed and query.page > 1:  # behind the last page
        listing = read(_count_pages(read(1).total, size))
    items = [_item(reservoir, listed) for listed in listing.listed]
    by_month = [(name, list(rows)) for name, rows in groupby(items, lambda item: month(item.last))]
    pages = _count_pages(listing.total, size)
    return Listing(by_month, (), listing.total, listing.conversations, listing.documents, pages)


def _item(reservoir: Reservoir, listed: ListedConversation) -> ListItem:
    """Prepare a row of the list; secrets are redacted before anything is shortened."""
    redactor, partition = reservoir.redactor, listed.partition
    question, latest = (redactor.text(partition, text) for text in (listed.question, listed.latest))
    conversation, source, title = None, None, None
    if listed.conversation:
        about = redactor.conversation(partition, listed.conversation)
        conversation, source = about.id, about.source
        title = about.title or title_of(question) or about.id
        snippet = question if about.title and not _repeats(about.title, question) else latest
    elif listed.document:
        title, snippet = split_title(latest)
    else:
        snippet = latest
    return ListItem(
        partition,
        listed.instance,
        conversation,
        listed.document,
        title,
        None if source == listed.instance else source,
        " ".join(snippet.split()),
        listed.messages,
        listed.last,
    )


def _repeats(title: str, text: str) -> bool:
    short, long = (" ".join(words.split()) for words in (title.rstrip("….").rstrip(), text))
    return long.startswith(short)


def _count_pages(count: int, size: int) -> int:
    return max(1, -(-count // size))


def find_message(reservoir: Reservoir, partition: str, number: int) -> StoredMessage:
    """Return a message by its id, or raise MissingError."""
    for message in reservoir.messages([Key(partition, number)]):
        return message
    raise MissingError(f"there is no message {number} in {partition}")


def read_conversation(
    reservoir: Reservoir, name: ConversationName, page: int | None, at: int | None = None
) -> ConversationPage:
    """Return the page with a message, by default the last one; MissingError without any."""
    partition, ids = name[0], ids_of(reservoir, name)
    conversation = name[2] and reservoir.redactor.id(partition, name[2])
    name = (partition, name[1], conversation)
    if not ids:
        raise MissingError("there is no such conversation")
    pages = _count_pages(len(ids), MESSAGES)
    if at in ids:
        page = ids.index(at) // MESSAGES + 1
    page = min(page or pages, pages)
    start = (page - 1) * MESSAGES
    keys = [Key(partition, number) for number in ids[start : start + MESSAGES]]
    messages = list(_show_page(reservoir.messages(keys)))
    title = _find_title(reservoir, name)
    return ConversationPage(name, title, messages, start + 1, len(ids), page, pages)


def read_document(reservoir: Reservoir, partition: str, number: int) -> ConversationPage:
    """Read a document by the id of its message, or raise MissingError."""
    message = find_message(reservoir, partition, number)
    if not is_document(message):
        raise MissingError(f"message {number} in {partition} is not a document")
    name = (message.partition, message.instance, None)
    title = document_title(message)
    return ConversationPage(name, title, [show(message)], 1, 1, 1, 1, message.id)


def ids_of(reservoir: Reservoir, name: ConversationName) -> Sequence[int]:
    """Return the ids of a conversation's messages without documents; its id may be masked."""
    partition, instance, conversation = name
    scope = Scope(partition, instance)
    if conversation is not None:
        conversation = reservoir.lookup.stored_id("conversation_id", conversation, scope)
    where = Filter(conversation_id=conversation, documents=conversation is not None)
    return reservoir.lookup.ids_by_conversation(scope, where).get(
        (partition, instance, conversation), ()
    )


def _find_title(reservoir: Reservoir, name: ConversationName) -> str | None:
    if name[2] is None:
        return None
    scope = Scope(*name[:2])
    stored = reservoir.lookup.stored_id("conversation_id", name[2], scope)
    summaries = reservoir.conversations(scope, only=stored)
    titles = (summary.conversation.title for summary in summaries if summary.name == name)
    return next(titles, None) or name[2]


def _show_page(messages: Iterable[StoredMessage]) -> Iterator[ShownMessage]:
    """Prepare the messages of a page, whose Markdown may take long to render."""
    start = time.thread_time()
    for message in messages:
        yield show(message, plain=time.thread_time() - start > limits.RENDER_TIME)


def show(message: StoredMessage, *, whole: bool = False, plain: bool = False) -> ShownMessage:
    """Prepare a message to be shown: Markdown rendered unless ``whole`` or ``plain``."""
    calls = "\n".join(map(call_text, message.tool_calls))
    text = message.content if whole or message.role is Role.TOOL else ""
    if whole:
        return ShownMessage(message, None, visible("\n".join(filter(None, (text, calls)))), 0)
    to_markup = to_plain_html if plain else to_html
    html = None if message.role is Role.TOOL else to_markup(message.content)
    words = visible(
        "\n".join(filter(None, (text[: limits.MAX_RENDERED], calls[: limits.MAX_RENDERED])))
    )
    return ShownMessage(message, html, words, max(0, len(message.content) - limits.MAX_RENDERED))


def forget(reservoir: Reservoir, name: ConversationName) -> int:
    """Delete a conversation permanently; return how many messages it had."""
    ids = ids_of(reservoir, name)
    reservoir.forget([Key(name[0], number) for number in ids])
    return len(ids)


def is_document(message: StoredMessage) -> bool:
    """Return whether a message is a document, which is in no conversation."""
    return message.source in DOCUMENT_SOURCES and message.conversation_id is None


def document_title(message: StoredMessage) -> str:
    """Return the title of a document."""
    return split_title(message.content)[0]


def split_title(text: str) -> tuple[str, str]:
    """Return the title of a document, and the text behind it."""
    text = text[:_SEARCHED].replace("\r\n", "\n")
    front_matter = FRONT_MATTER.match(text)
    body = text[front_matter.end() if front_matter else 0 :].lstrip()
    line, _, rest = body.partition("\n")
    is_heading = _HEADING.match(line)
    if front_matter and (title := title_of(find_title(front_matter[2]))):
        return title, rest if is_heading else body
    return title_of(line.strip("# \t") if is_heading else line) or "Untitled document", rest
