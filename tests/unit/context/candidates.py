"""Handmade candidates and costs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reservoir_cli.context.candidate import Candidate, Scores, Tier
from reservoir_cli.context.choose import SelectionOptions, select
from reservoir_cli.context.window_builder import Costs
from reservoir_cli.messages import Role, StoredMessage, ToolCall

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
R, S, Y, O, _ = Tier  # noqa: E741 - recent, similar, synapse, older
BY_TOKENS = Costs(
    lambda candidate: candidate.message.tokens, lambda candidate: candidate.message.tokens, 0, 0
)
NO_NEWEST = SelectionOptions(min_history_messages=0)
TIERS = SelectionOptions("tiers", min_history_messages=0)


def make_candidate(role="user", content=None, *, tokens=10, tier=R, priority=0.5, **more):
    """Return a candidate; its position in a pool sets its id, time and age."""
    message = StoredMessage(
        id=0,
        trace_id=more.get("trace", ""),
        conversation_id=more.get("conversation"),
        partition="p",
        instance=more.get("instance", "i"),
        role=Role(role),
        content="" if content is None else content,
        name=None,
        tool_calls=tuple(ToolCall(call, "look", "{}") for call in more.get("calls", ())),
        tool_call_id=more.get("answers"),
        created_at=START,
        source="test",
        source_id="",
        tokens=tokens,
    )
    cosine = more.get("cosine", 0.0)
    scores = Scores(0.0, cosine or 0.0, 0.0, 0.0, priority, cosine is not None)
    return Candidate(message, tier, more.get("filler", False), scores, None)


def pool(*candidates):
    """Return candidates as a store does: numbered from 1, a minute apart."""
    placed = []
    for number, candidate in enumerate(candidates, 1):
        message = replace(
            candidate.message,
            id=number,
            trace_id=candidate.message.trace_id or f"t{number}",
            created_at=START + timedelta(minutes=number),
            content=candidate.message.content
            or ("" if candidate.message.tool_calls else f"note {number}"),
        )
        placed.append(candidate._replace(message=message))
    own_ids = [candidate.message.id for candidate in placed if candidate.message.instance == "i"][
        ::-1
    ]
    return [
        candidate._replace(
            age=own_ids.index(candidate.message.id) if candidate.message.id in own_ids else None
        )
        for candidate in placed
    ]


def select_from(candidates, budget, options=NO_NEWEST, *, query="", costs=BY_TOKENS):
    return select(
        candidates, query=query, budget=budget, costs=costs, options=options, not_reached=0
    )


def sorted_ids(candidates):
    return sorted(candidate.message.id for candidate in candidates)


def kept_ids(selection):
    return sorted_ids((*selection.recalled, *selection.history))


def drop_reasons(selection):
    return {dropped.candidate.message.id: dropped.reason for dropped in selection.dropped}


def exchange(first=0.1, second=0.1, **more):
    return [
        make_candidate("user", trace="t", priority=first, **more),
        make_candidate("assistant", trace="t", priority=second, **more),
    ]
