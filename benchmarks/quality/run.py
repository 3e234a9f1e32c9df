"""Measure how much of a question's evidence a context contains, on one data set.

    python benchmarks/quality/run.py --set NAME [--data FILE] [--cache FOLDER] [--json FILE]

Sets are those of the data files, and long-answers, samples and diary, which are part of this
repository and need no --data. A score is the mean share of the evidence over the budgets.

printed    build contexts of these budgets: a message counts if any part of it is printed (strict:
           if its answering passage is); also the share of the answer's rare words
baselines  pack messages by cosine, BM25 and their mixture, and passages by the mixture
rankings   rank every message by its scores and fill each budget in that order, skipping messages
           that do not fit, at ceil(characters / 4) + 4 tokens a message
gate       count how many questions, and how many of other sets, fit the store below each floor
search     count how often the best hit of a search is evidence
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from asking import MEASURED, Asker
from baselines import Baselines, collect
from evidence import Recall, figures, gate_curve, interval, shares
from rankings import DRAWN, PARTS, RANKINGS
from report import draw, print_differences, print_gate, print_table, write_json
from sets import Collection, Question, read, read_file
from stores import Stores, by_session, progress
from vectors import CachedEmbedder, cached_embedder
from week import play_week, print_week, week_figures

from reservoir_cli.settings.schema import DEFAULT_MODEL, SETTINGS

SETS = (
    *("locomo", "beam", "mtrag", "memorybank", "qmsum", "realtalk", "realmem", "week"),
    *("long-answers", "samples", "diary"),
)
MEASURES = ("printed", "baselines", "rankings", "gate", "search")
#: The number of questions of other sets.
_FOREIGN = 200


def choose_questions(
    collections: Sequence[Collection], half: str | None, limit: int | None
) -> list[Collection]:
    """Reduce the questions to a half of them, then to a number of them, evenly spread over all."""
    total = sum(len(collection.questions) for collection in collections)
    chosen = list(range(int(half == "reporting"), total, 2 if half else 1))
    if limit is not None and limit < len(chosen):
        chosen = [chosen[at] for at in np.linspace(0, len(chosen) - 1, limit).astype(int).tolist()]
    selected, numbers = set(chosen), iter(range(total))
    return [
        replace(
            collection,
            questions=tuple(
                question for question in collection.questions if next(numbers) in selected
            ),
        )
        for collection in collections
    ]


def ask_later(collection: Collection, delay: int) -> Collection:
    """Ask every question a number of sessions after its last evidence, or after the last session.

    Only the messages up to then are stored.

    :param delay: number of sessions.
    """
    groups = by_session(collection.messages)
    ends = np.cumsum([len(group) for group in groups]).tolist()
    session_of = {row.source_id: index for index, group in enumerate(groups) for row in group}
    questions = [
        replace(
            question,
            stored=ends[
                min(max(session_of[name] for name in question.evidence) + delay, len(ends) - 1)
            ],
        )
        for question in collection.questions
    ]
    return replace(
        collection, questions=tuple(sorted(questions, key=lambda question: question.stored or 0))
    )


def measure_rankings(
    asker: Asker, questions: Sequence[Question], budgets: Sequence[int]
) -> dict[str, Recall]:
    """Return the recall of every ranking, and of the default without each of its parts."""
    rows = [asker.rows(question) for question in progress(questions, "asking")]
    recalls = {}
    for name, ranking in progress([*RANKINGS.items(), *PARTS.items()], "ranking"):
        by_budget, by_depth = zip(
            *(shares(ranking(question), question, budgets) for question in rows), strict=True
        )
        recalls[name] = Recall(np.array(by_budget), np.array(by_depth))
    return recalls


def measure_printed(
    asker: Asker, questions: Sequence[Question], budgets: Sequence[int]
) -> dict[str, Recall]:
    """Return what the contexts hold of each question."""
    measures = [asker.printed(question, budgets) for question in progress(questions, "printed")]
    return {
        name: Recall(np.array([row[name] for row in measures]), np.empty(0)) for name in MEASURED
    }


def measure_baselines(
    stores: Stores,
    collections: Sequence[Collection],
    embedder: CachedEmbedder,
    budgets: Sequence[int],
) -> dict[str, Recall]:
    """Return the recall of plain rankings of the same messages."""
    rows = []
    for collection in progress(collections, "baselines"):
        around = stores.around(collection)
        baselines = Baselines((*around, *collection.messages), embedder)
        for question in collection.questions:
            stored = None if question.stored is None else len(around) + question.stored
            rows.append(baselines.measure(question, budgets, stored))
    return {name: Recall(values, np.empty(0)) for name, values in collect(rows).items()}


def measure_gate(
    asker: Asker, questions: Sequence[Question], others: Sequence[Collection]
) -> dict[str, Any]:
    """Return the relevance of the questions, and of other sets' questions in the same stores."""
    foreign = [question for collection in others for question in collection.questions]
    sample = np.linspace(0, len(foreign) - 1, min(len(foreign), _FOREIGN)).astype(int).tolist()
    places = np.linspace(0, len(questions) - 1, len(sample)).astype(int).tolist()
    true = [asker.relevance(question) for question in progress(questions, "true questions")]
    pairs = list(zip(sample, places, strict=True))
    false = [
        asker.relevance(foreign[number], questions[place])
        for number, place in progress(pairs, "foreign questions")
    ]
    return {
        "true": [relevance for relevance, _ in true],
        "foreign": [relevance for relevance, _ in false],
        "true refused": float(np.mean([refused for _, refused in true])),
        "foreign refused": float(np.mean([refused for _, refused in false])) if false else None,
    }


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
    collections = read(options.set, options.data)[: options.scopes]
    if options.without_ids:
        collections = [
            replace(
                collection,
                messages=tuple(replace(row, conversation_id=None) for row in collection.messages),
            )
            for collection in collections
        ]
    if options.delay is not None:
        collections = [ask_later(collection, options.delay) for collection in collections]
    whole, collections = collections, choose_questions(collections, options.half, options.limit)
    questions = [question for collection in collections for question in collection.questions]
    print(f"{options.set}: {len(questions)} questions, {len(collections)} scopes, {options.model}")
    with Stores(
        whole,
        embedder,
        cache,
        options.setting,
        asked_before=options.asked_before,
        grown=options.grown,
        others=[collection for file in options.others for collection in read_file(file)],
    ) as stores:
        return _measure(options, stores, collections, embedder)


def _measure(
    options: argparse.Namespace,
    stores: Stores,
    collections: Sequence[Collection],
    embedder: CachedEmbedder,
) -> dict[str, Any]:
    questions = [question for collection in collections for question in collection.questions]
    asker = Asker(stores, embedder, options.through)
    results: dict[str, Any] = {
        name: value for name, value in vars(options).items() if isinstance(value, (str, int, list))
    }
    results.pop("others", None)
    scores: dict[str, list[float]] = {}

    def report(title: str, recalls: Mapping[str, Recall]) -> None:
        results[title] = {
            name: figures(recall, options.budgets) for name, recall in recalls.items()
        }
        for name, recall in recalls.items():
            scores[name] = recall.scores.tolist()
            for index, budget in enumerate(options.budgets):
                scores[f"{name} at {budget}"] = recall.by_budget[:, index].tolist()
        print_table(title, results[title], options.budgets)

    if "printed" in options.only:
        recalls = measure_printed(asker, questions, options.budgets)
        report("printed", recalls)
        kinds = [question.kind for question in questions]
        results["kinds"] = by_kind(recalls, kinds, options.budgets)
        print_table("kinds", results["kinds"], options.budgets)
    if "baselines" in options.only and collections[0].messages:
        report("baselines", measure_baselines(stores, collections, embedder, options.budgets))
    if "rankings" in options.only:
        report("rankings", measure_rankings(asker, questions, options.budgets))
    if "gate" in options.only:
        foreign = [collection for file in options.foreign for collection in read_file(file)]
        gate = measure_gate(asker, questions, foreign)
        gate["curve"] = gate_curve(np.array(gate["true"]), np.array(gate["foreign"]))
        results["gate"] = gate
        print_gate(gate)
    if "search" in options.only:
        hits = [asker.first_hit(question) for question in progress(questions, "search")]
        results["first hit"], scores["first hit"] = float(np.mean(hits)), hits
        print(f"best hit is evidence: {int(sum(hits))} of {len(hits)}")
    return {**results, "scores": scores}


def main() -> None:
    """Measure, print, and write the requested files."""
    options = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        results = _play(options, cache) if options.set == "week" else measure(options, cache)
    if options.against:
        results["differences"] = compare(results["scores"], options.against)
        print_differences(f"difference to {options.against.name}", results["differences"])
    if options.json:
        write_json(options.json, results)
    if options.plot and "rankings" in results:
        draw(options.plot, {name: results["rankings"][name] for name in DRAWN}, options.set)


def _play(options: argparse.Namespace, cache: Path) -> dict[str, Any]:
    embedder = cached_embedder(options.model, cache)
    others = [collection for file in options.others for collection in read_file(file)]
    rows = play_week(options.data, others, embedder, cache, options.setting)
    print_week(rows, each=options.each)
    return {"week": week_figures(rows), "prompts": rows, "scores": {}}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--set", required=True, choices=SETS)
    parser.add_argument("--data", type=Path, help="the set as JSON; see sets.py")
    parser.add_argument("--budgets", type=_numbers, default=[250, 500, 1_000, 2_000, 4_000])
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=["printed", "baselines"])
    parser.add_argument("--half", choices=("choosing", "reporting"), help="every second question")
    parser.add_argument("--limit", type=int, help="ask only this many questions, evenly spread")
    parser.add_argument("--scopes", type=int, help="use only so many of the first collections")
    parser.add_argument(
        "--setting", nargs="+", type=_setting, default=[], help="KEY=VALUE, as in the settings file"
    )
    parser.add_argument("--through", choices=("context", "recall"), default="context")
    parser.add_argument("--asked-before", type=int, default=0, metavar="K", help="in vain, K times")
    parser.add_argument("--grown", type=int, default=1, metavar="N", help="by --others, N times")
    parser.add_argument("--others", nargs="+", type=Path, default=[], help="sets to grow by")
    parser.add_argument("--foreign", nargs="+", type=Path, default=[], help="sets for the gate")
    parser.add_argument("--each", action="store_true", help="print each prompt of the week")
    parser.add_argument("--delay", type=int, help="ask this many sessions after the last evidence")
    parser.add_argument("--without-ids", action="store_true", help="remove conversation ids")
    parser.add_argument("--against", type=Path, help="a --json file to compare with, paired")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="embedding model or folder")
    parser.add_argument("--cache", type=Path, help="keep vectors and filled stores here")
    parser.add_argument("--json", type=Path, help="write figures and scores to this file")
    parser.add_argument("--plot", type=Path, help="plot recall over budget in this PNG")
    options = parser.parse_args()
    options.setting = dict(options.setting)
    if options.set == "week" and options.data is None:
        parser.error("--set week needs --data FILE")
    if options.grown > 1 and not options.others:
        parser.error("--grown needs --others FILE …")
    return options


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _setting(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    return key, SETTINGS[key].parse(value, f"--setting {key}")


if __name__ == "__main__":
    main()
