"""Evidence recall on long answers, a data set of our own in ``benchmarks/quality/long_answers``.

    python benchmarks/quality/long_answers.py [--cache FOLDER] [--json FILE] [--plot FILE]

Twelve conversations of a person with an assistant, about operations, code, cooking, law, health,
travel, heating, statistics, gardening, teaching and bicycles. An answer has 430 to 920 word
pieces. A question names its evidence by a quotation, so that it is known how deep inside of the
answer it stands. All conversations share an instance; scores are the mean share of the evidence
over the budgets of 750 to 4,000 tokens, as in ``locomo.py``.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from asking import printed_recall, progress, ranking_recall, scored_rows, stored
from evidence import Floats, Question, Recall, figures, interval
from rankings import (
    RANKINGS,
    Ranking,
    around,
    changed,
    context_bm25,
    oracle,
    with_recency,
)
from report import draw, print_table, write_json
from vectors import CachedEmbedder, cached_embedder

from reservoir_cli import Message
from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME

TEXTS = Path(__file__).parent / "long_answers"
BUDGETS = (750, 1_000, 1_500, 2_000, 4_000)
INSTANCE = "everything"
DEFAULT = "default: 0.7 similarity + 0.3 recency"
_HEAD = re.compile(r"^=== (conversation|user|assistant)(?: (\S+ \S+) (.*)|, (\d+) days? later)?$")
_SIMPLE = ("recency only", "BM25 (FTS5)", "cosine", "0.6 mm(cosine) + 0.4 mm(BM25)", DEFAULT)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the depth of its evidence.

    :param depth: at which share of its message the deepest quotation begins, 0…1.
    """

    question: Question
    depth: float


def read(folder: Path = TEXTS) -> tuple[list[Message], list[Asked]]:
    """The messages of all conversations, and the questions about them."""
    messages = [
        message
        for path in sorted(folder.glob("*.md"))
        for message in conversation(path.read_text(encoding="utf-8"), path.stem)
    ]
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return messages, [_asked(json.loads(line), messages) for line in lines]


def conversation(text: str, name: str) -> Iterator[Message]:
    """The messages of a file: a question every six minutes, or some days later where it says so."""
    blocks = re.split(r"^(=== .*)\n", text, flags=re.MULTILINE)[1:]
    moment, count = datetime.min.replace(tzinfo=UTC), 0
    for head, content in zip(blocks[::2], blocks[1::2], strict=True):
        match = _HEAD.match(head)
        if match is None:
            raise ValueError(f"{name}: {head}")
        kind, start, _, days = match.groups()
        if kind == "conversation":
            moment = datetime.fromisoformat(start).replace(tzinfo=UTC)
            continue
        if kind == "user":
            moment += timedelta(days=int(days)) if days else timedelta(minutes=6)
        count += 1
        yield Message(
            kind,
            content.strip(),
            created_at=moment + timedelta(seconds=0 if kind == "user" else 25),
            trace_id=f"{name}-{(count + 1) // 2}",
            conversation_id=name,
            source="long answers",
            source_id=f"{name}-{count}",
        )


def _asked(row: Mapping[str, Any], messages: Sequence[Message]) -> Asked:
    evidence, depths = set(), []
    for quotation in row["evidence"]:
        holding = [each for each in messages if quotation in each.content]
        if len(holding) != 1:
            raise ValueError(f"{len(holding)} messages hold {quotation!r}")
        evidence.add(str(holding[0].source_id))
        depths.append(holding[0].content.index(quotation) / len(holding[0].content))
    return Asked(Question(INSTANCE, row["question"], frozenset(evidence)), max(depths))


def _words(**change: float) -> Ranking:
    return lambda rows: with_recency(around(rows, words=context_bm25(rows, **change)), rows.recency)


#: What is compared here: simple rankings, and the default with parts changed.
COMPARED: Mapping[str, Ranking] = {
    **{name: RANKINGS[name] for name in _SIMPLE},
    "without words of neighbours": _words(share=0.0),
    "without length in BM25": _words(b=0.0),
    "without reply link": changed(link=0.0),
    "without best around": changed(best=0.0),
    **{f"best within {reach} messages": changed(reach=reach) for reach in (2, 5)},
    **{
        f"best within {reach:,} tokens": changed(reach_tokens=reach)
        for reach in (250, 500, 1_000, 2_000)
    },
    "oracle": oracle,
}


def measure(embedder: CachedEmbedder) -> dict[str, Any]:
    """Every ranking, contexts as they are printed, and the default by depth."""
    messages, asked = read()
    questions = [each.question for each in asked]
    with stored({INSTANCE: messages}, embedder, min_history_messages=0) as reservoir:
        rows = [scored_rows(reservoir, each) for each in progress(questions, "asking")]
    with stored({INSTANCE: messages}, embedder) as reservoir:
        printed = printed_recall(reservoir, questions, BUDGETS)
    recalls = {name: ranking_recall(each, rows, BUDGETS) for name, each in COMPARED.items()}
    # A model reads the beginning of a text that is too long for it.
    vectors = embedder.encode_documents([each.content for each in by_time(messages)])
    beginnings = [
        replace(each, cosine=(vectors @ embedder.encode_query(question.text)).astype(np.float64))
        for each, question in zip(rows, questions, strict=True)
    ]
    recalls["default, one vector a message"] = ranking_recall(changed(), beginnings, BUDGETS)
    default = recalls[DEFAULT]
    found = {name: dict(figures(each, BUDGETS)) for name, each in recalls.items()}
    for name, each in found.items():
        each["default_ahead_by"] = interval(default.scores - recalls[name].scores)
    return {
        "rankings": found,
        "printed": {"every setting at its default": figures(printed, BUDGETS)},
        "depth": _by_depth(default, np.array([each.depth for each in asked])),
    }


def _by_depth(recall: Recall, depths: Floats) -> dict[str, Any]:
    third = np.minimum((3 * depths).astype(int), 2)
    return {
        f"evidence in the {name} third": figures(
            Recall(recall.by_budget[third == number], recall.by_depth[third == number]), BUDGETS
        )
        for number, name in enumerate(("first", "middle", "last"))
    }


def by_time(messages: Sequence[Message]) -> list[Message]:
    """Messages as the store orders them."""
    return sorted(messages, key=lambda each: each.created_at or datetime.min.replace(tzinfo=UTC))


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--model", default=DEFAULT_MODEL_NAME, help="embedding model or folder")
    options.add_argument("--cache", type=Path, help="keep vectors here between runs")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    options.add_argument("--plot", type=Path, help="draw recall against budget into this PNG")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(cached_embedder(given.model, given.cache or Path(folder)))
    for name, part in found.items():
        print_table(name, part, BUDGETS)
    if given.json:
        write_json(given.json, found)
    if given.plot:
        lines = {name: found["rankings"][name] for name in (*_SIMPLE, "oracle")}
        draw(given.plot, lines, "Long answers")


if __name__ == "__main__":
    main()
