import os
import zipfile
from datetime import UTC, datetime

import pytest
from each import each
from reading import entries_by_file, file_of, read

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.transfer.detect_format import choose
from reservoir_cli.transfer.formats.registry import importers
from reservoir_cli.transfer.formats.text_and_markdown import Plain, find_date
from reservoir_cli.transfer.reading.importer import Record, Skipped
from reservoir_cli.transfer.reading.input_files import read_text
from reservoir_cli.util.front_matter import find_fields
from reservoir_cli.util.read_files import decode


def read_one(text: str) -> Record | Skipped:
    [entry] = read(text, Plain())
    return entry


@each(
    ("text", "content"),
    [
        ("hello", "hello"),
        ("\n\r\n\nhello\n\nworld\n\n", "hello\n\nworld"),
        ("    indented\n", "    indented"),
        ("# Title\n\ntext", "# Title\n\ntext"),
    ],
)
def test_a_file_is_one_message_without_its_outer_blank_lines(text, content):
    entry = read_one(text)
    assert isinstance(entry, Record)
    assert (entry.message.role, entry.message.content) == ("user", content)
    assert entry.message.source == "text"


@pytest.mark.parametrize("text", ["", "\n", " \t\n"])
def test_an_empty_file_is_not_a_message(text):
    assert read(text, Plain()) == []


@each(
    ("front_matter", "tags"),
    [
        ("tags: [travel, 'two words', \"jápan\"]", ("travel", "two words", "jápan")),
        (
            "title: x\ntags: # of this note\n  - travel\n  - '#japan' # a trip\n- C#\nid: 1",
            ("travel", "japan", "C#"),
        ),
        ("Tags: travel, japan, travel", ("travel", "japan")),
        ("tags:\r\n- travel\r\n- japan\r", ("travel", "japan")),
        ("tags: bell\x07", ("bell\ufffd",)),
        *((f"tags: {nothing}", ()) for nothing in ("", "[]", "null", "~")),
        ("title: no tags: here", ()),
    ],
)
def test_tags_come_from_the_front_matter(front_matter, tags):
    entry = read_one(f"---\n{front_matter}\n---\ntags: text")
    assert isinstance(entry, Record)
    assert entry.message.tags == tags


def test_tags_come_from_toml():
    entry = read_one('+++\ntags = [\n  "travel",\n  "japan",\n]\n+++\ntext')
    assert isinstance(entry, Record)
    assert entry.message.tags == ("travel", "japan")


@each(
    ("front_matter", "title"),
    [
        ("---\ndate: 2026-01-02\nTitle: 'Sour rye: a start'\n---\n", "Sour rye: a start"),
        ('+++\r\ntitle = "Sour rye"\r\n+++\r\n', "Sour rye"),
        ("---\ntitle:\ndate: 2026-01-02\n---\n", None),
        ("title: no front matter\n\n", None),
    ],
)
def test_the_title_in_front_matter_is_that_of_a_conversation(front_matter, title):
    entry = read_one(f"{front_matter}# Flour\ntitle: text")
    assert isinstance(entry, Record)
    about = entry.conversation
    assert (about and about.title) == title
    assert entry.message.conversation_id == (about and about.id)
    assert entry.message.content.startswith(front_matter[:10])


def test_the_id_depends_on_the_text():
    first, equal, different = read_one("hello"), read_one("hello\n"), read_one("hullo")
    assert isinstance(first, Record)
    assert isinstance(different, Record)
    assert first == equal
    assert first.message.source_id != different.message.source_id


CHOSEN = [
    ("hello", "text"),
    ("", "text"),
    ("# user\n\nhello", "text"),
    ('"role": "user"', "text"),
    ('see {"role": "user", "content": "x"}', "text"),
    ('{"role": "user", "content": "x"}', "openai"),
    (' \n[{"role": "user", "content": "x"}]', "openai"),
    ('{"messages": []}', "openai"),
    ('{"partition": "p", "role": "user", "content": "x"}', "reservoir"),
    ('{"role": "user", "content": "my \\"partition\\" is full"}', "openai"),
    ('{"name": "package.json", "version": 1}', "text"),
]


@each(("text", "name"), CHOSEN)
def test_the_format_is_detected_by_the_content(text, name):
    assert choose(file_of(text, "anything")).name == name


@each("name", importers())
def test_an_explicit_format_is_used_for_any_content(name):
    assert choose(file_of("hello"), name).name == name


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(UsageError, match="unknown format 'word'") as caught:
        choose(file_of("hello"), "word")
    assert all(name in str(caught.value.hint) for name in importers())


@each(
    ("data", "text", "replaced"),
    [
        (b"hello", "hello", 0),
        ("\ufeffhello".encode(), "hello", 0),
        ("naïve 😀".encode(), "naïve 😀", 0),
        ("already \ufffd".encode(), "already \ufffd", 0),
        (b"gr\xfc\xdfe", "gr\ufffd\ufffde", 2),
        (b"a\0b", "a\0b", 1),
        (b"", "", 0),
    ],
)
def test_bytes_are_read_as_utf8(data, text, replaced):
    assert decode(data, "notes.txt") == (text, replaced)


@each(
    "data",
    [
        bytes(range(256)) * 20,
        b"\x89PNG\r\n\x1a\n" + b"\0\xff" * 100,
        bytes(1_000),
        b"notes\n" * 10 + bytes(9_000),
    ],
)
def test_a_file_that_is_mostly_binary_is_an_error_that_names_it(data):
    with pytest.raises(ReservoirError, match=r"photo.png is not a text file") as caught:
        decode(data, "photo.png")
    assert caught.value.exit_code == 1


def test_utf_16_is_an_error_that_names_the_command_to_convert_it():
    with pytest.raises(ReservoirError) as caught:
        decode("a text in UTF-16".encode("utf-16"), "notes.txt")
    assert caught.value.hint == "convert it to text in UTF-8: iconv -f utf-16 -t utf-8"


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    for path in (tmp_path / "absent.txt", tmp_path):
        with pytest.raises(ReservoirError, match="cannot read") as caught:
            read_text(path)
        assert str(path) in caught.value.message
    (tmp_path / "there.txt").write_bytes(b"hello\n")
    assert read_text(tmp_path / "there.txt") == ("hello\n", 0)


@pytest.mark.parametrize("name", ["chat.json", "CHAT.JSONL"])
@pytest.mark.parametrize("text", ['{"foo": 1}', "{torn", "[1, 2]"])
def test_json_of_an_unknown_format_is_not_taken_for_a_message(name, text):
    with pytest.raises(ReservoirError, match="has an unknown format"):
        choose(file_of(text, name))
    assert choose(file_of(text, name), "text").name == "text"
    assert choose(file_of(text, "notes.md")).name == "markdown"


WRITTEN = "2024-03-05T14:30:00+00:00"
DAY = datetime(2024, 3, 5).astimezone(UTC)
OTHER_DAY = datetime(2023, 1, 2).astimezone(UTC)


@each(
    ("content", "name", "expected"),
    [
        (f"---\ntitle: x\ndate: {WRITTEN}\n---\ntext", "n.md", datetime.fromisoformat(WRITTEN)),
        ('---\r\nDate: "2024-03-05"  \r\n---\r\ntext', "2023-01-02.md", DAY),
        ("---\ncreated: 2024/03/05 # the day\n---", "n.md", DAY),
        ("---\nupdated: 2023-01-02\ncreated: 2024-03-05\n---\n", "n.md", DAY),
        ("+++\ndate = 2024-03-05\n+++\ntext", "n.md", DAY),
        ("---\ndate: soon\n---\ntext", "2023-01-02-plan.md", OTHER_DAY),
        ("date: 2024-03-05\ntext", "n.md", None),
        ("text\n---\ndate: 2024-03-05\n---\n", "n.md", None),
        ("text", "standup 2024-03-05.md", DAY),
        ("text", "20240305.txt", DAY),
        ("text", "2024_03_05_notes.md", DAY),
        ("text", "2024-13-45.md", None),
        ("text", "123420240305.md", None),
        ("text", "chapter-20.md", None),
        ("---\ndate: 9999-12-31T23:59:59-23:00\n---", "n.md", None),
    ],
)
def test_the_date_in_a_document_is_its_time(content, name, expected):
    assert find_date(find_fields(content), name) == expected


def test_a_document_without_a_date_gets_that_of_its_file(tmp_path):
    seconds = 1_700_000_000
    (tmp_path / "notes").mkdir()
    for name in ("a.md", "2023-01-02.md"):
        path = tmp_path / "notes" / name
        path.write_text(f"text of {name}", encoding="utf-8")
        os.utime(path, (seconds, seconds))
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
        archive.write(tmp_path / "notes" / "a.md", "a.md")
        archive.writestr(zipfile.ZipInfo("untimed.md"), "text")
    modified = datetime.fromtimestamp(seconds, UTC)
    day, undated = (entries[0] for entries in entries_by_file(tmp_path / "notes").values())
    assert (day.message.created_at, undated.message.created_at) == (OTHER_DAY, modified)
    packed, untimed = (entries[0] for entries in entries_by_file(tmp_path / "notes.zip").values())
    assert packed.message.created_at == modified
    assert untimed.message.created_at is None
