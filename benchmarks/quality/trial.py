"""Live with a store for 30 days: facts are said, change, and are asked for in other words.

    python benchmarks/quality/trial.py [--cache FOLDER] [--json FILE]

Each day has twelve conversations of three tools. 40 facts are said on some day, twelve of them
change later, and each is asked for every fifth day, also before it is said: through ``context``,
``recall`` as a hook asks it, and the tool of the MCP server. What was asked is stored with its
reply: the answer, or that nothing is known. Counted by week:

found      the present value is in the text, and no old value after it
outdated   only the old value is, or it stands after the present one
wrong      a text without either, or any text about a fact that was not said yet
silent     nothing, or a context that says that nothing fits
"""

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sets import Collection
from stores import fill_store, open_reservoir, progress
from vectors import CachedEmbedder, cached_embedder

from reservoir_cli import Message, Reservoir
from reservoir_cli.agents.mcp.tools import Answers, offered_tools
from reservoir_cli.context.recall import Recall
from reservoir_cli.settings.schema import DEFAULT_MODEL

DAYS, TALKS, FACTS = 30, 12, 40
CHANNELS = ("context", "recall", "mcp")
OUTCOMES = ("found", "outdated", "wrong", "silent")
_PARTITION = "trial"
_RECALL = offered_tools()["recall"]
_START = datetime(2026, 9, 1, 7, tzinfo=UTC)
_TOOLS = ("terminal", "editor", "browser")
_PLACES = ("harbour office", "north depot", "greenhouse", "archive", "workshop")
#: What a place has: the name of the fact, how it is said, and how its change is said.
_KINDS = (
    ("door code", "The door code of the {place} is {value}."),
    ("printer", "We put a {value} printer into the {place}."),
    ("caretaker", "{value} looks after the {place} from now on."),
    ("backup hour", "The {place} runs its backup at {value}."),
    ("paint", "The walls of the {place} are painted in {value}."),
    ("network name", "The wireless network in the {place} is called {value}."),
    ("supplier", "Filters for the {place} are ordered from {value}."),
    ("rent", "The rent of the {place} comes to {value} a month."),
)
_WORDINGS = (
    "What is the {kind} of the {place}?",
    "{place}: which {kind} again?",
    "do you remember the {kind} for the {place}?",
    "I need the {kind} of our {place}",
    "Could you tell me the {place}'s {kind}, please?",
)
_TOPICS = (
    "the invoice export", "a slow query", "the holiday plan", "the login page", "unit tests",
    "the newsletter", "a broken link", "the date picker", "the parser", "the sales slides",
    "a leaking tap", "the bus timetable", "a birthday cake", "the tax form", "garden hoses",
)  # fmt: skip
_PROMPTS = (
    "have a look at {topic}",
    "what is wrong with {topic}?",
    "can we finish {topic} today?",
    "rewrite the part about {topic} more clearly",
)
_REPLIES = (
    "Let me look.",
    "I changed two places in {topic}; the checks pass now.",
    "It was a typo in {topic}. Fixed, and nothing else is affected.",
    "Not yet: {topic} needs a decision about the order of its entries first.",
)
_UNKNOWN = "I don't have any information about the {kind} of the {place}."


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact, the days on which its values are said, and its values.

    :param said: days, ascending; the second one is that of its change.
    """

    number: int
    kind: str
    template: str
    place: str
    said: tuple[int, ...]
    values: tuple[str, ...]

    def asked_on(self, day: int) -> bool:
        """Return whether the fact is asked for on a day."""
        return (3 * day + self.number) % 5 == 0

    def question(self, day: int) -> str:
        """Return the wording of a day."""
        return _WORDINGS[(day + self.number) % len(_WORDINGS)].format(
            kind=self.kind, place=self.place
        )

    def known(self, day: int) -> list[str]:
        """Return its values up to the day before, the present one last."""
        return [value for value, at in zip(self.values, self.said, strict=True) if at < day]


def facts() -> list[Fact]:
    """Return the facts; their values are made up of syllables and digits."""
    rows = []
    for number in range(FACTS):
        kind, template = _KINDS[number % len(_KINDS)]
        first = (7 * number) % 20
        changes = number % 10 in (1, 4, 7)
        said = (first, min(first + 6 + number % 5, DAYS - 4)) if changes else (first,)
        values = tuple(_value(number, version) for version in range(len(said)))
        rows.append(Fact(number, kind, template, _PLACES[number // 8], said, values))
    return rows


def _value(number: int, version: int) -> str:
    syllables = "bor dal fen gim hul jas kep lom mur nix pol rav sut tig vam wes".split()
    seed = 37 * number + 101 * version + 11
    word = syllables[seed % 16] + syllables[seed // 3 % 16] + syllables[seed // 7 % 16]
    return f"{word.title()}-{17 + seed % 83}"


def live(embedder: CachedEmbedder, folder: Path, cache: Path) -> list[dict[str, Any]]:
    """Live through all days in a fresh store; return a row for each asking and channel."""
    empty = fill_store(Collection("trial", (), ()), embedder, cache)
    path = Path(shutil.copy(empty, folder / "trial.db"))
    rows: list[dict[str, Any]] = []
    known = facts()
    settings = {"partition": _PARTITION, "embedding_model": embedder.name}
    with open_reservoir(path, embedder, settings) as reservoir:
        mcp = Answers(lambda **_: Reservoir.open(path, settings=settings, embedder=embedder))
        for day in progress(range(DAYS), "days"):
            for fact in known:
                if fact.asked_on(day):
                    rows += _ask(reservoir, mcp, fact, day)
            for talk in _talks(known, day):
                reservoir.ingest(talk.messages, partition=_PARTITION, instance=talk.tool)
        mcp.release()
    return rows


@dataclass(frozen=True, slots=True)
class _Talk:
    tool: str
    messages: list[Message]


def _talks(known: Sequence[Fact], day: int) -> Iterator[_Talk]:
    """Yield the conversations of a day: other talk, and what is said and asked for in it."""
    said = [
        (fact.template.format(place=fact.place, value=value), "Noted.")
        for fact in known
        for value, at in zip(fact.values, fact.said, strict=True)
        if at == day
    ]
    asked = [(fact.question(day), _reply(fact, day)) for fact in known if fact.asked_on(day)]
    turns: list[list[tuple[str, str]]] = [[] for _ in range(TALKS)]
    for index, pair in enumerate([*said, *asked]):
        turns[(5 * index + day) % TALKS].append(pair)
    for number, pairs in enumerate(turns):
        seed = TALKS * day + number
        other = [
            (
                _PROMPTS[(seed + turn) % 4].format(topic=_TOPICS[(seed + 4 * turn) % 15]),
                _REPLIES[(seed + 3 * turn) % 4].format(topic=_TOPICS[(seed + 4 * turn) % 15]),
            )
            for turn in range(2 + seed % 2)
        ]
        yield _Talk(_TOOLS[number % 3], _messages([*other, *pairs], day, number))


def _messages(pairs: Sequence[tuple[str, str]], day: int, number: int) -> list[Message]:
    start = _START + timedelta(days=day, minutes=50 * number)
    name = f"{_TOOLS[number % 3]} {day} {number}"
    return [
        Message(
            role,
            text,
            created_at=start + timedelta(seconds=60 * turn + 20 * (role == "assistant")),
            conversation_id=name,
            trace_id=f"{name} {turn}",
            source=_TOOLS[number % 3],
        )
        for turn, pair in enumerate(pairs)
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def _reply(fact: Fact, day: int) -> str:
    values = fact.known(day)
    if not values:
        return _UNKNOWN.format(kind=fact.kind, place=fact.place)
    return f"It is {values[-1]}."


def _ask(reservoir: Reservoir, mcp: Answers, fact: Fact, day: int) -> Iterator[dict[str, Any]]:
    question, now = fact.question(day), _START + timedelta(days=day)
    window = reservoir.context(question, partition=_PARTITION, budget=500, now=now)
    recall = reservoir.recall(
        question,
        partition=_PARTITION,
        exclude_conversation="running",
        talk=[("user", "good morning"), ("assistant", "Good morning.")],
        now=now,
        recorded=False,
    )
    answer = mcp.answer("recall", _RECALL.check({"question": question}), _PARTITION)
    texts = {
        "context": ("" if window.nothing_found else window.to("text").replace(question, "")),
        "recall": recall.text if isinstance(recall, Recall) else "",
        "mcp": "" if answer.startswith("Nothing recalled") else answer,
    }
    for channel, text in texts.items():
        yield {
            "day": day,
            "fact": fact.number,
            "channel": channel,
            "said": len(fact.known(day)),
            "outcome": judge(text, fact.known(day)),
        }


def judge(text: str, values: Sequence[str]) -> str:
    """Return the outcome of an asking.

    :param values: those said so far, the present one last; none if the fact was not said yet.
    """
    if not text.strip():
        return "silent"
    if not values:
        return "wrong"
    places = [text.rfind(value) for value in values]
    if places[-1] >= 0 and places[-1] == max(places):
        return "found"
    return "outdated" if max(places) >= 0 else "wrong"


def by_week(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count the outcomes by channel and week, of facts that were said and of others."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        week = min(row["day"] // 7 + 1, 4)
        kind = "said" if row["said"] else "not said yet"
        counts.setdefault(f"{row['channel']}, {kind}, week {week}", Counter())[row["outcome"]] += 1
    return {
        name: {outcome: count[outcome] for outcome in OUTCOMES}
        for name, count in sorted(counts.items())
    }


def main() -> None:
    """Live, print the counts by week, and write the requested file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default=DEFAULT_MODEL, help="embedding model or folder")
    parser.add_argument("--cache", type=Path, help="keep vectors here")
    parser.add_argument("--json", type=Path, help="write counts and askings to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        rows = live(cached_embedder(options.model, cache), Path(folder), cache)
    counts = by_week(rows)
    print(f"{'':<34}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
    for name, count in counts.items():
        print(f"{name:<34}" + "".join(f"{count[outcome]:>10}" for outcome in OUTCOMES))
    if options.json:
        options.json.write_text(json.dumps({"weeks": counts, "askings": rows}, indent=1))


if __name__ == "__main__":
    main()
