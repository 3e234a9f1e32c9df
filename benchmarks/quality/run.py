"""Measure how much of a question's evidence a context contains, on one data set.

    python benchmarks/quality/run.py --set NAME --data FILE [--cache FOLDER] [--json FILE]

Sets are locomo, beam, mtrag, memorybank, qmsum, long-answers and samples; the last two are part of
this repository and need no --data. A score is the mean share of the evidence over the budgets.

rankings   rank every message by its scores and fill each budget in that order, skipping messages
           that do not fit, at ceil(characters / 4) + 4 tokens a message
printed    build contexts of these budgets: a message counts if any part of it is printed (strict:
           if its answering passage is); also the share of the answer's rare words
unrelated  count how many questions of another set would be refused, and at what loss
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from asking import Asker, by_session, fill_store, open_reservoir, progress, store
from evidence import Floats, Recall, Rows, figures, interval, refusals, shares
from rankings import DRAWN, PARTS, RANKINGS
from report import draw, print_differences, print_refusals, print_table, write_json
from sets import Collection, Question, read
from vectors import CachedEmbedder, cached_embedder

from reservoir_cli.settings.schema import DEFAULT_MODEL_NAME, SETTINGS

SETS = ("locomo", "beam", "mtrag", "memorybank", "qmsum", "long-answers", "samples")
MEASURES = ("rankings", "printed", "unrelated")
#: The number of unrelated questions.
_UNRELATED = 200

Scores = dict[str, Floats]


def thin_out(collections: Sequence[Collection], limit: int | None) -> list[Collection]:
    """Reduce the questions to a number of them, evenly spread over all."""
    total = sum(len(collection.questions) for collection in collections)
    if limit is None or limit >= total:
        return list(collections)
    selected = set(np.linspace(0, total - 1, limit).astype(int).tolist())
    numbers = iter(range(total))
    return [
        replace(
            collection,
            questions=tuple(
                question for question in collection.questions if next(numbers) in selected
            ),
        )
        for collection in collections
    ]


def measure_rankings(rows: Sequence[Rows], budgets: Sequence[int]) -> dict[str, Recall]:
    """Return the recall of every ranking, and of the default without each of its parts."""
    recalls = {}
    for name, ranking in progress([*RANKINGS.items(), *PARTS.items()], "ranking"):
        by_budget, by_depth = zip(
            *(shares(ranking(question), question, budgets) for question in rows), strict=True
        )
        recalls[name] = Recall(np.array(by_budget), np.array(by_depth))
    return recalls


def measure_printed(
    asker: Asker, questions: Sequence[Question], budgets: Sequence[int]
) -> tuple[dict[str, Recall], Floats]:
    """Return the recall of the contexts, and the relevance of each question."""
    measures = [asker.printed(question, budgets) for question in progress(questions, "printed")]
    recalls = {
        name: Recall(np.array([row[name] for row in measures]), np.empty(0))
        for name in ("printed", "strict", "rare words", "tokens")
    }
    return recalls, np.array([row["relevance"][0] for row in measures])


def measure_unrelated(
    asker: Asker, questions: Sequence[Question], others: Sequence[Collection]
) -> Floats:
    """Return the relevance of another set's questions in the partitions of this one."""
    scopes = list(dict.fromkeys((question.partition, question.instance) for question in questions))
    unrelated = [question for collection in others for question in collection.questions]
    sample = np.linspace(0, len(unrelated) - 1, min(len(unrelated), _UNRELATED)).astype(int)
    return np.array(
        [
            asker.unrelated(unrelated[number], *scopes[index % len(scopes)])
            for index, number in progress(list(enumerate(sample.tolist())), "unrelated")
        ]
    )


def delayed_rows(
    collections: Sequence[Collection],
    delay: int,
    embedder: CachedEmbedder,
    settings: Mapping[str, Any],
) -> list[Rows]:
    """Ask every question a number of sessions after its last evidence, or after the last session.

    Only the messages up to then are stored.

    :param delay: number of sessions.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        asker = Asker(path, embedder, settings)
        for collection in progress(collections, "asking later"):
            groups = by_session(collection.messages)
            session_of = {
                row.source_id: index for index, group in enumerate(groups) for row in group
            }
            for index, group in enumerate(groups):
                with open_reservoir(path, embedder, settings) as reservoir:
                    store(reservoir, collection.name, group)
                for question in collection.questions:
                    last = max(session_of[name] for name in question.evidence)
                    if min(last + delay, len(groups) - 1) == index:
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


def compare(scores: Mapping[str, Sequence[float]], path: Path) -> dict[str, Any]:
    """Return the paired differences to the scores of another run."""
    other = json.loads(path.read_text(encoding="utf-8"))["scores"]
    differences = {}
    for name in scores.keys() & other.keys():
        ours, theirs = np.array(scores[name], float), np.array(other[name], float)
        if ours.shape == theirs.shape:
            change = (ours - theirs)[~np.isnan(ours - theirs)]
            if len(change):
                mean = float(change.mean())
                differences[name] = {"difference": mean, "interval": list(interval(change))}
    return dict(sorted(differences.items()))


def measure(options: argparse.Namespace, cache: Path) -> dict[str, Any]:
    """Run the selected measurements, print their figures, and return them."""
    embedder = cached_embedder(options.model, cache)
    collections = read(options.set, options.data)
    if options.without_ids:
        collections = [
            replace(
                collection,
                messages=tuple(replace(row, conversation_id=None) for row in collection.messages),
            )
            for collection in collections
        ]
    path = fill_store(collections, embedder, {}, cache)
    collections = thin_out(collections, options.limit)
    questions = [question for collection in collections for question in collection.questions]
    print(f"{options.set}: {len(questions)} questions, {len(collections)} scopes, {options.model}")
    asker = Asker(path, embedder, options.setting)
    results: dict[str, Any] = {
        "set": options.set,
        "settings": options.setting,
        "budgets": options.budgets,
    }
    scores: dict[str, list[float]] = {}

    def report(title: str, recalls: Mapping[str, Recall]) -> None:
        results[title] = {
            name: figures(recall, options.budgets) for name, recall in recalls.items()
        }
        scores.update({name: recall.scores.tolist() for name, recall in recalls.items()})
        print_table(title, results[title], options.budgets)

    if "rankings" in options.only:
        if options.delay is None:
            rows = [asker.rows(question) for question in progress(questions, "asking")]
        else:
            rows = delayed_rows(collections, options.delay, embedder, options.setting)
        report("rankings", measure_rankings(rows, options.budgets))
    relevance = np.empty(0)
    if "printed" in options.only:
        recalls, relevance = measure_printed(asker, questions, options.budgets)
        used = recalls.pop("tokens").by_budget.mean(axis=0).tolist()
        results["budget_used"] = dict(zip(map(str, options.budgets), used, strict=True))
        report("printed", recalls)
        for index, budget in enumerate(options.budgets):
            scores |= {
                f"{name} at {budget}": recall.by_budget[:, index].tolist()
                for name, recall in recalls.items()
                if name in ("printed", "strict")
            }
        results["kinds"] = by_kind(
            recalls, [question.kind for question in questions], options.budgets
        )
        print_table("kinds", results["kinds"], options.budgets)
    if "unrelated" in options.only and options.unrelated and relevance.size:
        unrelated = measure_unrelated(asker, questions, read(*options.unrelated))
        results["unrelated"] = unrelated.tolist()
        results["relevance"] = relevance.tolist()
        results["refusals"] = refusals(unrelated, relevance, np.array(scores["printed"]))
        print_refusals(results["refusals"])
    return {**results, "scores": scores}


def main() -> None:
    """Measure, print, and write the requested files."""
    options = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        results = measure(options, cache)
    if options.against:
        results["differences"] = compare(results["scores"], options.against)
        print_differences(f"difference to {options.against.name}", results["differences"])
    if options.json:
        write_json(options.json, results)
    if options.plot and "rankings" in results:
        draw(options.plot, {name: results["rankings"][name] for name in DRAWN}, options.set)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--set", required=True, choices=SETS)
    parser.add_argument("--data", type=Path, help="the set as JSON; see sets.py")
    parser.add_argument("--budgets", type=_numbers, default=[250, 500, 1_000, 2_000, 4_000])
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--limit", type=int, help="ask only this many questions, evenly spread")
    parser.add_argument(
        "--setting", nargs="+", type=_setting, default=[], help="KEY=VALUE, as in the settings file"
    )
    parser.add_argument("--delay", type=int, help="ask this many sessions after the last evidence")
    parser.add_argument("--without-ids", action="store_true", help="remove conversation ids")
    parser.add_argument("--unrelated", type=_named_set, help="SET=FILE with unrelated questions")
    parser.add_argument("--against", type=Path, help="a --json file to compare with, paired")
    parser.add_argument("--model", default=DEFAULT_MODEL_NAME, help="embedding model or folder")
    parser.add_argument("--cache", type=Path, help="keep vectors and filled stores here")
    parser.add_argument("--json", type=Path, help="write figures and scores to this file")
    parser.add_argument("--plot", type=Path, help="plot recall over budget in this PNG")
    options = parser.parse_args()
    options.setting = dict(options.setting)
    return options


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _setting(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    return key, SETTINGS[key].parse(value, f"--setting {key}")


def _named_set(text: str) -> tuple[str, Path | None]:
    name, _, path = text.partition("=")
    return name, Path(path) if path else None


if __name__ == "__main__":
    main()
