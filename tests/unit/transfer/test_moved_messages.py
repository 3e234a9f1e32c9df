"""Messages that were moved or renamed away from where an import puts them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from each import each

from reservoir_cli.messages import Filter, Key, Scope
from reservoir_cli.reservoir import Reservoir

SAMPLES = Path(__file__).parent / "formats/samples"
AWAY = Scope("away")


def everything(reservoir: Reservoir) -> list[Key]:
    return reservoir.find(Scope(None))


def by_conversation(reservoir: Reservoir) -> list[Key]:
    named = {row.conversation_id for row in reservoir.view(Scope(None), 0)} - {None}
    return [
        key
        for name in sorted(named)
        for key in reservoir.find(Scope(None), Filter(conversation_id=name))
    ]


def move_some(reservoir: Reservoir, choose: Callable[[Reservoir], list[Key]]) -> None:
    reservoir.move(choose(reservoir), "away")


#: Ways of moving messages of the partition ``home``.
MOVES: dict[str, Callable[[Reservoir], object]] = {
    "chosen": lambda reservoir: move_some(reservoir, everything),
    "by conversation": lambda reservoir: move_some(reservoir, by_conversation),
    "every second": lambda reservoir: move_some(reservoir, lambda it: everything(it)[::2]),
    "renamed": lambda reservoir: reservoir.move_partition("home", "away"),
    "to another instance": lambda reservoir: reservoir.move(everything(reservoir), "home", "else"),
    "twice": lambda reservoir: [
        reservoir.move(everything(reservoir), place) for place in ("near", "away")
    ],
    "and back": lambda reservoir: [
        reservoir.move(everything(reservoir), place) for place in ("away", "home")
    ],
}


def make_rows(tmp_path: Path, numbers: int, name: str = "rows.jsonl", **fields: str) -> Path:
    """Return a list of messages without ids of their own."""
    rows = [
        {
            "role": ("user", "assistant")[number % 2],
            "content": f"{Path(name).stem} {number}",
            "created_at": f"2026-05-09T14:00:{number:02}Z",
            **fields,
        }
        for number in range(numbers)
    ]
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def texts(reservoir: Reservoir, partition: str) -> list[str]:
    return [row.content for row in reservoir.view(Scope(partition), 0)]


@each("sample", [path.name for path in SAMPLES.iterdir() if path.is_file()])
@pytest.mark.parametrize("partition", [None, "home"])
def test_moved_messages_of_every_format_are_already_there(
    reservoir, tmp_path, monkeypatch, sample, partition
):
    monkeypatch.setenv("RESERVOIR_PARTITION", "home")
    source = Path(shutil.copy(SAMPLES / sample, tmp_path))
    if sample == "chatgpt.json":
        with ZipFile(tmp_path / "export.zip", "w") as archive:
            archive.write(source, "conversations.json")
        source = tmp_path / "export.zip"
    others = reservoir.find(AWAY)
    stored = reservoir.import_files(source, partition=partition).imported
    assert stored
    reservoir.move([key for key in everything(reservoir) if key not in others], "away")
    before = reservoir.view(Scope(None), 0)
    report = reservoir.import_files(source, partition=partition)
    assert (report.imported, report.already) == (0, stored)
    assert reservoir.view(Scope(None), 0) == before


@pytest.mark.parametrize(
    ("way", "redact"), [*((way, "mark") for way in MOVES), ("every second", "remove")]
)
def test_however_messages_are_moved_they_are_already_there(
    reservoir, tmp_path, monkeypatch, way, redact
):
    monkeypatch.setenv("RESERVOIR_REDACT", redact)
    secret = "AKIA" + "Q7XN2VD4KLP3ZWTM"
    files = [
        make_rows(tmp_path, 4, conversation_id="c1"),
        make_rows(tmp_path, 3, "own.jsonl", conversation_id=f"c2 {secret}"),
        make_rows(tmp_path, 3, "loose.jsonl", trace_id="t"),
    ]
    for file in files:
        reservoir.import_files(file, partition="home")
    MOVES[way](reservoir)
    before = reservoir.view(Scope(None), 0)
    for dry_run in (True, False):
        report = reservoir.import_files(*files, partition="home", dry_run=dry_run)
        assert (report.imported, report.already) == (0, 10)
    assert reservoir.view(Scope(None), 0) == before


def test_later_turns_follow_the_conversation_that_was_moved_whole(reservoir, tmp_path):
    for name in ("whole", "partly", "stays"):
        file = make_rows(tmp_path, 4, f"{name}.jsonl", conversation_id=name)
        reservoir.import_files(file, partition="home")
    reservoir.move(reservoir.find(Scope("home"), Filter(conversation_id="whole")), "away")
    reservoir.move(reservoir.find(Scope("home"), Filter(conversation_id="partly"))[:2], "away")
    for name in ("whole", "partly", "stays", "new"):
        file = make_rows(tmp_path, 6, f"{name}.jsonl", conversation_id=name)
        reservoir.import_files(file, partition="home")
    places = {
        name: [
            len(reservoir.find(Scope(partition), Filter(conversation_id=name)))
            for partition in ("home", "away")
        ]
        for name in ("whole", "partly", "stays", "new")
    }
    assert places == {"whole": [0, 6], "partly": [4, 2], "stays": [6, 0], "new": [6, 0]}


def test_a_copy_in_a_partition_that_nothing_left_is_stored(reservoir, tmp_path):
    file = make_rows(tmp_path, 4, conversation_id="c")
    for partition in ("home", "work"):
        assert reservoir.import_files(file, partition=partition).imported == 4
    reservoir.move(reservoir.find(Scope("home")), "away")
    assert reservoir.import_files(file, partition="third").imported == 4
    assert reservoir.import_files(file, partition="home").already == 4
    assert texts(reservoir, "work") == texts(reservoir, "third") == texts(reservoir, "away")


def test_moved_messages_stay_edited_and_forgotten(reservoir, tmp_path):
    file = make_rows(tmp_path, 4, conversation_id="c")
    reservoir.import_files(file, partition="home")
    keys, _ = reservoir.move(reservoir.find(Scope("home")), "away")
    reservoir.edit(keys[0], "glaze")
    reservoir.forget(keys[1:2])
    report = reservoir.import_files(file, partition="home")
    assert (report.imported, report.already, report.forgotten) == (0, 3, 1)
    assert texts(reservoir, "away") == ["glaze", "rows 2", "rows 3"]
    reservoir.forget(reservoir.find(AWAY))
    report = reservoir.import_files(file, partition="home")
    assert (report.imported, report.forgotten) == (0, 4)
    report = reservoir.import_files(file, partition="home", include_forgotten=True)
    assert (report.restored, len(texts(reservoir, "home"))) == (4, 4)
