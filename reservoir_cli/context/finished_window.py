"""The finished window: messages, tokens, and turns, in which control tokens are broken up. Pure."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reservoir_cli.chat.turn import CONTEXT, Section, Turn
from reservoir_cli.context.budget import Meter, TokenBudget
from reservoir_cli.context.candidate import Candidate, Selection, Tier
from reservoir_cli.context.layout import count_to_last_question
from reservoir_cli.context.render.control_tokens import defuse
from reservoir_cli.context.render.quote_recalled import (
    GAP,
    SUMMARIES_TITLE,
    Quote,
    cache_quotes,
    introduction,
    title_line,
)
from reservoir_cli.context.request import PROVIDERS, ContextRequest, Piece
from reservoir_cli.messages import Role, ToolCall

KNOWLEDGE_TITLE = "[Retrieved Knowledge]"
EPISODES_TITLE = "[Past Conversation Context]"


@dataclass(frozen=True, slots=True)
class FinishedWindow:
    """The messages chosen for a model, within a budget, before they are rendered."""

    request: ContextRequest
    budget: TokenBudget
    selection: Selection
    meter: Meter
    scope: Mapping[str, str | None]  # where history comes from, and messages are recalled from
    history_used: int  # tokens of the recalled messages and the history as printed
    pieces_left_out: int = 0  # how many pieces of knowledge and episodes exceeded their caps
    notes: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0  # how well the question fits the best message of the scope
    nothing_found: bool = False  # whether the relevance is below the floor
    find_hints: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)
    floor: float = 0.0  # the relevance below which no message fits

    @property
    def used(self) -> int:
        """Tokens of everything that is printed."""
        return sum(self.budget.sections.values()) + self.history_used

    @property
    def hints(self) -> tuple[str, ...]:
        """User-facing suggestions."""
        return self.find_hints()

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The stored messages in the window, recalled ones first."""
        return (*self.selection.recalled, *self.selection.history)

    @property
    def not_reached(self) -> int:
        """How many messages of the scope filling left out because the budget was spent."""
        passed_over = sum(drop.for_room for drop in self.selection.passed_over)
        return self.selection.not_reached + passed_over

    @property
    def truncations(self) -> int:
        """How many messages and pieces were cut or left out for room, one more if it overflows."""
        return self._count_cuts() + sum(drop.for_room for drop in self.selection.dropped)

    @property
    def shortages(self) -> int:
        """How many recent, similar or pinned messages were cut or left out for room, and pieces."""
        return self._count_cuts() + sum(
            drop.for_room
            and (drop.candidate.pinned or drop.candidate.tier in (Tier.RECENT, Tier.SIMILAR))
            for drop in self.selection.dropped
        )

    def _count_cuts(self) -> int:
        cut = sum(candidate.cut for candidate in self.kept)
        return self.pieces_left_out + cut + (self.overflow > 0)

    @property
    def lacks_room(self) -> bool:
        """Whether a stored message was left out for lack of room."""
        left_out = (*self.selection.dropped, *self.selection.passed_over)
        return any(drop.for_room for drop in left_out)

    @property
    def overflow(self) -> int:
        """By how many tokens the window, or the provider's count of it, exceeds the budget."""
        return max(0, self.used - self.budget.available - self.budget.borrowed)

    @property
    def excerpts(self) -> int:
        """How many messages are printed as excerpts."""
        return sum(candidate.spans is not None for candidate in self.kept)

    @property
    def truncated(self) -> bool:
        """Whether anything was left out or cut for lack of room."""
        return self.truncations > 0

    @property
    def _history_source(self) -> str:
        """The instance of history, if it is neither the requested nor the partition's own."""
        instance = self.scope["instance"]
        usual = (self.request.instance, self.request.partition)
        return "" if instance in usual else f" (of {self.scope['partition']}/{instance})"

    def summary(self) -> str:
        """Return a one-line summary of the run for users."""
        share = 100 * self.used / self.budget.available
        pinned = sum(candidate.tier is Tier.PINNED for candidate in self.kept)
        history = sum(candidate.tier is not Tier.PINNED for candidate in self.selection.history)
        parts = [
            f"{self.meter.mark}{self.used:,} of {self.budget.available:,} tokens ({share:.0f}%)",
            f"{history} recent{self._history_source}",
            *([f"{pinned} pinned"] if pinned else []),
            f"{len(self.kept) - history - pinned} recalled",
            *([f"{self.excerpts} by excerpts"] if self.excerpts else []),
            f"{len(self.selection.dropped)} dropped",
            *([f"{self.overflow:,} over budget"] if self.overflow else []),
            f"reserve {self.budget.reserve:,}",
            *([self.request.model] if self.request.model else []),
        ]
        return " · ".join(parts)


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


def all_turns(request: ContextRequest, selection: Selection) -> list[Turn]:
    """Return a whole window in order, the current message last."""
    pruned = history_turns(request, selection.recalled, selection.history)
    return [*fixed_turns(request), *pruned, *current_turn(request)]


def history_turns(
    request: ContextRequest,
    recalled: Sequence[Candidate],
    history: Sequence[Candidate],
    quote: Quote | None = None,
) -> list[Turn]:
    """Return the turns that the budget prunes: recalled messages, then history.

    A request to a provider ends with a user message: without a question, with history's last one.
    """
    role = _recalled_role(request)
    quote = quote or cache_quotes(numbered=request.recall_only)
    quoted = _recalled_turn(request, recalled, role, quote)
    if request.format in PROVIDERS and not request.query.strip():
        history = history[: count_to_last_question(history)]
    return [*_add_summaries(request, quoted, role), *_message_turns(history)]


def _recalled_turn(
    request: ContextRequest, recalled: Sequence[Candidate], role: str, quote: Quote
) -> list[Turn]:
    """Quote recalled messages in order of time, with a line for each day, conversation and gap."""
    if not recalled:
        return []
    numbered, compact = request.recall_only, request.compact
    previous, previous_day, quoted = None, "", []
    for candidate in recalled:
        day, text = quote(candidate)
        label = "" if numbered else day  # a numbered message names its day itself
        quoted.append(_heading(candidate, label, previous, previous_day, compact=compact) + text)
        previous, previous_day = candidate, label
    notes = [introduction(request.recall_note, compact=compact)]
    if request.excerpts_explained and any(row.spans is not None for row in recalled):
        lead = "Whole messages of excerpts" if numbered else "Excerpts have a number"
        partition = shlex.quote(recalled[0].message.partition)
        notes.append(f"{lead}: reservoir view -p {partition} --id N")
    return [Turn(Section.RECALLED, role, "\n".join([*notes, "".join(quoted)]))]


def _heading(
    candidate: Candidate, day: str, previous: Candidate | None, previous_day: str, *, compact: bool
) -> str:
    heading = ""
    if previous:
        heading = "\n\n" if _follows(candidate, previous) else f"\n{GAP}\n"
    if day != previous_day:
        heading += f"{day}\n"
    if not previous or _conversation(candidate) != _conversation(previous):
        heading += title_line(candidate.title, compact=compact)
    return heading


def _follows(candidate: Candidate, previous: Candidate) -> bool:
    if candidate.after_gap or candidate.position is None or previous.position is None:
        return False
    same_conversation = _conversation(candidate) == _conversation(previous)
    return same_conversation and candidate.position == previous.position + 1


def _conversation(candidate: Candidate) -> tuple[str, str | None]:
    return candidate.message.instance, candidate.message.conversation_id


def _add_summaries(request: ContextRequest, recalled: list[Turn], role: str) -> list[Turn]:
    summaries = summaries_turn(request)
    if not summaries:
        return recalled
    texts = [turn.content for turn in (*summaries, *recalled)]
    return [Turn(Section.RECALLED, role, "\n\n".join(texts))]


def summaries_turn(request: ContextRequest) -> list[Turn]:
    """Render the summaries of other conversations, without an empty line."""
    if not request.summaries:
        return []
    lines = [defuse(" ".join(piece.text.split())) for piece in request.summaries]
    return [Turn(Section.EPISODE, _recalled_role(request), "\n".join([SUMMARIES_TITLE, *lines]))]


def _recalled_role(request: ContextRequest) -> str:
    return Role.USER.value if request.recalled_role == "user" else CONTEXT


def _message_turns(history: Iterable[Candidate]) -> list[Turn]:
    return [
        Turn(
            Section.HISTORY,
            candidate.message.role.value,
            defuse(candidate.message.content),
            tuple(map(defuse_call, candidate.message.tool_calls)),
            candidate.message.tool_call_id,
            candidate.message.name,
        )
        for candidate in history
    ]


def defuse_call(call: ToolCall) -> ToolCall:
    """Break up control tokens in a call of a tool."""
    return ToolCall(call.id, defuse(call.name), defuse(call.arguments))


def ends_with_a_question(turns: Iterable[Turn]) -> bool:
    """Return whether there is a user message to answer: the question, or one of history."""
    sections = (Section.HISTORY, Section.CURRENT)
    return any(turn.role == Role.USER and turn.section in sections for turn in turns)
