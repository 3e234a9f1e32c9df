"""Evidence recall on LoCoMo, a public benchmark of long conversations.

    python benchmarks/locomo.py --data locomo10.json [--json FILE]

LoCoMo (Maharana et al., 2024, CC BY-NC 4.0) is not part of this repository. Each of its
conversations becomes an instance; each question of categories 1 to 4 that names evidence is asked,
without the speakers' names. Two scores, both the mean share of the evidence over the budgets of
250, 500, 1,000, 2,000 and 4,000 tokens:

ranking     everything is returned with its priority, and packed greedily at
            ceil(characters / 4) + 4 tokens a message
end to end  what a context of that budget really holds, every setting at its default
"""

import argparse
import json
import math
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from reservoir_cli import Message, Reservoir

BUDGETS = (250, 500, 1_000, 2_000, 4_000)
#: Settings of each ranking, weakest first.
RANKINGS: dict[str, dict[str, Any]] = {
    "recency only": {"similarity_weight": 0.0, "recency_weight": 1.0},
    "cosine": {"similarity": "cosine", "similarity_weight": 1.0, "recency_weight": 0.0},
    "0.7 cosine + 0.3 half-life of 30 days": {"similarity": "cosine", "recency": "age"},
    "similarity": {"similarity_weight": 1.0, "recency_weight": 0.0},
    "0.7 similarity + 0.3 recency (default)": {},
}


@dataclass(frozen=True)
class Question:
    """A question without the speakers' names, and the source ids of its evidence."""

    instance: str
    text: str
    evidence: frozenset[str]


def read(path: Path) -> tuple[dict[str, list[Message]], list[Question]]:
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


def messages_of(talk: Mapping[str, Any]) -> Sequence[Message]:
    """The messages of a conversation, 30 seconds apart in each session."""
    found = []
    numbers = sorted(
        int(match[1]) for key in talk if (match := re.fullmatch(r"session_(\d+)", key))
    )
    for number in numbers:
        start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for index, turn in enumerate(talk[f"session_{number}"]):
            caption = turn.get("blip_caption")
            found.append(
                Message(
                    "user" if turn["speaker"] == talk["speaker_a"] else "assistant",
                    turn["text"] + (f" [image: {caption}]" if caption else ""),
                    created_at=start.replace(tzinfo=UTC) + timedelta(seconds=30 * index),
                    conversation_id=str(number),
                    source="locomo",
                    source_id=turn["dia_id"],
                )
            )
    return found


def without_names(question: str, names: Sequence[str]) -> str:
    """A question without the speakers' first names, which mislead every ranking here."""
    firsts = "|".join(re.escape(name.split()[0]) for name in names)
    return " ".join(re.sub(rf"\b(?:{firsts})\b(?:['\u2019]s)?", " ", question).split())


def ranking_recall(reservoir: Reservoir, question: Question) -> list[float]:
    """Recall at each budget when everything is packed by its priority."""
    window = reservoir.context(
        question.text, partition="locomo", instance=question.instance, budget=900_000_000
    )
    rows = [row for row in window.messages if row["id"] is not None]
    rows.sort(key=lambda row: (-row["priority"], -row["id"]))
    shares = []
    for budget in BUDGETS:
        left, held = budget, 0
        for row in rows:
            cost = math.ceil(len(row["content"]) / 4) + 4
            if cost <= left:
                left -= cost
                held += row["source_id"] in question.evidence
        shares.append(held / len(question.evidence))
    return shares


def end_to_end_recall(reservoir: Reservoir, question: Question) -> list[float]:
    """Recall of the contexts that are really printed."""
    shares = []
    for budget in BUDGETS:
        window = reservoir.context(
            question.text, partition="locomo", instance=question.instance, budget=budget
        )
        kept = {row["source_id"] for row in window.messages}
        shares.append(len(kept & question.evidence) / len(question.evidence))
    return shares


def interval(scores: Sequence[float], rounds: int = 2_000) -> tuple[float, float]:
    """95% interval of a mean, by bootstrap over the questions."""
    values, random = np.array(scores), np.random.default_rng(1)
    means = [values[random.integers(0, len(values), len(values))].mean() for _ in range(rounds)]
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def measure(store: Path, questions: Sequence[Question], settings: dict[str, Any], ask: Any) -> Any:
    """Mean recall by budget, the score, and its interval."""
    with Reservoir.open(store, settings=settings, offline=True) as reservoir:
        shares = []
        for number, question in enumerate(questions, 1):
            shares.append(ask(reservoir, question))
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{number} of {len(questions)} ")
    scores = [sum(each) / len(each) for each in shares]
    by_budget = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
    return {
        "score": sum(scores) / len(scores),
        "interval": interval(scores),
        "by_budget": dict(zip(map(str, BUDGETS), by_budget, strict=True)),
    }


def main() -> None:
    """Measure every ranking and print a table."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--data", type=Path, required=True, help="LoCoMo as JSON")
    options.add_argument("--store", type=Path, help="keep the embedded store here")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    given = options.parse_args()
    conversations, questions = read(given.data)
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or Path(folder) / "locomo.db"
        with Reservoir.open(store) as reservoir:
            for name, messages in conversations.items():
                reservoir.ingest(messages, partition="locomo", instance=name)
        found = {
            f"ranking: {name}": measure(
                store, questions, {**settings, "min_history_messages": 0}, ranking_recall
            )
            for name, settings in RANKINGS.items()
        }
        found["end to end (default)"] = measure(store, questions, {}, end_to_end_recall)
    print(f"evidence recall, {len(questions)} questions, {len(conversations)} conversations")
    print(f"{'':<50} {'score':>6} {'95% interval':>14}" + "".join(f"{b:>7,}" for b in BUDGETS))
    for name, each in found.items():
        low, high = each["interval"]
        budgets = "".join(f"{share:7.3f}" for share in each["by_budget"].values())
        print(f"{name:<50} {each['score']:6.3f} [{low:5.3f}, {high:5.3f}]{budgets}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
