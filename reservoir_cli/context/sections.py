"""Count and cap the sections of a context that its budget does not prune."""

from collections.abc import Sequence
from dataclasses import replace

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context import window_turns
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.render.formats import count_frame, count_turns
from reservoir_cli.context.request import ContextRequest
from reservoir_cli.settings.schema import Settings


def count_sections(request: ContextRequest, meter: Meter) -> dict[Section, int]:
    """Count the tokens of each section that is not pruned; the question's include the frame."""
    fixed = [*window_turns.fixed_turns(request), *window_turns.current_turn(request)]
    sections = {
        section: count_turns(
            [turn for turn in fixed if turn.section is section], request.format, meter
        )
        for section in dict.fromkeys(turn.section for turn in fixed)
    }
    if frame := count_frame(request.format, meter):
        sections[Section.CURRENT] = sections.get(Section.CURRENT, 0) + frame
    return sections


def cap_sections(request: ContextRequest, settings: Settings, meter: Meter) -> ContextRequest:
    """Return the request without the pieces that exceed their section's cap."""

    def count(pieces: Sequence[Turn]) -> int:
        return count_turns(pieces, request.format, meter)

    knowledge, episodes = request.knowledge, request.episodes
    cap = settings.max_knowledge_tokens
    while len(knowledge) > 1 and count(window_turns.knowledge_turn(knowledge)) > cap:
        knowledge = knowledge[:-1]
    while episodes and count(window_turns.episodes_turn(episodes)) > settings.max_episode_tokens:
        episodes = episodes[1:]
    return replace(request, knowledge=knowledge, episodes=episodes)


def cap_notes(
    request: ContextRequest, left_out: int, settings: Settings, meter: Meter
) -> tuple[str, ...]:
    """Return notes on pieces left out by the caps, and on a first piece that exceeds its cap.

    :param left_out: how many pieces were left out.
    """
    notes = []
    if left_out:
        noun = "piece" if left_out == 1 else "pieces"
        notes.append(f"{left_out} {noun} of knowledge and episodes left out: beyond the caps")
    first = count_turns(window_turns.knowledge_turn(request.knowledge), request.format, meter)
    if first > settings.max_knowledge_tokens:
        notes.append(
            f"the first piece of knowledge alone takes {first:,} tokens, more than "
            f"max_knowledge_tokens ({settings.max_knowledge_tokens:,})"
        )
    return tuple(notes)
