"""Long messages, and an embedder that counts words."""

import re
from datetime import UTC, datetime, timedelta
from zlib import crc32

import numpy as np
from builders import context

from reservoir_cli import Message
from reservoir_cli.context import excerpts
from reservoir_cli.embedding import Engine
from reservoir_cli.embedding import split_passages as embedding_passages

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
MARK = re.compile(r"\[… [\d,]+ tokens\]")
WORD = re.compile(r"\w+")


class BagOfWords:
    """An embedder that counts words, with passages of realistic length."""

    name, model_id, dimensions = "words", "words-512", 512
    engine = Engine("reference", "for tests", "folder")

    def encode_query(self, text):
        vector = np.full(self.dimensions, 1e-3, np.float32)
        for word in WORD.findall(text.lower()):
            vector[crc32(word.encode()) % self.dimensions] += 1
        return vector / np.linalg.norm(vector)

    def encode_documents(self, texts):
        empty = np.empty((0, self.dimensions), np.float32)
        return np.stack([self.encode_query(text) for text in texts]) if texts else empty

    def passages(self, text):
        return embedding_passages.cut(
            text, [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
        )


def paragraph(topic, words=60):
    return " ".join(f"{topic}{number % 17}" for number in range(words)) + "."


def long_reply(*topics):
    return "\n\n".join(paragraph(topic) for topic in topics)


TOPICS = "amber birch cedar delta ember fjord grove heath inlet jetty".split()


def add_messages(reservoir, *messages, partition="p"):
    timed = [
        Message(
            message.role,
            message.content,
            created_at=START + timedelta(minutes=number),
            trace_id=message.trace_id,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
        )
        for number, message in enumerate(messages)
    ]
    return reservoir.ingest(timed, partition=partition)


def ask(reservoir, query="delta1 delta2", **options):
    return context(reservoir, query, partition="p", instance="p", **{"budget": 400, **options})


def stored_rows(window):
    return [message.to_row() for message in window.messages if message.id is not None]


def assert_printed_from(text, row):
    """Check that an excerpt holds the text of its spans in order, besides marks and fences."""
    if row["spans"] is None:
        return
    left_out, content, offset = [], row["content"], 0
    for start, end in row["spans"]:
        position = content.index(text[start:end], offset)
        left_out += content[offset:position].splitlines()
        offset = position + (end - start)
    left_out += content[offset:].splitlines()
    for line in filter(str.strip, left_out):
        assert MARK.fullmatch(line) or line in text or set(line.strip()) <= set("`~"), line


def assert_closed(content):
    assert all(fence.tail < fence.end for fence in excerpts.find_fences(content)), content
