"""A store for messages with handmade embeddings."""

from datetime import timedelta

import fingerprint
import numpy as np
from behind import behind
from builders import NOW, Compass, context

from reservoir_cli import Reservoir
from reservoir_cli.context.render import request_bodies
from reservoir_cli.messages import Message, Scope, ToolCall
from reservoir_cli.settings import config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.tokens import load_counter

COUNTER = load_counter("approximate")
WORDS = "amber birch cedar delta ember fjord grove heath inlet jetty knoll ledge marsh".split()


class Memory:
    """A store for messages, and contexts from it."""

    def __init__(self, store):
        self.store = store
        self.minute = 0
        store.activate_model(Compass.model_id, Compass.name)

    def say(self, content, role="user", **more):
        """Store a message with this cosine to every question, or without an embedding."""
        return self.say_all([content], role, **more)[0]

    def say_all(self, contents, role="user", *, cosine=None, instance="p", partition="p", **more):
        """Store messages a minute apart by one write, which is many times as fast."""
        messages = [self.message(content, role, **more) for content in contents]
        cosines = [cosine] * len(messages)
        return self.store_all(messages, cosines, Scope(partition, instance))

    def message(self, content, role="user", *, calls=(), **more):
        """Return a message a minute after the last one."""
        self.minute += 1
        return Message(
            role,
            content,
            created_at=NOW + timedelta(minutes=self.minute),
            tool_calls=tuple(ToolCall(call_id, "look", '{"at": 1}') for call_id in calls),
            source_id=str(self.minute),
            **more,
        )

    def store_all(self, messages, cosines, scope):
        """Store messages with their cosines to every question by one write."""
        stored = self.store.add(scope, messages, counter=COUNTER, now=NOW)
        passages = {message.key: [] for message in stored}
        for message, cosine in zip(stored, cosines, strict=True):
            if cosine is not None:
                vector = np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)
                passages[message.key] = [Passage(message.id, 0, 0, 1, vector)]
        self.store.add_passages(Compass.model_id, passages)
        return [message.id for message in stored]

    def ask(self, query="zeta", *, settings=None, partition="p", **options):
        """Ask a minute after the last message, while its session is running."""
        options.setdefault("now", NOW + timedelta(minutes=self.minute + 1))
        short = {"recent": "recent_context_size", "similar": "semantic_context_size"}
        options = {short.get(name, name): value for name, value in options.items()}
        if threshold := options.pop("threshold", None):
            options["similar_cosine"] = 2 * threshold - 1
        settings = settings or {}
        if "link_cosine" not in settings:  # nothing is linked
            settings = {"synapse_depth": 0, **settings}
        with_settings = Reservoir(self.store, config.load(None, settings))
        return context(with_settings, query, partition=partition, **options)

    def fill(self, count, *, words=6, **more):
        return self.say_all([text(number, words) for number in range(count)], **more)


def text(number, words=6):
    return (
        " ".join(WORDS[(number * 7 + index * index) % 13] for index in range(words)) + f" {number}"
    )


def kept_ids(window):
    return sorted(candidate.message.id for candidate in window.kept)


def tier_by_id(window):
    return {candidate.message.id: candidate.tier.value for candidate in window.kept}


def drop_reasons(window):
    return {dropped.candidate.message.id: dropped.reason for dropped in window.selection.dropped}


def count_printed_tokens(window):
    """Count the tokens of the printed text by the rule of §3."""
    printed = window.to()
    if window.request.format == "json":
        printed = window.to("text")
    if isinstance(printed, str):
        count = len(window.turns)
        return window.meter.count(printed, messages=count)
    return sum(
        window.meter.count(body_text, messages=1)
        for body_text in request_bodies.message_texts(printed)
    )


GIVEN = {
    "system": "SYSTEM TEXT",
    "procedure": [("greet", "PROCEDURE ONE"), ("leave", "PROCEDURE TWO")],
    "knowledge": [("a.md", "KNOWLEDGE ONE"), ("b.md", "KNOWLEDGE TWO")],
    "episode": ["2026-01-01: EPISODE ONE", "2026-02-01: EPISODE TWO"],
}


def piece(tokens_wanted):
    return "word " * tokens_wanted


def rows_of(store):
    names = (*fingerprint.MESSAGES.split(", "), "id")
    rows = behind(store.location, f"SELECT {', '.join(names)} FROM messages ORDER BY id")
    return [dict(zip(names, row, strict=True)) for row in rows]


def add_conversation(memory, count=12, *, instance="p"):
    """Store questions, replies and tool calls of realistic and varied lengths."""
    messages, cosines = [], []
    for number in range(count):
        trace = f"{instance}{number}"
        turn = [("user", text(number, 12), {})]
        if number % 3 == 0:
            turn += [
                ("assistant", "", {"calls": [f"c{trace}"]}),
                ("tool", text(number + 1, 20), {"tool_call_id": f"c{trace}"}),
            ]
        turn.append(("assistant", text(number + 2, 40 + 17 * (number % 4)), {}))
        messages += [
            memory.message(content, role, trace_id=trace, **more) for role, content, more in turn
        ]
        cosines += [(number % 5) / 5] * len(turn)
    memory.store_all(messages, cosines, Scope("p", instance))
