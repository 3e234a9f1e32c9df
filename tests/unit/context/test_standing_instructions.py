"""Detection of standing instructions and preferences of the user."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from each import each

from reservoir_cli.context.standing_instructions import is_standing
from reservoir_cli.messages import Role, StoredMessage


def make_message(text: str, role: Role = Role.USER) -> StoredMessage:
    """Return a stored message with this text."""
    return StoredMessage(
        id=1,
        trace_id="t",
        conversation_id=None,
        partition="p",
        instance="i",
        role=role,
        content=text,
        name=None,
        tool_calls=(),
        tool_call_id=None,
        created_at=datetime(2026, 1, 5, tzinfo=UTC),
        source="test",
        source_id="",
        tokens=9,
    )


@each(
    "text",
    [
        "Always give the versions of what you name.",
        "never use em dashes",
        "Thanks! Please always answer in metric units.",
        "From now on, call me Mara.",
        "I prefer tabs. Which editor does that?",
        "I'd prefer a shorter answer, and so would Tom",
        "I would always prefer the train",
        "Bitte immer auf Deutsch antworten.",
        "Ich bevorzuge kurze Antworten",
        "Niemals rebasen, was schon gepusht ist!",
        "S'il vous plaît, toujours citer la source",
        "Je préfère le thé.",
        "Por favor, siempre con ejemplos",
        "Prefiero el tren",
        "请始终用中文回答",
        "我更喜欢简短的回答",
        "one thing more:\n\n  always name the host",
    ],
)
def test_standing_instructions_and_preferences_are_recognised(text):
    assert is_standing(make_message(text))
    assert not is_standing(make_message(text, Role.ASSISTANT))


@each(
    "text",
    [
        "",
        "why is it always the network?",
        "it has never worked",
        "they prefer Redis, and I do not",
        "which one do you prefer?",
        "Das war schon immer so",
        "ce n'est jamais arrivé",
        "alwayson is the name of the flag",
        "neverland",
        "和你聊天总是让我收获很多",
    ],
)
def test_texts_that_only_contain_such_words_are_not_instructions(text):
    assert not is_standing(make_message(text))


@pytest.mark.parametrize("source", ["markdown", "text"])
def test_documents_are_not_instructions(source):
    message = make_message("Always send the keys along.")
    assert is_standing(message)
    assert not is_standing(replace(message, source=source))


def test_a_long_text_is_not_an_instruction():
    text = "Always name the version. "
    assert is_standing(make_message(text + "x" * 500))
    assert not is_standing(make_message(text + "x" * 600))
