"""Add a long message to the window part by part. Pure."""

from itertools import takewhile

from reservoir_cli.context.candidate import Candidate
from reservoir_cli.context.excerpts import Excerpter, least_tokens, step_size
from reservoir_cli.context.window_builder import WindowBuilder

#: The reason given for keeping an excerpt.
_EXCERPT = "excerpt"


def add_parts(
    candidate: Candidate,
    part: int,
    excerpter: Excerpter,
    window: WindowBuilder,
    budget: int,
    reason: str,
) -> tuple[int, bool]:
    """Add the next parts of a long message if they fit.

    A fenced block is included whole if that fits, else up to one of its lines. If nothing of the
    message is printed yet and the first part does not fit, its beginning is added.

    :returns: how many parts were tried, and whether they are in the window.
    """
    earlier = window.kept.get(candidate.message.id)
    if earlier and earlier.spans is None:
        return len(candidate.parts), True
    room, ranked = window.room(budget), excerpter.parts(candidate)
    for size in dict.fromkeys((step_size(part), 1)):
        parts = ranked[part : part + size]
        if least_tokens(candidate.message, parts) > room:
            continue
        for grown in excerpter.grow(earlier or candidate, parts):
            unchanged = earlier is not None and grown.spans == earlier.spans
            if unchanged or window.add((grown,), budget, _EXCERPT if grown.spans else reason):
                return size, True
    if part == 0:
        shorter = excerpter.shorten(candidate, ranked[part], room)
        any(window.add((excerpt,), budget, _EXCERPT) for excerpt in shorter)
    # A part that does not fit now never will: skip those that follow if they are too large too.
    tried = step_size(part)
    rest = (least_tokens(candidate.message, (span,)) > room for span in ranked[part + tried :])
    return tried + sum(1 for _ in takewhile(bool, rest)), False
