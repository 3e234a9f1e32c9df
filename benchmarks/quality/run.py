"""Measure how much of a question's evidence a context holds, on one data set.

    python benchmarks/quality/run.py --set NAME --data FILE [--cache FOLDER] [--json FILE]

Sets are locomo, beam, mtrag, memorybank, qmsum, long-answers and samples; the last two are part of
this repository and need no --data. A score is the mean share of the evidence over the budgets.

rankings   every message with its scores, packed by a ranking of them, skipping what does not fit,
           at ceil(characters / 4) + 4 tokens a message
printed    what the contexts of these budgets hold: a message counts if anything of it is printed;
           strict, if the passage that answers is; and the share of the answer's rare words
unrelated  how many questions of another set would be refused, and at what loss
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from asking import Asker, by_session, filled, opened, progress, store
from evidence import Floats, Recall, Rows, figures, interval, refusals, shares
from rankings import DRAWN, PARTS, RANKINGS
from report import draw, print_differences, print_refusals, print_table, write_json
from sets import Collection, Question, read
from vectors import CachedEmbedder, cached_embedder

from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME
from reservoir_cli.settings.setting_values import parse_value

SETS = ("locomo", "beam", "mtrag", "memorybank", "qmsum", "long-answers", "samples")
MEASURES = ("rankings", "printed", "unrelated")
#: How many unrelated questions are asked.
_UNRELATED = 200

Scores = dict[str, Floats]


def thinned(collections: Sequence[Collection], limit: int | None) -> list[Collection]:
    """Keep so many questions, spread evenly over all."""
    total = sum(len(collection.questions) for collection in collections)
    if limit is None or limit >= total:
        return list(collections)
    kept = set(np.linspace(0, total - 1, limit).astype(int).tolist())
    numbers = iter(range(total))
    return [
        replace(
            collection,
            questions=tuple(question for question in collection.questions if next(numbers) in kept),
        )
        for collection in collections
    ]


def measure_rankings(rows: Sequence[Rows], budgets: Sequence[int]) -> dict[str, Recall]:
    """Return the recall of every ranking, and of the default without each of its parts."""
    found = {}
    for name, ranking in progress([*RANKINGS.items(), *PARTS.items()], "ranking"):
        by_budget, by_depth = zip(
            *(shares(ranking(asked), asked, budgets) for asked in rows), strict=True
        )
        found[name] = Recall(np.array(by_budget), np.array(by_depth))
    return found


def measure_printed(
    asker: Asker, questions: Sequence[Question], budgets: Sequence[int]
) -> tuple[dict[str, Recall], Floats]:
    """Return what contexts hold, and the relevance of each question."""
    found = [asker.printed(question, budgets) for question in progress(questions, "printed")]
    recalls = {
        name: Recall(np.array([row[name] for row in found]), np.empty(0))
        for name in ("printed", "strict", "rare words", "tokens")
    }
    return recalls, np.array([row["relevance"][0] for row in found])


def measure_unrelated(
    asker: Asker, asked: Sequence[Question], others: Sequence[Collection]
) -> Floats:
    """Return the relevance of another set's questions in the partitions of this one."""
    scopes = list(dict.fromkeys((question.partition, question.instance) for question in asked))
    questions = [question for collection in others for question in collection.questions]
    chosen = np.linspace(0, len(questions) - 1, min(len(questions), _UNRELATED)).astype(int)
    return np.array(
        [
            asker.unrelated(questions[number], *scopes[place % len(scopes)])
            for place, number in progress(list(enumerate(chosen.tolist())), "unrelated")
        ]
    )


def delayed_rows(
    collections: Sequence[Collection],
    delay: int,
    embedder: CachedEmbedder,
    settings: Mapping[str, Any],
) -> list[Rows]:
    """Ask every question so many sessions after its last evidence, or at the end if that is first.

    Only the messages up to then are stored.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        asker = Asker(path, embedder, settings)
        for collection in progress(collections, "asking later"):
            groups = by_session(collection.messages)
            session_of = {row.source_id: at for at, group in enumerate(groups) for row in group}
            for at, group in enumerate(groups):
                with opened(path, embedder, settings) as reservoir:
                    store(reservoir, collection.name, group)
                for question in collection.questions:
                    last = max(session_of[name] for name in question.evidence)
                    if min(last + delay, len(groups) - 1) == at:
                        rows.append(asker.rows(question))
    return rows


def by_kind(recalls: Mapping[str, Recall], kinds: Sequence[str], budgets: Sequence[int]) -> Any:
    """Return the figures of the printed contexts by the kind of question."""
    names, column = sorted(set(kinds)), np.array(kinds)
    return {
        f"{measure}: {kind or 'any'}": figures(recalls[measure].at(column == kind), budgets)
        for measure in recalls
        if measure in ("printed", "strict")
        for kind in names
        if len(names) > 1
    }


def compared(scores: Mapping[str, Sequence[float]], path: Path) -> dict[str, Any]:
    """Return the paired differences to the scores of another run."""
    other = json.loads(path.read_text(encoding="utf-8"))["scores"]
    found = {}
    for name in scores.keys() & other.keys():
        here, there = np.array(scores[name], float), np.array(other[name], float)
        if here.shape == there.shape:
            change = (here - there)[~np.isnan(here - there)]
            if len(change):
                mean = float(change.mean())
                found[name] = {"difference": mean, "interval": list(interval(change))}
    return dict(sorted(found.items()))


def measure(given: argparse.Namespace, cache: Path) -> dict[str, Any]:
    """Measure what was asked for, and print it."""
    embedder = cached_embedder(given.model, cache)
    collections = read(given.set, given.data)
    if given.without_ids:
        collections = [
            replace(
                collection,
                messages=tuple(replace(row, conversation_id=None) for row in collection.messages),
            )
            for collection in collections
        ]
    path = filled(collections, embedder, {}, cache)
    collections = thinned(collections, given.limit)
    questions = [question for collection in collections for question in collection.questions]
    print(f"{given.set}: {len(questions)} questions, {len(collections)} scopes, {given.model}")
    asker = Asker(path, embedder, given.setting)
    found: dict[str, Any] = {"set": given.set, "settings": given.setting, "budgets": given.budgets}
    scores: dict[str, list[float]] = {}

    def report(title: str, recalls: Mapping[str, Recall]) -> None:
        found[title] = {name: figures(recall, given.budgets) for name, recall in recalls.items()}
        scores.update({name: recall.scores.tolist() for name, recall in recalls.items()})
        print_table(title, found[title], given.budgets)

    if "rankings" in given.only:
        if given.delay is None:
            rows = [asker.rows(question) for question in progress(questions, "asking")]
        else:
            rows = delayed_rows(collections, given.delay, embedder, given.setting)
        report("rankings", measure_rankings(rows, given.budgets))
    relevance = np.empty(0)
    if "printed" in given.only:
        recalls, relevance = measure_printed(asker, questions, given.budgets)
        used = recalls.pop("tokens").by_budget.mean(axis=0).tolist()
        found["budget_used"] = dict(zip(map(str, given.budgets), used, strict=True))
        report("printed", recalls)
        for at, budget in enumerate(given.budgets):
            scores |= {
                f"{name} at {budget}": recall.by_budget[:, at].tolist()
                for name, recall in recalls.items()
                if name in ("printed", "strict")
            }
        found["kinds"] = by_kind(recalls, [question.kind for question in questions], given.budgets)
        print_table("kinds", found["kinds"], given.budgets)
    if "unrelated" in given.only and given.unrelated and relevance.size:
        unrelated = measure_unrelated(asker, questions, read(*given.unrelated))
        found["unrelated"] = unrelated.tolist()
        found["relevance"] = relevance.tolist()
        found["refusals"] = refusals(unrelated, relevance, np.array(scores["printed"]))
        print_refusals(found["refusals"])
    return {**found, "scores": scores}


def main() -> None:
    """Measure, print, and write what was asked for."""
    given = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        cache = given.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        found = measure(given, cache)
    if given.against:
        found["differences"] = compared(found["scores"], given.against)
        print_differences(f"difference to {given.against.name}", found["differences"])
    if given.json:
        write_json(given.json, found)
    if given.plot and "rankings" in found:
        draw(given.plot, {name: found["rankings"][name] for name in DRAWN}, given.set)


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--set", required=True, choices=SETS)
    options.add_argument("--data", type=Path, help="the set as JSON; see sets.py")
    options.add_argument("--budgets", type=_numbers, default=[250, 500, 1_000, 2_000, 4_000])
    options.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    options.add_argument("--limit", type=int, help="ask only so many questions, spread evenly")
    options.add_argument(
        "--setting", nargs="+", type=_setting, default=[], help="KEY=VALUE, as in the settings file"
    )
    options.add_argument("--delay", type=int, help="rank so many sessions after the last evidence")
    options.add_argument("--without-ids", action="store_true", help="take off conversation ids")
    options.add_argument("--unrelated", type=_named_set, help="SET=FILE with unrelated questions")
    options.add_argument("--against", type=Path, help="a --json file to compare with, paired")
    options.add_argument("--model", default=DEFAULT_MODEL_NAME, help="embedding model or folder")
    options.add_argument("--cache", type=Path, help="keep vectors and filled stores here")
    options.add_argument("--json", type=Path, help="write figures and scores to this file")
    options.add_argument("--plot", type=Path, help="draw recall against budget into this PNG")
    given = options.parse_args()
    given.setting = dict(given.setting)
    return given


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _setting(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    return key, parse_value(key, value, f"--setting {key}")


def _named_set(text: str) -> tuple[str, Path | None]:
    name, _, path = text.partition("=")
    return name, Path(path) if path else None


if __name__ == "__main__":
    main()
