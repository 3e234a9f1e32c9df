"""Every trimmed list is accepted by its provider, and says what the whole list says. Generated."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from bodies import Characters
from hypothesis import given, settings
from hypothesis import strategies as st

from reservoir_cli import trim_history
from reservoir_cli.chat.message_cost import message_cost

ChatMessage = dict[str, Any]
Answers = list[tuple[str, str]]


# A step is the ids of its calls with their results, in the order in which these are sent.


def openai_step(answers: Answers, text: str) -> list[ChatMessage]:
    calls = [
        {"id": key, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for key in sorted(key for key, _ in answers)
    ]
    results = [{"role": "tool", "tool_call_id": key, "content": value} for key, value in answers]
    return [{"role": "assistant", "content": text or None, "tool_calls": calls}, *results]


def anthropic_step(answers: Answers, text: str) -> list[ChatMessage]:
    uses = [
        {"type": "tool_use", "id": key, "name": "f", "input": {}}
        for key in sorted(key for key, _ in answers)
    ]
    results: list[ChatMessage] = [
        {"type": "tool_result", "tool_use_id": key, "content": value} for key, value in answers
    ]
    if text:  # reminders of a client stand beside the results
        results.append({"type": "text", "text": text})
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]


def responses_step(answers: Answers, text: str) -> list[ChatMessage]:
    calls = [
        {"type": "function_call", "call_id": key, "name": "f", "arguments": "{}"}
        for key in sorted(key for key, _ in answers)
    ]
    outputs = [
        {"type": "function_call_output", "call_id": key, "output": value} for key, value in answers
    ]
    said = [{"role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    return [{"type": "reasoning", "summary": []}, *(said if text else []), *calls, *outputs]


def ollama_step(answers: Answers, text: str) -> list[ChatMessage]:
    calls = [{"function": {"name": "f", "arguments": {}}} for _ in answers]
    results = [{"role": "tool", "tool_name": "f", "content": value} for _, value in answers]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, *results]


def bedrock_step(answers: Answers, text: str) -> list[ChatMessage]:
    uses = [
        {"toolUse": {"toolUseId": key, "name": "f", "input": {}}}
        for key in sorted(key for key, _ in answers)
    ]
    results = [
        {"toolResult": {"toolUseId": key, "content": [{"text": value}]}} for key, value in answers
    ]
    said = [{"text": text}] if text else []
    return [{"role": "assistant", "content": said + uses}, {"role": "user", "content": results}]


def gemini_step(answers: Answers, text: str) -> list[ChatMessage]:
    calls = [{"functionCall": {"name": "f", "args": {}}} for _ in answers]
    results = [
        {"functionResponse": {"name": "f", "response": {"value": value}}} for _, value in answers
    ]
    said = [{"text": text, "thought": True}] if text else []
    return [{"role": "model", "parts": said + calls}, {"role": "user", "parts": results}]


STEPS: dict[str, Callable[[Answers, str], list[ChatMessage]]] = {
    "openai": openai_step,
    "anthropic": anthropic_step,
    "responses": responses_step,
    "ollama": ollama_step,
    "bedrock": bedrock_step,
    "gemini": gemini_step,
}
#: Providers whose instructions stand beside the list.
WITHOUT_INSTRUCTIONS = ("anthropic", "bedrock", "gemini")
texts = st.integers(0, 60).map(lambda length: "x" * length)


@st.composite
def _lists(draw: st.DrawFn, form: str) -> list[ChatMessage]:
    """Return a valid list."""
    numbers = itertools.count()
    instruction = st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["system", "developer"]),
        texts,
    )
    messages = draw(st.lists(instruction, max_size=2)) if form not in WITHOUT_INSTRUCTIONS else []
    for exchange in range(draw(st.integers(1, 5))):
        messages += [
            {"role": "user", "content": text}
            for text in draw(st.lists(texts, min_size=1, max_size=2))
        ]
        for _ in range(draw(st.integers(0, 3))):
            reused = draw(st.booleans())  # some servers number the calls of each answer from 0
            size = draw(st.integers(1, 3))
            ids = [f"c{number if reused else next(numbers)}" for number in range(size)]
            answers = draw(st.permutations([(key, draw(texts)) for key in ids]))
            messages += STEPS[form](answers, draw(texts))
        if exchange % 2 or draw(st.booleans()):
            refusal = {"refusal": draw(texts)} if draw(st.booleans()) else {}
            messages.append({"role": "assistant", "content": draw(texts), **refusal})
        if form not in WITHOUT_INSTRUCTIONS and draw(st.booleans()):
            messages.append(draw(instruction))
    return [_in_blocks(form, message) for message in messages]


def _in_blocks(form: str, message: ChatMessage) -> ChatMessage:
    """Return a message whose text is a block, where a provider has no other form."""
    text = message.get("content")
    if form not in ("bedrock", "gemini") or not isinstance(text, str):
        return message
    if form == "bedrock":
        return {"role": message["role"], "content": [{"text": text}]}
    role = "model" if message["role"] == "assistant" else message["role"]
    return {"role": role, "parts": [{"text": text}]}


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = message.get("parts", message.get("content"))
    return blocks if isinstance(blocks, list) else []


def _is_instruction(message: ChatMessage) -> bool:
    return message.get("role") in ("system", "developer")


def _is_question(message: ChatMessage) -> bool:
    return message.get("role") == "user" and not any(_is_result(x) for x in _blocks(message))


def _is_result(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_result" or not {"toolResult", "functionResponse"}.isdisjoint(
        block
    )


def _events(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, Any]]:
    """Yield calls and results by their ids; each with its kind."""
    for message in messages:
        kind = message.get("type")
        if kind in ("function_call", "function_call_output"):
            yield ("call" if kind == "function_call" else "result"), message["call_id"]
        for call in message.get("tool_calls", []):
            yield "call", call.get("id")
        if message.get("role") == "tool":
            yield "result", message.get("tool_call_id")
        for block in _blocks(message):
            if block.get("type") in ("tool_use", "tool_result"):
                called = block["type"] == "tool_use"
                yield ("call", block["id"]) if called else ("result", block["tool_use_id"])
            for key in ("toolUse", "functionCall", "toolResult", "functionResponse"):
                if key in block:
                    yield "result" if _is_result(block) else "call", block[key].get("toolUseId")


def _faults(messages: Sequence[ChatMessage], whole: Sequence[ChatMessage]) -> list[str]:
    """Return what a provider refuses in what is left of a whole list."""
    faults, open_calls = [], list[Any]()
    for kind, key in _events(messages):
        if kind == "call":
            open_calls.append(key)
        elif key in open_calls:
            open_calls.remove(key)
        else:
            faults.append("a result without its call")
    faults += ["a call without its result" for _ in open_calls]
    spoken = [message for message in messages if not _is_instruction(message)]
    if not spoken or not _is_question(spoken[0]):
        faults.append("the first message is not the user's")
    for message, following in itertools.pairwise(messages):
        if message.get("type") == "reasoning" and following.get("role") in ("user", "system"):
            faults.append("reasoning without what follows it")
    return [*faults, *_faults_of_reasoning(set(map(id, messages)), whole)]


def _faults_of_reasoning(kept: set[int], whole: Sequence[ChatMessage]) -> Iterator[str]:
    reasoning: int | None = None
    for message in whole:
        if message.get("type") == "reasoning":
            reasoning = id(message)
        elif _is_question(message) or message.get("type") == "function_call_output":
            reasoning = None
        elif reasoning is not None and id(message) in kept and not _is_instruction(message):
            if reasoning not in kept:
                yield "an item without its reasoning"


def _questions(messages: Sequence[ChatMessage]) -> dict[int, int]:
    """Return the question above each reply, both by identity."""
    question, above = 0, {}
    for message in messages:
        if _is_question(message):
            question = id(message)
        elif not _is_instruction(message):
            above[id(message)] = question
    return above


@pytest.mark.parametrize("form", STEPS)
@settings(max_examples=20)
@given(data=st.data(), budget=st.integers(2, 600))
def test_a_trimmed_list_is_accepted_and_means_the_same(form, data, budget):
    messages = data.draw(_lists(form))
    assert _faults(messages, messages) == []
    for start in (None, *range(len(messages))):  # a turn may begin in the middle of a step
        for tokens in (1, budget):
            _check_trimmed(messages, start, tokens)


def _check_trimmed(messages: list[ChatMessage], start: int | None, budget: int) -> None:
    kept = trim_history(
        messages, turn_start=start, iteration=2, budget=budget, counter=Characters()
    )
    assert _faults(kept, messages) == []
    if start is None:
        start = max(i for i, message in enumerate(messages) if _is_question(message))
    # What is kept is in order and unchanged; the head, instructions and the turn are kept.
    places = {id(message): index for index, message in enumerate(messages)}
    indices = [places[id(message)] for message in kept]
    assert indices == sorted(set(indices))
    left_out = set(range(len(messages))) - set(indices)
    assert all(0 < index < start for index in left_out)
    assert not any(_is_instruction(messages[index]) for index in left_out)
    # A reply stands under its own question.
    above = _questions(messages)
    assert all(above[reply] == question for reply, question in _questions(kept).items())
    # The budget is kept, unless only what the turn needs is left: its question, and its step.
    old = [messages[index] for index in indices if 0 < index < start]
    if sum(message_cost(message, Characters()) for message in old) > budget:
        spoken = [message for message in old if not _is_instruction(message)]
        replies = [id(message) for message in spoken if not _is_question(message)]
        without = [message for message in kept if id(message) not in replies]
        assert not replies or _faults(without, messages) != []
        assert len(spoken) - len(replies) <= 1
        assert not spoken or not _is_question(messages[start])
