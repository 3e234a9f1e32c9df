"""Editing a message removes the old text from every file and keeps all other fields."""

from pathlib import Path

import pytest
from builders import NOW

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.tables.summaries import Summaries, Summary
from reservoir_cli.tokens import load_counter
from reservoir_cli.transfer.reading.importer import Record
from reservoir_cli.transfer.stages import Destination, ImportOptions
from reservoir_cli.transfer.store_records import FileImport

SECRET = "zanzibarwalrus"


@pytest.fixture
def reservoir(location, fake_embedder):
    with Reservoir.open(location, embedder=fake_embedder) as opened:
        yield opened


def add_messages(reservoir, *texts, embed=True):
    messages = [
        Message("user", text, NOW, conversation_id="c", source="s", source_id=str(number))
        for number, text in enumerate(texts)
    ]
    return reservoir.ingest(messages, partition="p", embed=embed)


def test_an_edit_rebuilds_derived_data_and_keeps_the_rest(reservoir):
    first, second = add_messages(reservoir, f"the {SECRET} sleeps", "another one")
    reservoir.tag(first.key, "a")
    reservoir.pin(first.key)
    before = reservoir.messages([first.key])[0]
    Summaries(reservoir.store).put(Summary("p", "p", "c", "d", f"about {SECRET}", "extract", 1))
    after = reservoir.edit(first.key, "the otter swims far away from here")
    assert after.content == "the otter swims far away from here"
    ignored = {"content": "", "tokens": 0}
    assert {**after.to_row(), **ignored} == {**before.to_row(), **ignored}
    assert after.tokens != before.tokens
    assert reservoir.search(SECRET, mode="keyword", partition="p") == []
    [hit] = reservoir.search("otter", mode="keyword", partition="p")
    assert hit.message.id == first.id
    assert Summaries(reservoir.store).read(Scope("p")) == []
    assert reservoir.store.count_unembedded() == 0
    assert [passage.end for passage in reservoir.store.passages([first.key])[first.key]] == [34]
    assert reservoir.store.problems() == []
    assert [message.content for message in reservoir.view(Scope("p"), 0)] == [
        "the otter swims far away from here",
        second.content,
    ]


@pytest.mark.sqlite("it reads the files")
def test_no_word_of_the_old_text_is_in_any_file(reservoir, location):
    add_messages(reservoir, *(f"note {number} of {SECRET}{number}" for number in range(50)))
    for message in reservoir.view(Scope("p"), 0):
        reservoir.edit(message.key, "the otter swims")
    for file in Path(location).parent.glob(f"{Path(location).name}*"):
        assert SECRET.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize("new", ["something else", "the walrus"])
@pytest.mark.parametrize("renew", [False, True])
def test_an_import_does_not_restore_the_old_text(reservoir, new, renew):
    """This holds even if the new text is the beginning of the old one, as in a growing message."""
    row = {"role": "user", "content": "the walrus sleeps", "source": "s", "source_id": "1"}
    options = ImportOptions(renew=renew)

    def load():
        destination = Destination("p", "p", "p")
        file_import = FileImport(reservoir._ingestor, destination, options, "x", NOW)
        return file_import.load([Record(Message(**row), None, None)])

    load()
    [message] = reservoir.view(Scope("p"))
    reservoir.edit(message.key, new)
    report = load()
    assert (report.imported, report.already, report.renewed, report.forgotten) == (0, 1, 0, 0)
    assert [message.content for message in reservoir.view(Scope("p"))] == [new]


def test_secrets_of_the_new_text_are_treated_as_those_of_a_new_message(
    reservoir, location, fake_embedder
):
    [message] = add_messages(reservoir, "harmless")
    key = "AKIA" + "Q3EGRIVLTAYXKZWP"
    marked = reservoir.edit(message.key, f"aws_access_key_id = {key}")
    assert marked.secrets
    remove = {"redact": "remove"}
    with Reservoir.open(location, settings=remove, embedder=fake_embedder) as removing:
        removing.edit(message.key, f"it is aws_access_key_id = {key}")
    assert key not in reservoir.store.by_key([message.key])[0].content


def test_empty_texts_and_unknown_messages_are_refused(reservoir):
    [message] = add_messages(reservoir, "one")
    with pytest.raises(UsageError, match="empty"):
        reservoir.edit(message.key, " \n")
    with pytest.raises(ReservoirError, match="no message"):
        reservoir.edit(message.id, "new", scope=Scope("q"))
    assert reservoir.view(Scope("p"))[0].content == "one"


def test_an_edited_message_keeps_its_tags_and_pin(reservoir):
    [message] = add_messages(reservoir, "it begins")
    reservoir.tag(message.key, "a")
    reservoir.pin(message.key)
    extended = Message("user", "it begins and goes on", NOW, source="s", source_id="0")
    counter = load_counter("approximate")
    reservoir.store.replace({message.key: extended}, counter=counter, now=NOW)
    [after] = reservoir.view(Scope("p"))
    assert (after.content, after.tags) == ("it begins and goes on", ("a",))
    assert after.pinned_at
