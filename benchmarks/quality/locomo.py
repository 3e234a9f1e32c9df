"""Evidence recall on LoCoMo, a public benchmark of long conversations.

    python benchmarks/quality/locomo.py --data locomo10.json [--cache FOLDER] [--json FILE]
        [--plot FILE]

LoCoMo (Maharana et al., 2024, CC BY-NC 4.0) is not part of this repository. Each of its
conversations becomes an instance; each question of categories 1 to 4 that names evidence is asked,
without the speakers' names. A score is the mean share of the evidence over the budgets of 250, 500,
1,000, 2,000 and 4,000 tokens:

rankings    everything is returned with its scores, and packed by a ranking of them, skipping what
            does not fit, at ceil(characters / 4) + 4 tokens a message
printed     what a context of that budget really holds, every setting at its default
delayed     the default ranking, asked so many sessions after the last evidence, or at the end
            if that comes first, when only the messages up to then are stored
"""

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from asking import (
    PARTITION,
    Conversations,
    printed_recall,
    progress,
    ranking_recall,
    scored_rows,
    stored,
)
from evidence import Question, Rows, figures, interval
from rankings import PARTS, RANKINGS
from report import draw, print_table, write_json
from vectors import CachedEmbedder, cached_embedder

from reservoir_cli import Message
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME

BUDGETS = (250, 500, 1_000, 2_000, 4_000)
DELAYS = (0, 1, 3, 8)
DEFAULT = "default: 0.7 similarity + 0.3 recency"
#: Contexts for a ranking: the newest messages are not taken before their turn.
_BY_PRIORITY = {"min_history_messages": 0}
_DRAWN = (
    "recency only",
    "0.7 cosine + 0.3 linear recency",
    "BM25 (FTS5)",
    "cosine",
    "0.6 mm(cosine) + 0.4 mm(BM25)",
    DEFAULT,
)


def read(path: Path) -> tuple[Conversations, list[Question]]:
    """The conversations by their name, and the questions about them."""
    conversations, questions = {}, []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        name, talk = sample["sample_id"], sample["conversation"]
        conversations[name] = list(messages_of(talk))
        known = {each.source_id for each in conversations[name]}
        for asked in sample["qa"]:
            evidence = frozenset(each for each in asked.get("evidence", ()) if each in known)
            if asked["category"] in (1, 2, 3, 4) and evidence:
                text = without_names(asked["question"], (talk["speaker_a"], talk["speaker_b"]))
                questions.append(Question(name, text, evidence))
    return conversations, questions


def messages_of(talk: Mapping[str, Any]) -> Iterator[Message]:
    """The messages of a conversation, 30 seconds apart in each session."""
    numbers = sorted(
        int(match[1]) for key in talk if (match := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for index, turn in enumerate(talk[f"session_{number}"]):
            caption = turn.get("blip_caption")
            yield Message(
                "user" if turn["speaker"] == talk["speaker_a"] else "assistant",
                turn["text"] + (f" [image: {caption}]" if caption else ""),
                created_at=start.replace(tzinfo=UTC) + timedelta(seconds=30 * index),
                conversation_id=str(number),
                source="locomo",
                source_id=turn["dia_id"],
            )


def without_names(question: str, names: Sequence[str]) -> str:
    """A question without the speakers' first names, which mislead every ranking here."""
    firsts = "|".join(re.escape(name.split()[0]) for name in names)
    return " ".join(re.sub(rf"\b(?:{firsts})\b(?:['\u2019]s)?", " ", question).split())


def measure_rankings(
    conversations: Conversations, questions: Sequence[Question], embedder: CachedEmbedder
) -> dict[str, Any]:
    """Every ranking, every part of the default, and what the default is ahead of each."""
    with stored(conversations, embedder, **_BY_PRIORITY) as reservoir:
        asked = [scored_rows(reservoir, each) for each in progress(questions, "asking")]
    found, scores = {}, {}
    for name, ranking in progress([*RANKINGS.items(), *PARTS.items()], "ranking"):
        recall = ranking_recall(ranking, asked, BUDGETS)
        found[name], scores[name] = dict(figures(recall, BUDGETS)), recall.scores
    for name, each in found.items():
        each["default_ahead_by"] = interval(scores[DEFAULT] - scores[name])
    return found


def measure_printed(
    conversations: Conversations, questions: Sequence[Question], embedder: CachedEmbedder
) -> dict[str, Any]:
    """Contexts as they are printed."""
    with stored(conversations, embedder) as reservoir:
        recall = printed_recall(reservoir, questions, BUDGETS)
    return {"every setting at its default": figures(recall, BUDGETS)}


def measure_delayed(
    conversations: Conversations, questions: Sequence[Question], embedder: CachedEmbedder
) -> dict[str, Any]:
    """The default ranking, some sessions after the last evidence."""
    asked: dict[int, list[Rows]] = {delay: [] for delay in DELAYS}
    with stored({}, embedder, **_BY_PRIORITY) as reservoir:
        for name, messages in progress(list(conversations.items()), "asking later"):
            own = [each for each in questions if each.instance == name]
            session_of = {each.source_id: int(each.conversation_id or 0) for each in messages}
            last = {each: max(session_of[one] for one in each.evidence) for each in own}
            end = max(session_of.values())
            for session, some in groupby(messages, lambda each: int(each.conversation_id or 0)):
                reservoir.ingest(list(some), partition=PARTITION, instance=name)
                for delay in DELAYS:
                    due = (each for each in own if min(last[each] + delay, end) == session)
                    asked[delay] += [scored_rows(reservoir, each) for each in due]
    return {
        f"{delay} sessions later": figures(
            ranking_recall(RANKINGS[DEFAULT], rows, BUDGETS), BUDGETS
        )
        for delay, rows in asked.items()
    }


PARTS_OF_THIS = {
    "rankings": measure_rankings,
    "printed": measure_printed,
    "delayed": measure_delayed,
}


def main() -> None:
    """Measure and print."""
    given = _arguments()
    conversations, questions = read(given.data)
    print(f"{len(questions)} questions, {len(conversations)} conversations, {given.model}")
    with tempfile.TemporaryDirectory() as folder:
        embedder = cached_embedder(given.model, given.cache or Path(folder))
        found = {}
        for name in given.only or PARTS_OF_THIS:
            found[name] = PARTS_OF_THIS[name](conversations, questions, embedder)
            print_table(name, found[name], BUDGETS)
    if given.json:
        write_json(given.json, found)
    if given.plot and "rankings" in found:
        lines = {name: found["rankings"][name] for name in _DRAWN}
        draw(given.plot, lines, f"LoCoMo, {len(questions)} questions")


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--data", type=Path, required=True, help="LoCoMo as JSON")
    options.add_argument("--model", default=DEFAULT_MODEL_NAME, help="embedding model or folder")
    options.add_argument("--only", nargs="+", choices=PARTS_OF_THIS, help="measure only these")
    options.add_argument("--cache", type=Path, help="keep vectors here between runs")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    options.add_argument("--plot", type=Path, help="draw recall against budget into this PNG")
    return options.parse_args()


if __name__ == "__main__":
    main()
