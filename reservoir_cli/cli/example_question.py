"""Choose an example question from imported conversations, for the user's first context."""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum

from reservoir_cli.messages import Filter, Scope, StoredMessage
from reservoir_cli.redaction.find_secrets import find
from reservoir_cli.reservoir import Reservoir

_MOST_SEARCHED = 100  # conversations searched for an example question
#: A question that can be typed at a prompt: one line, neither a command nor markup.
_TYPEABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f`\"$\\!/<][^\x00-\x1f\x7f-\x9f`\"$\\!]{10,88}")


class _Rank(IntEnum):
    TEXT = 1
    QUESTION = 2
    ANSWERED = 3


def choose_question(reservoir: Reservoir, home: str, forms: Sequence[str]) -> str | None:
    """Return an answered question without secrets, else any question, short text or title."""
    best: tuple[int, str | None] = (0, None)
    for rank, text in _candidates(reservoir, home, forms):
        if rank > best[0]:
            best = (rank, text)
        if rank == _Rank.ANSWERED:
            break
    return best[1]


def _candidates(
    reservoir: Reservoir, home: str, forms: Sequence[str]
) -> Iterator[tuple[_Rank, str]]:
    summaries = reservoir.conversations(Scope(home))
    imported = [summary for summary in summaries if summary.conversation.source in forms]
    for summary in imported[:_MOST_SEARCHED]:
        where = Filter(role="user", conversation_id=summary.conversation.id)
        for prompt in reservoir.view(Scope(home, summary.instance), 0, where):
            text = prompt.content.strip()
            if _is_usable(text):
                yield _rank(reservoir, prompt, text), text
        title = summary.conversation.title
        if title and _is_usable(title):
            yield _Rank.QUESTION if title.endswith("?") else _Rank.TEXT, title


def _is_usable(text: str) -> bool:
    return bool(_TYPEABLE.fullmatch(text)) and "[redacted:" not in text and not find(text)


def _rank(reservoir: Reservoir, prompt: StoredMessage, text: str) -> _Rank:
    if not text.endswith("?"):
        return _Rank.TEXT
    where = Filter(role="assistant", trace_id=prompt.trace_id)
    replies = reservoir.view(Scope(prompt.partition, prompt.instance), 0, where)
    is_answered = any(reply.content.strip() for reply in replies)
    return _Rank.ANSWERED if is_answered else _Rank.QUESTION
