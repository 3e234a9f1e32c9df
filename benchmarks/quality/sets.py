"""Read the benchmark's data sets into one form: messages, and questions with evidence.

A data file is a JSON list of ``{name, messages, questions}``. A message has ``role``, ``content``,
``at``, ``conv``, ``trace`` and ``sid``; a question has ``q``, ``ev`` (source ids), and optionally
``kind``, ``answer``, ``hist``, the turns just before it, ``upto``, the number of messages that are
stored when it is asked, and ``now``, the time of asking. LoCoMo is read in its own format; the long
answers, the samples and the diary are part of this repository.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reservoir_cli import Message

LONG_ANSWERS = Path(__file__).parent / "long_answers"
SAMPLES = Path(__file__).parents[2] / "samples"
_HEAD = re.compile(r"^=== (conversation|user|assistant)(?: (\S+ \S+) (.*)|, (\d+) days? later)?$")
_LOCOMO_KINDS = {1: "several hops", 2: "time", 3: "open", 4: "single hop"}
_THIRDS = ("first third", "middle third", "last third")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the source ids of the messages that answer it.

    :param instance: the instance in which it is asked; ``None`` for the whole partition.
    :param quotations: exact texts that the answer needs, each contained in one evidence message.
    :param talk: (role, text) of the turns just before it.
    :param stored: how many of the collection's messages are stored when it is asked; ``None`` for
        all of them.
    :param asked_at: the time of asking; ``None`` for the wall clock, or a minute after the talk.
    """

    partition: str
    instance: str | None
    text: str
    evidence: frozenset[str]
    kind: str = ""
    answer: str = ""
    quotations: tuple[str, ...] = ()
    talk: tuple[tuple[str, str], ...] = ()
    stored: int | None = None
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """Messages of one partition with the questions about them.

    :param files: files to import instead of ``messages``.
    """

    name: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    files: tuple[Path, ...] = ()


def time_of(message: Message) -> datetime:
    """Return the time of a message of a set; every one has a time."""
    assert message.created_at is not None
    return message.created_at


def read(name: str, path: Path | None) -> list[Collection]:
    """Read a set by its name.

    :param path: its data file; not needed for the long answers, the samples and the diary.
    """
    if name == "long-answers":
        return [_long_answers(path or LONG_ANSWERS)]
    if name == "samples":
        return [_samples(path or SAMPLES)]
    if name == "diary":
        return [diary()]
    if path is None:
        raise SystemExit(f"--set {name} needs --data FILE")
    return read_file(path)


def read_file(path: Path) -> list[Collection]:
    """Read a data file, in LoCoMo's format or the common one."""
    scopes = json.loads(path.read_text(encoding="utf-8"))
    convert: Callable[[Any], Collection] = _locomo if "sample_id" in scopes[0] else _generic
    return [convert(scope) for scope in scopes]


def _generic(scope: Mapping[str, Any]) -> Collection:
    name = scope["name"]
    messages = tuple(
        Message(
            row["role"],
            row["content"],
            created_at=datetime.fromisoformat(row["at"]),
            conversation_id=row["conv"],
            trace_id=row["trace"],
            source="benchmark",
            source_id=row["sid"],
        )
        for row in scope["messages"]
    )
    questions = tuple(
        Question(
            name,
            name,
            row["q"],
            frozenset(row["ev"]),
            row.get("kind") or "",
            row.get("answer") or "",
            talk=tuple((role, text) for role, text in row.get("hist") or ()),
            stored=row.get("upto"),
            asked_at=datetime.fromisoformat(row["now"]) if row.get("now") else None,
        )
        for row in scope["questions"]
    )
    return Collection(name, messages, questions)


def _locomo(sample: Mapping[str, Any]) -> Collection:
    name, talk = sample["sample_id"], sample["conversation"]
    messages = tuple(_locomo_messages(talk))
    known = {message.source_id for message in messages}
    questions = []
    for row in sample["qa"]:
        evidence = frozenset(known.intersection(row.get("evidence", ())))
        if row["category"] in _LOCOMO_KINDS and evidence:
            text = without_names(row["question"], (talk["speaker_a"], talk["speaker_b"]))
            kind, answer = _LOCOMO_KINDS[row["category"]], str(row.get("answer", ""))
            questions.append(Question(name, name, text, evidence, kind, answer))
    return Collection(name, messages, tuple(questions))


def _locomo_messages(talk: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the messages of a conversation, 30 seconds apart in each session."""
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
    """Remove the speakers' first names, which mislead every ranking on LoCoMo."""
    firsts = "|".join(re.escape(name.split()[0]) for name in names)
    return " ".join(re.sub(rf"\b(?:{firsts})\b(?:['\u2019]s)?", " ", question).split())


def _long_answers(folder: Path) -> Collection:
    """Read twelve conversations with long answers, all in one instance.

    A question identifies its evidence by quotations. Its kind is the third of the message in which
    the deepest quotation begins.
    """
    messages = tuple(
        message
        for path in sorted(folder.glob("*.md"))
        for message in conversation(path.read_text(encoding="utf-8"), path.stem)
    )
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = tuple(_question(json.loads(line), messages) for line in lines)
    return Collection("everything", messages, questions)


def conversation(text: str, name: str) -> Iterator[Message]:
    """Yield the messages of a file: a question every six minutes, or after the stated days."""
    blocks = re.split(r"^(=== .*)\n", text, flags=re.MULTILINE)[1:]
    time, count = datetime.min.replace(tzinfo=UTC), 0
    for head, content in zip(blocks[::2], blocks[1::2], strict=True):
        match = _HEAD.match(head)
        if match is None:
            raise ValueError(f"{name}: {head}")
        kind, start, _, days = match.groups()
        if kind == "conversation":
            time = datetime.fromisoformat(start).replace(tzinfo=UTC)
            continue
        if kind == "user":
            time += timedelta(days=int(days)) if days else timedelta(minutes=6)
        count += 1
        yield Message(
            kind,
            content.strip(),
            created_at=time + timedelta(seconds=0 if kind == "user" else 25),
            trace_id=f"{name}-{(count + 1) // 2}",
            conversation_id=name,
            source="long answers",
            source_id=f"{name}-{count}",
        )


def _question(row: Mapping[str, Any], messages: Sequence[Message]) -> Question:
    evidence, depths = set(), []
    for quotation in row["evidence"]:
        matches = [message for message in messages if quotation in message.content]
        if len(matches) != 1:
            raise ValueError(f"{len(matches)} messages contain {quotation!r}")
        evidence.add(str(matches[0].source_id))
        depths.append(matches[0].content.index(quotation) / len(matches[0].content))
    third = _THIRDS[min(int(3 * max(depths)), 2)]
    return Question(
        "everything",
        "everything",
        row["question"],
        frozenset(evidence),
        third,
        quotations=tuple(row["evidence"]),
    )


def _samples(folder: Path) -> Collection:
    rows = json.loads((folder / "questions.json").read_text(encoding="utf-8"))["questions"]
    questions = tuple(
        Question(
            row["partition"],
            row["instance"],
            row["question"],
            frozenset(row["evidence"]),
            row["partition"],
            row["answer"],
        )
        for row in rows
    )
    return Collection("samples", (), questions, tuple(sorted(folder.glob("*.jsonl"))))


_DIARY_DAYS, _DIARY_QUESTIONS = 60, 39
_DIARY_START = datetime(2026, 9, 29, 18, tzinfo=UTC)
_ENTRIES = (
    "The boiler gauge says {} today.",
    "Checked the boiler, gauge at {}.",
    "Boiler log: the gauge showed {}.",
    "Gauge of the boiler, this evening: {}.",
)
_MONTHS = {9: ("September", "September"), 10: ("October", "Oktober"), 11: ("November", "November")}


def diary() -> Collection:
    """Make 60 daily entries that differ by one word, and 39 questions that each name a day."""
    days = [_DIARY_START + timedelta(days=number) for number in range(_DIARY_DAYS)]
    messages = tuple(
        Message(
            "user",
            _ENTRIES[number % len(_ENTRIES)].format(_code_word(number)),
            created_at=day,
            source="diary",
            source_id=day.date().isoformat(),
        )
        for number, day in enumerate(days)
    )
    chosen = [days[3 + number * 54 // _DIARY_QUESTIONS] for number in range(_DIARY_QUESTIONS)]
    questions = []
    for number, day in enumerate(chosen):
        english, german = _MONTHS[day.month]
        wordings = {
            "iso": f"boiler gauge on {day:%Y-%m-%d}",
            "english": f"What did the boiler gauge say on {day.day} {english}?",
            "dotted": f"boiler gauge {day:%d.%m.%Y}",
            "german": f"boiler gauge am {day.day}. {german}",
        }
        kind, text = list(wordings.items())[number % len(wordings)]
        evidence = frozenset([day.date().isoformat()])
        questions.append(Question("diary", "diary", text, evidence, kind))
    return Collection("diary", messages, tuple(questions))


def _code_word(number: int) -> str:
    """Return a made-up word of its own for each number."""
    first, second, third = "bdfglmnprst", "aeiou", "klmnrst"
    return (
        first[number % 11]
        + second[number % 5]
        + third[number % 7]
        + second[(number // 5) % 5]
        + "x"
    )
