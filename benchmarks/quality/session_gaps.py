"""How long a silence should end a session: evidence recall without conversation ids.

    python benchmarks/quality/session_gaps.py --data locomo10.json [--cache FOLDER] [--json FILE]

The same messages and questions as in ``locomo.py``, and those of the long answers, twice:

alone       without conversation ids, so that only setting ``session_gap`` groups messages
interleaved and in each instance a second conversation, whose sessions begin at the same times:
            its messages stand between those that are asked about
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import locomo
import long_answers
from asking import Conversations, progress, ranking_recall, scored_rows, stored
from evidence import Question, figures
from rankings import RANKINGS
from report import print_table, write_json
from vectors import CachedEmbedder, cached_embedder

from reservoir_cli import Message
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME, format_value

#: Seconds; the first leaves each message by itself.
GAPS = (1, 1_800, 3_600, 4 * 3_600, 12 * 3_600, 24 * 3_600)
_OFFSET = timedelta(seconds=15)


def without_ids(conversations: Conversations) -> Conversations:
    """The same messages outside of any conversation."""
    return {
        name: [replace(each, conversation_id=None) for each in messages]
        for name, messages in conversations.items()
    }


def interleaved(conversations: Conversations) -> Conversations:
    """Each conversation with the next one in between, session by session."""
    names = list(conversations)
    return {
        name: [*conversations[name], *_moved(conversations[other], conversations[name])]
        for name, other in zip(names, names[1:] + names[:1], strict=True)
    }


def _moved(others: Sequence[Message], own: Sequence[Message]) -> Iterator[Message]:
    """Messages with their sessions begun where the others' sessions begin."""
    starts = _starts(own)
    theirs = _starts(others)
    for each in others:
        number = each.conversation_id
        if number in starts and each.created_at is not None:
            moved = each.created_at - theirs[number] + starts[number] + _OFFSET
            yield replace(
                each,
                created_at=moved,
                conversation_id=f"other {number}",
                source_id=f"other {each.source_id}",
            )


def _starts(messages: Sequence[Message]) -> Mapping[Any, Any]:
    starts: dict[Any, Any] = {}
    for each in messages:
        starts.setdefault(each.conversation_id, each.created_at)
    return starts


def measure(
    conversations: Conversations,
    questions: Sequence[Question],
    embedder: CachedEmbedder,
    budgets: Sequence[int],
) -> dict[str, Any]:
    """The default ranking with conversation ids, and without them by gap."""
    bare = without_ids(conversations)
    found = {"with conversation ids": _score(conversations, questions, embedder, budgets, 14_400)}
    for gap in progress(GAPS, "gaps"):
        name = f"session_gap {format_value('session_gap', float(gap))}"
        found[name] = _score(bare, questions, embedder, budgets, gap)
    return found


def _score(
    conversations: Conversations,
    questions: Sequence[Question],
    embedder: CachedEmbedder,
    budgets: Sequence[int],
    gap: int,
) -> Any:
    with stored(conversations, embedder, min_history_messages=0, session_gap=float(gap)) as one:
        rows = (scored_rows(one, each) for each in questions)
        return figures(ranking_recall(RANKINGS[locomo.DEFAULT], rows, budgets), budgets)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--data", type=Path, required=True, help="LoCoMo as JSON")
    options.add_argument("--every", type=int, default=1, help="ask only every so manyth question")
    options.add_argument("--model", default=DEFAULT_MODEL_NAME, help="embedding model or folder")
    options.add_argument("--cache", type=Path, help="keep vectors here between runs")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    given = options.parse_args()
    talks, questions = locomo.read(given.data)
    messages, asked = long_answers.read()
    with tempfile.TemporaryDirectory() as folder:
        embedder = cached_embedder(given.model, given.cache or Path(folder))
        found = {}
        for name, conversations, some, budgets in (
            ("LoCoMo, alone", talks, questions[:: given.every], locomo.BUDGETS),
            ("LoCoMo, interleaved", interleaved(talks), questions[:: given.every], locomo.BUDGETS),
            (
                "long answers",
                {long_answers.INSTANCE: messages},
                [each.question for each in asked],
                long_answers.BUDGETS,
            ),
        ):
            found[name] = measure(conversations, some, embedder, budgets)
            print_table(name, found[name], budgets)
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()
