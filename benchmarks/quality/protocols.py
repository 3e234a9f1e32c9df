"""Age a store: conversations that asked the same before, and the talk of other sets around it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

from sets import Collection, Question, time_of

from reservoir_cli import Message
from reservoir_cli.storage.search.fulltext import content_words

#: Earlier askings are spread over this time before the newest message; other talk over the second.
_WEEKS, _YEAR = timedelta(weeks=3), timedelta(days=365)
#: Rewordings of a question; ``{words}`` are its content words.
_WORDINGS = (
    "{question}",
    "{words}",
    "Do you remember? {question}",
    "I asked this before: {question}",
    "Please look it up: {words}",
    "{question} Tell me what you know.",
)
#: Replies that know nothing: short, and of about 110 tokens, in English and in German.
_REPLIES = (
    "I don't have any information about {words}.",
    "Dazu liegen mir leider keine Informationen vor.",
    "I'm sorry, but I don't have any information about that. I can only see what has been shared"
    " with me in this conversation, and nothing in it mentions {words}. It may have come up in an"
    " earlier conversation that I have no access to. If you can tell me where it was discussed, or"
    " paste the relevant part here, I will gladly help you to find the answer. Otherwise you could"
    " look through your own notes, messages or calendar, or ask someone who was there. Let me know"
    " how you would like to go on, and I will do my best to be useful.",
    "Es tut mir leid, aber darüber weiß ich nichts. Ich sehe nur, was in diesem Gespräch gesagt"
    " wurde, und darin kommt {words} nicht vor. Vielleicht wurde es in einem früheren Gespräch"
    " erwähnt, auf das ich keinen Zugriff habe. Wenn du mir sagst, wo darüber gesprochen wurde,"
    " oder die Stelle hier einfügst, helfe ich dir gern weiter. Sonst könntest du in deinen Notizen"
    " oder im Kalender nachsehen oder jemanden fragen, der dabei war.",
)


def ask_before(question: Question, count: int, newest: datetime) -> list[Message]:
    """Return earlier conversations in which a question was asked and not answered.

    :param newest: the time of the newest message.
    """
    words = content_words(question.text) or question.text
    messages = []
    for number in range(count):
        asked_at = newest - _WEEKS * ((number + 0.5) / count)
        texts = (_WORDINGS[number % len(_WORDINGS)], _REPLIES[number % len(_REPLIES)])
        for role, text, seconds in zip(("user", "assistant"), texts, (0, 9), strict=True):
            messages.append(
                Message(
                    role,
                    text.format(question=question.text, words=words),
                    created_at=asked_at + timedelta(seconds=seconds),
                    conversation_id=f"asked before {number}",
                    trace_id=f"asked before {number}",
                    source="asked before",
                    source_id=f"asked before {number} {role}",
                )
            )
    return messages


def grow(
    collection: Collection, others: Sequence[Collection], factor: int
) -> tuple[list[Message], int]:
    """Return conversations of other sets, spread over the year before the newest message.

    :param factor: how many times as large the store becomes.
    :returns: the messages, and how many were wanted: other sets may not have as many.
    """
    wanted = (factor - 1) * len(collection.messages)
    newest = max(map(time_of, collection.messages))
    chosen: list[list[Message]] = []
    count = 0
    for talk in _conversations(others):
        if count >= wanted:
            break
        chosen.append(talk)
        count += len(talk)
    messages = []
    for number, talk in enumerate(chosen):
        # Steps by the golden ratio spread neighbours of a set over the whole year.
        shift = newest - _YEAR * ((number * 0.6180339887) % 1) - time_of(talk[-1])
        messages += [
            replace(
                message,
                created_at=time_of(message) + shift,
                conversation_id=f"other {number}",
                trace_id=f"other {number} {message.trace_id}",
                source="other",
                source_id=f"other {number} {message.source_id}",
            )
            for message in talk
        ]
    return messages, wanted


def _conversations(collections: Sequence[Collection]) -> Iterator[list[Message]]:
    """Yield the conversations of collections in turns, one of each, so that all kinds occur."""
    rows = [
        [
            list(group)
            for _, group in groupby(collection.messages, lambda message: message.conversation_id)
        ]
        for collection in collections
    ]
    for round_number in range(max(map(len, rows), default=0)):
        for row in rows:
            if round_number < len(row):
                yield row[round_number]
