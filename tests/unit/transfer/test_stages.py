"""What an import does again with messages that the store has."""

from collections.abc import Sequence

from builders import NOW, ingestor

from reservoir_cli.messages import Message, Scope
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.store import Store
from reservoir_cli.transfer.reading.content_blocks import THINKING
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import FileImport

HERE = Scope("p", "i")


def record(number: int, text: str, **more: str) -> Record:
    said = Message("assistant", text, source="s", source_id=str(number), **more)
    return Record(said)


def load(store: Store, records: Sequence[Record], *, renew: bool = False) -> tuple[int, int, int]:
    options = ImportOptions(renew=renew)
    loaded = FileImport(ingestor(store), Destination("p", "i", "p"), options, "file", NOW)
    report = loaded.load(records)
    return report.imported, report.renewed, report.already


def test_only_what_is_new_or_changed_is_scanned_for_secrets(store, monkeypatch):
    scanned: list[str] = []
    scan = Redactor.scan

    def counting(self: Redactor, message: Message, partition: str) -> object:
        scanned.append(message.content)
        return scan(self, message, partition)

    monkeypatch.setattr(Redactor, "scan", counting)
    first = [record(number, f"text {number}") for number in range(50)]
    grown = [*first[:-1], record(49, "text 49, and more")]
    steps = [
        (first, False, (50, 0, 0), 50),
        (first, False, (0, 0, 50), 0),
        (first, True, (0, 0, 50), 0),
        ([*first, record(50, "new")], False, (1, 0, 50), 1),
        (grown, False, (0, 0, 50), 0),
        (grown, True, (0, 1, 49), 1),
        (grown, True, (0, 0, 50), 0),
    ]
    for number, (records, renew, counts, scans) in enumerate(steps):
        scanned.clear()
        result = load(store, records, renew=renew), len(scanned)
        assert result == (counts, scans), number


def test_thinking_that_is_new_is_stored_with_the_reply_it_belongs_to(store):
    reply = record(1, "yes")
    assert load(store, [reply]) == (1, 0, 0)
    assert load(store, [reply, record(2, "is it?", name=THINKING)]) == (1, 0, 1)
    assert [message.content for message in store.last(HERE, 0)] == ["yes", "is it?"]
