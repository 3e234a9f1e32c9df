"""The window as a list of turns, before a provider's form is chosen. Pure."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from reservoir_cli.chat.turn import CONTEXT, Section, Turn
from reservoir_cli.context.types import PROVIDERS, Candidate, ContextRequest, Piece
from reservoir_cli.messages import Role, StoredMessage, plain_text
from reservoir_cli.tokens import TokenCounter

RECALLED_TITLE = "[Recalled Messages]"
KNOWLEDGE_TITLE = "[Retrieved Knowledge]"
EPISODES_TITLE = "[Past Conversation Context]"
#: Stands between a recalled reply and a question above it that is not its own.
GAP = "…"


def fixed_turns(request: ContextRequest) -> list[Turn]:
    """The sections that are never pruned by the budget, without the current message."""
    turns = []
    if request.system and request.system.strip():
        turns.append(Turn(Section.SYSTEM, Role.SYSTEM.value, request.system))
    for each in request.procedures:
        text = f"[Procedure: {each.name}]\n{each.text}"
        turns.append(Turn(Section.PROCEDURE, Role.SYSTEM.value, text))
    return turns + knowledge_turn(request.knowledge) + episodes_turn(request.episodes)


def knowledge_turn(pieces: Sequence[Piece]) -> list[Turn]:
    """Retrieved knowledge, each piece under its source."""
    if not pieces:
        return []
    text = "\n---\n".join(f"Source: {each.name}\n{each.text}" for each in pieces)
    return [Turn(Section.KNOWLEDGE, CONTEXT, f"{KNOWLEDGE_TITLE}\n{text}")]


def episodes_turn(pieces: Sequence[Piece]) -> list[Turn]:
    """Snippets of past conversations, each as it was given."""
    if not pieces:
        return []
    text = "\n".join(each.text for each in pieces)
    return [Turn(Section.EPISODE, CONTEXT, f"{EPISODES_TITLE}\n{text}")]


def current_turn(request: ContextRequest) -> list[Turn]:
    """The question; none when it is empty."""
    if not request.query.strip():
        return []
    return [Turn(Section.CURRENT, Role.USER.value, request.query)]


def history_turns(
    request: ContextRequest, recalled: Sequence[Candidate], history: Sequence[Candidate]
) -> list[Turn]:
    """What is pruned by the budget: recalled messages, then history.

    A request to a provider ends with the user's message, if not with the question then with the
    last of history.
    """
    found = [*recalled_turn(recalled), *_run_turns(history)]
    if request.format in PROVIDERS and not request.query.strip():
        return until_last_user(found)
    return found


def recalled_turn(recalled: Sequence[Candidate]) -> list[Turn]:
    """Recalled messages as quotations, a line with the date before each day."""
    if not recalled:
        return []
    lines = [RECALLED_TITLE]
    for day, some in groupby(recalled, key=lambda each: each.message.created_at.date()):
        lines.append(day.isoformat())
        for each in some:
            lines += recalled_lines(each)
    return [Turn(Section.RECALLED, CONTEXT, "\n".join(lines))]


def recalled_lines(candidate: Candidate) -> list[str]:
    """A recalled message with what keeps answers apart from other questions."""
    lines = [GAP] if candidate.after_gap else []
    lines.append(recalled_line(candidate.message))
    if candidate.left_out is not None:
        lines.append(answer_left_out(candidate.left_out))
    return lines


def answer_left_out(answer: int) -> str:
    """The line below a recalled question that its answer does not follow."""
    return f"[answer left out: #{answer}]"


def recalled_line(message: StoredMessage) -> str:
    """A recalled message as it is quoted."""
    return f"{message.role}: {plain_text(message)}"


def _run_turns(history: Iterable[Candidate]) -> list[Turn]:
    return [
        Turn(
            Section.HISTORY,
            each.message.role.value,
            each.message.content,
            each.message.tool_calls,
            each.message.tool_call_id,
            each.message.name,
        )
        for each in history
    ]


def until_last_user(turns: Sequence[Turn]) -> list[Turn]:
    """History up to its last question: without a new one, a request ends with that."""
    users = [place for place, each in enumerate(turns) if each.role == Role.USER]
    end = users[-1] + 1 if users else 0
    return [
        each
        for place, each in enumerate(turns)
        if place < end or each.section is not Section.HISTORY
    ]


def shorten_result(message: StoredMessage, limit: int, counter: TokenCounter) -> StoredMessage:
    """Cut a tool result at a line end, with a marker that names the message and what is missing.

    A text that has no line end where it must be cut is cut inside the line.

    :param limit: tokens of the cut text with its marker, by the counter.
    """
    text = message.content
    room = limit - counter.count("\n" + _marker(message, message.tokens))
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    head = text[:low]
    if "\n" in head:
        head = head[: head.rindex("\n")]
    marker = _marker(message, message.tokens - counter.count(head))
    shown = f"{head}\n{marker}" if head else marker
    return replace(message, content=shown, tokens=counter.count(shown))


def _marker(message: StoredMessage, missing: int) -> str:
    place = shlex.quote(message.partition)
    return (
        f"[… {missing:,} of {message.tokens:,} tokens left out: "
        f"reservoir view -p {place} --id {message.id}]"
    )
