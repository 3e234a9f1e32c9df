"""Import what Google exports of Gemini: its activity from Takeout, and prompts of AI Studio."""

import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from reservoir_cli.transfer.reading.decompressed_file import File, Head
from reservoir_cli.transfer.reading.foreign_values import joined_texts, obj, objects, text
from reservoir_cli.transfer.reading.importer import Importer, Record, Skipped, Thread
from reservoir_cli.transfer.reading.json_stream import read_entries
from reservoir_cli.transfer.reading.transcripts import Turn, read_conversation

#: How the title of an activity begins, before the user's words.
_PROMPTED = re.compile(r"(?:Prompted|Asked|Said|Prompt|Eingegebener Prompt:?|Invite :?)\s+")
_PRODUCT = re.compile(r"gemini|bard", re.IGNORECASE)
_BREAKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "pre", "ul", "ol"})


class Gemini(Importer):
    """Reads ``MyActivity.json`` of Takeout, and the files of AI Studio in Google Drive."""

    name = "gemini"
    title = "Gemini"
    instance = "gemini"

    def detect(self, head: Head) -> bool:
        is_activity = head.has_all("header", "title", "time", depth=1)
        return (is_activity and bool(_PRODUCT.search(head.text))) or head.has("chunkedPrompt")

    def read(self, file: File) -> Iterator[Record | Skipped]:
        def read(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
            if isinstance(value.get("chunkedPrompt"), dict):
                return _read_prompt(file, place, value)
            return _read_activity(place, value)

        return read_entries(file, read)


def _read_activity(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
    """Yield a question, and its reply if there is one; nothing for another product."""
    title = text(value.get("title"))
    if title is None:
        raise ValueError("no title")
    products = value.get("products")
    product = f"{value.get('header')} {products if isinstance(products, list) else ''}"
    replies = [text(item.get("html")) for item in objects(value.get("safeHtmlItem"))]
    match = _PROMPTED.match(title)
    if not _PRODUCT.search(product) or not (match or any(replies)):
        return
    question = title[match.end() :] if match else title
    digest = hashlib.sha256(f"{value.get('time')} {title}".encode("utf-8", "replace")).hexdigest()
    thread = Thread(Gemini.name, digest[:32])
    turns = [Turn("user", question, digest[:32], value.get("time"))]
    reply = "\n\n".join(html_text(reply) for reply in replies if reply)
    if reply.strip():
        turns.append(Turn("assistant", reply, f"{digest[:32]}/reply", value.get("time")))
    yield from read_conversation(thread, place, enumerate(turns, 1))


def _read_prompt(file: File, place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
    chunks = value["chunkedPrompt"].get("chunks")
    if not isinstance(chunks, list):
        raise ValueError("no list of messages")
    model = text(obj(value.get("runSettings")).get("model"))
    model = model and model.removeprefix("models/")
    thread = Thread(Gemini.name, file.stem, title=file.stem, model=model)
    modified = file.modified.isoformat() if file.modified else None
    turns: list[Turn | None] = []
    prompt = obj(value.get("systemInstruction"))
    words = text(prompt.get("text")) or joined_texts(prompt.get("parts"))
    if words:
        turns.append(Turn("system", words, None, modified))
    turns += [_chunk_turn(item, modified) if isinstance(item, dict) else None for item in chunks]
    yield from read_conversation(thread, place, enumerate(turns, 1))


def _chunk_turn(chunk: dict[str, Any], modified: str | None) -> Turn:
    words = text(chunk.get("text")) or joined_texts(chunk.get("parts"))
    files = [name for name in chunk if name.startswith("drive") or name.startswith("inline")]
    markers = [{"type": "image" if "Image" in name else "file"} for name in files]
    if chunk.get("isThought") is True:
        return Turn("model", [{"type": "thinking", "thinking": words}], None, modified)
    time = chunk.get("createTime") or modified
    return Turn(str(chunk.get("role")), [*markers, words], None, time)


class _TextParser(HTMLParser):
    """Collects the text of a document, with line breaks between its blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _BREAKS:
            self.parts.append("\n")
        if tag == "li":
            self.parts.append("- ")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def html_text(source: str) -> str:
    """Return the text of an HTML fragment."""
    parser = _TextParser()
    parser.feed(source)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.parts)).strip()
