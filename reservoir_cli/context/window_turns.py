"""List the window's turns, before they are rendered for a provider. Pure.

Control tokens of chat templates are broken up in all stored text.
"""

from collections.abc import Iterable, Sequence

from reservoir_cli.chat.turn import CONTEXT, Section, Turn
from reservoir_cli.context.candidate import Candidate
from reservoir_cli.context.render.recalled import Quote, cache_quotes, defuse, recalled_turn
from reservoir_cli.context.request import PROVIDERS, ContextRequest, Piece
from reservoir_cli.messages import Role, ToolCall

KNOWLEDGE_TITLE = "[Retrieved Knowledge]"
EPISODES_TITLE = "[Past Conversation Context]"
SUMMARIES_TITLE = "[Summaries]"


def fixed_turns(request: ContextRequest) -> list[Turn]:
    """Return the sections that the budget never prunes, without the current message."""
    turns = []
    if request.system and request.system.strip():
        turns.append(Turn(Section.SYSTEM, Role.SYSTEM.value, request.system))
    for procedure in request.procedures:
        text = f"[Procedure: {procedure.name}]\n{procedure.text}"
        turns.append(Turn(Section.PROCEDURE, Role.SYSTEM.value, text))
    return turns + knowledge_turn(request.knowledge) + episodes_turn(request.episodes)


def knowledge_turn(pieces: Sequence[Piece]) -> list[Turn]:
    """Render retrieved knowledge, each piece under its source."""
    if not pieces:
        return []
    text = "\n---\n".join(f"Source: {piece.name}\n{piece.text}" for piece in pieces)
    return [Turn(Section.KNOWLEDGE, CONTEXT, f"{KNOWLEDGE_TITLE}\n{text}")]


def episodes_turn(pieces: Sequence[Piece]) -> list[Turn]:
    """Render snippets of past conversations unchanged."""
    if not pieces:
        return []
    text = "\n".join(piece.text for piece in pieces)
    return [Turn(Section.EPISODE, CONTEXT, f"{EPISODES_TITLE}\n{text}")]


def current_turn(request: ContextRequest) -> list[Turn]:
    """Return the question as a turn; nothing if it is empty or the request is a recall."""
    if request.recall_only or not request.query.strip():
        return []
    return [Turn(Section.CURRENT, Role.USER.value, request.query)]


def history_turns(
    request: ContextRequest,
    recalled: Sequence[Candidate],
    history: Sequence[Candidate],
    quote: Quote | None = None,
) -> list[Turn]:
    """Return the turns that the budget prunes: recalled messages, then history.

    A request to a provider ends with a user message: without a question, with the last one of
    history.

    :param quote: see :func:`cache_quotes`.
    """
    role = Role.USER.value if request.recalled_role == "user" else CONTEXT
    quoted = recalled_turn(
        recalled,
        role,
        quote or cache_quotes(numbered=request.recall_only),
        numbered=request.recall_only,
        note=request.recall_note,
        explained=request.excerpts_explained,
    )
    turns = [*_add_summaries(request, quoted, role), *_message_turns(history)]
    if request.format in PROVIDERS and not request.query.strip():
        return cut_after_last_user(turns)
    return turns


def _add_summaries(request: ContextRequest, recalled: list[Turn], role: str) -> list[Turn]:
    """Put summaries of other conversations above the recalled messages in the same turn."""
    if not request.summaries:
        return recalled
    lines = "\n".join(quote_summary(piece.text) for piece in request.summaries)
    below = [turn.content for turn in recalled]
    return [Turn(Section.RECALLED, role, "\n\n".join([f"{SUMMARIES_TITLE}\n{lines}", *below]))]


def quote_summary(text: str) -> str:
    """Quote a summary on one line."""
    return defuse(" ".join(text.split()))


def _message_turns(history: Iterable[Candidate]) -> list[Turn]:
    return [
        Turn(
            Section.HISTORY,
            candidate.message.role.value,
            defuse(candidate.message.content),
            tuple(map(_defuse_call, candidate.message.tool_calls)),
            candidate.message.tool_call_id,
            candidate.message.name,
        )
        for candidate in history
    ]


def _defuse_call(call: ToolCall) -> ToolCall:
    return ToolCall(call.id, defuse(call.name), defuse(call.arguments))


def cut_after_last_user(turns: Sequence[Turn]) -> list[Turn]:
    """Cut history after its last question, so that a request without a question ends with it."""
    user_indexes = [index for index, turn in enumerate(turns) if _is_user_message(turn)]
    end = user_indexes[-1] + 1 if user_indexes else 0
    return [
        turn
        for index, turn in enumerate(turns)
        if index < end or turn.section is not Section.HISTORY
    ]


def ends_with_a_question(turns: Iterable[Turn]) -> bool:
    """Return whether there is a user message to answer: the question, or one of history."""
    return any(map(_is_user_message, turns))


def _is_user_message(turn: Turn) -> bool:
    return turn.role == Role.USER and turn.section in (Section.HISTORY, Section.CURRENT)
