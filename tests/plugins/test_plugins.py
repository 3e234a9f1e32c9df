"""What other packages add by entry points, from the example of docs/plugins.md to broken ones."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import Cli

from reservoir_cli.errors import ModelUnavailableError, PluginError, UsageError
from reservoir_cli.messages import Message, Scope
from reservoir_cli.redaction.find_secrets import find
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.tokens import load_counter
from reservoir_cli.transfer.formats.registry import importer_named
from reservoir_cli.util import installed_plugins

EXAMPLE = Path(__file__).parent / "jotter"
CHAT = [
    {"jotter": 1, "chat": "c1", "about": "Fences", "dir": "/home/me/garden"},
    {"nr": 1, "who": "me", "said": "Which paint lasts?", "when": "2026-03-01T10:00:00Z"},
    {"nr": 2, "who": "bot", "said": "Linseed oil paint.", "when": "2026-03-01T10:00:09Z"},
    {"nr": 3, "who": "cat", "said": "miaow"},
]


def write_chat(file: Path, *more: dict[str, object]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in (*CHAT, *more)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example as its page says, but into a folder of its own."""
    if not all(map(find_spec, ("pip", "hatchling"))):
        pytest.skip("pip or hatchling is not installed")
    target = tmp_path_factory.mktemp("packages")
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", target, EXAMPLE]
    subprocess.run(command, check=True, timeout=300)
    return target


@pytest.fixture
def user(installed: Path, cli: Cli) -> Cli:
    cli.env |= {"PYTHONPATH": str(installed), "RESERVOIR_PLUGINS": "on"}
    return cli


def test_the_example_is_read_by_init_sync_and_ingest(user, tmp_path):
    chat = write_chat(user.home / ".jotter" / "chats" / "c1.jsonl")
    report = user("init", "--yes", "--no-embed", "--json", command=RESERVOIR).document
    (history,) = [row for row in report["histories"] if row["messages"]]
    assert (history["tool"], history["messages"], history["skipped"]) == ("Jotter", 2, 1)
    (row, _) = user("view", "--json", command=RESERVOIR).document["messages"]
    assert (row["instance"], row["source"], row["conversation_id"]) == ("jotter", "jotter", "c1")
    write_chat(chat, {"nr": 4, "who": "me", "said": "In which colours?"})
    os.utime(chat, (1_790_000_000, 1_790_000_000))  # the last turn is over
    assert "jotter: imported 1" in user("sync", "--no-embed", command=RESERVOIR).err
    other = write_chat(tmp_path / "elsewhere" / "notes.jsonl")
    assert "imported 0, already there 2" in user("ingest", str(other), command=RESERVOIR).err
    assert "already there 2" in user("ingest", str(other.parent), command=RESERVOIR).err
    assert "importers: jotter of reservoir-jotter 0.1" in user("doctor", command=RESERVOIR).out


def test_files_with_an_ending_of_their_own_are_found_in_folders_and_zips(package, cli, tmp_path):
    package.offer("importers", "leaves", "Leaves")
    cli.env |= {"PYTHONPATH": str(package.folder), "RESERVOIR_PLUGINS": "on"}
    leaves = cli.home / ".leaves"
    leaves.mkdir(parents=True)
    (leaves / "oak.leaf").write_text("LEAF oak", encoding="utf-8")
    assert "Leaves: imported 1" in cli("init", "--yes", "--no-embed", command=RESERVOIR).err
    (leaves / "elm.leaf").write_text("LEAF elm", encoding="utf-8")
    os.utime(leaves / "elm.leaf", (1_790_000_000, 1_790_000_000))  # the last turn is over
    assert "leaves: imported 1" in cli("sync", "--no-embed", command=RESERVOIR).err
    (leaves / "note.txt.bak").write_text("LEAF no", encoding="utf-8")
    told = cli("ingest", str(leaves), command=RESERVOIR).err
    assert "imported 0, already there 2" in told
    assert "1 other file ignored: note.txt.bak" in told
    with zipfile.ZipFile(tmp_path / "leaves.zip", "w") as archive:
        archive.write(leaves / "elm.leaf", "elm.leaf")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.md").write_text("A note.", encoding="utf-8")
    (tmp_path / "notes" / "tree.leaf").write_text("of another program", encoding="utf-8")
    told = cli("ingest", "--no-embed", str(tmp_path / "notes"), command=RESERVOIR).err
    assert "imported 1, " in told
    assert "1 other file ignored: tree.leaf" in told
    told = cli("ingest", str(tmp_path / "leaves.zip"), command=RESERVOIR).err
    assert "imported 0, already there 1" in told
    titles = [row["title"] for row in cli("conversations", "--json").document["conversations"]]
    assert sorted(titles) == ["About elm", "About oak"]


def test_without_plugins_a_source_of_one_is_an_error_that_names_it(user):
    chat = write_chat(user.home / "c1.jsonl")
    result = user("--no-plugins", "ingest", str(chat), code=1, command=RESERVOIR)
    assert "has an unknown format" in result.err
    user("config", "set", "sources.jotter.path=/x", command=RESERVOIR)
    assert "unknown tool 'jotter'" in user("--no-plugins", "sync", code=2, command=RESERVOIR).err


RESERVOIR = (str(Path(sys.executable).with_name("reservoir")),)

MODULE = """
from pathlib import Path

from reservoir_cli.plugins import Conversation, Importer, Message, Place, Record

class Toy(Importer):
    name, title = "toy", "Toy"
    def detect(self, head): return head.has("toy", depth=1)
    def read(self, file): raise KeyError("a text of the user")

class Leaves(Importer):
    name, title = "leaves", "Leaves"
    def detect(self, head): return head.text.startswith("LEAF ")
    def places(self): yield Place(Path.home() / ".leaves", (".leaf",))
    def read(self, file):
        with file.open() as stream:
            said = stream.read().decode("utf-8")
        about = Conversation(file.stem, source=self.name, title="About " + file.stem)
        ids = {"source_id": file.stem, "conversation_id": file.stem}
        yield Record(Message("user", said, source=self.name, **ids), conversation=about)

class Odd(Toy):
    def detect(self, head): raise KeyError("a text of the user")

def fail(*arguments): raise KeyError("a text of the user")

class Words:
    version, exact = "1", True
    def __init__(self, argument): self.name = f"words:{argument}"
    def count(self, text): return len(text.split())

class Letters:
    model_id, dimensions = "v1", 26
    def __init__(self, argument): self.size = int(argument)
    def encode_query(self, text): return [text.lower().count(chr(97 + n)) for n in range(26)]
    def encode_documents(self, texts): return [self.encode_query(x)[:self.size] for x in texts]

def badges(text):
    start = text.find("BADGE-")
    return [("badge-number", start, start + 10)] if start >= 0 else []

def shout(thread): return "".join(f"{message.content.upper()}!\\n" for message in thread.messages)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Package"]:
    monkeypatch.setenv("RESERVOIR_PLUGINS", "on")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    yield Package(tmp_path / "packages")
    sys.modules.pop("toy_package", None)
    for cached in (installed_plugins._by_kind, installed_plugins.load):
        cached.cache_clear()


class Package:
    """A package whose entry points a test chooses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "toy-0.2.dist-info").mkdir(parents=True)
        (folder / "toy_package.py").write_text(MODULE, encoding="utf-8")
        (folder / "toy-0.2.dist-info" / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: toy\nVersion: 0.2\n", encoding="utf-8"
        )

    def offer(self, kind: str, name: str, target: str) -> None:
        with (self.folder / "toy-0.2.dist-info" / "entry_points.txt").open("a") as file:
            file.write(f"[reservoir.{kind}]\n{name} = toy_package:{target}\n")
        installed_plugins._by_kind.cache_clear()


def test_a_counter_is_chosen_by_its_scheme(package):
    package.offer("counters", "words", "Words")
    counter = load_counter("words:x")
    assert (counter.name, counter.exact, counter.count("two words")) == ("words:x", True, 2)
    with pytest.raises(UsageError) as unknown:
        load_counter("letters:x")
    assert "words:ARGUMENT" in str(unknown.value.hint)


def test_a_model_embeds_and_finds_messages(package):
    package.offer("embedders", "letters", "Letters")
    settings = {"embedding_model": "letters:26"}
    with Reservoir.open(settings=settings) as reservoir:
        reservoir.ingest([Message("user", "aaa bbb"), Message("user", "xxx yyy")])
        assert reservoir.store.count_unembedded() == 0
        best = reservoir.search("yxyx", mode="semantic")[0]
    assert best.message.content == "xxx yyy"
    assert best.cosine == pytest.approx(1.0, abs=0.01)


def test_a_model_with_wrong_vectors_is_an_error(package):
    package.offer("embedders", "letters", "Letters")
    with Reservoir.open(settings={"embedding_model": "letters:25"}) as reservoir:
        with pytest.raises(ModelUnavailableError, match=r"letters of toy 0\.2"):
            reservoir.indexer.embedder().encode_documents(["x"])


def test_secrets_of_a_package_are_found_besides_ours(package):
    package.offer("secrets", "badges", "badges")
    text = "my BADGE-4711 and AKIAQ7XN2VD4KLP3ZWTM"
    assert [text[start:end] for _, start, end in find(text)] == text.split()[1::2]


def test_a_conversation_is_exported_in_the_format_of_a_package(package):
    package.offer("exports", "shout", "shout")
    with Reservoir.open() as reservoir:
        reservoir.ingest([Message("user", "hello")], embed=False)
        pieces: list[str] = []
        reservoir.export(pieces.append, Scope("default"), format="shout")
        assert "".join(pieces) == "HELLO!\n"
        with pytest.raises(UsageError) as unknown:
            reservoir.export(pieces.append, Scope("default"), format="whisper")
    assert "shout" in str(unknown.value.hint)


BROKEN = {
    "an importer's detection": ("importers", "Odd"),
    "what is no importer": ("importers", "Words"),
    "a missing name": ("importers", "Nothing"),
    "a counter": ("counters", "fail"),
    "an embedder": ("embedders", "fail"),
    "a rule for secrets": ("secrets", "fail"),
    "an export": ("exports", "fail"),
}


@pytest.mark.parametrize(("kind", "target"), BROKEN.values(), ids=BROKEN)
def test_a_package_that_fails_is_one_error_with_its_name(package, tmp_path, kind, target):
    package.offer(kind, "toy", target)
    file = tmp_path / "x.jsonl"
    file.write_text('{"toy": 1}\n', encoding="utf-8")

    def use() -> None:
        with Reservoir.open(settings={"redact": "off"}) as reservoir:
            reservoir.ingest([Message("user", "hello")], embed=False)
        with Reservoir.open(settings={"embedding_model": "toy:x"}) as reservoir:
            calls = {
                "importers": lambda: reservoir.import_files(file),
                "counters": lambda: load_counter("toy:x"),
                "embedders": reservoir.indexer.embedder,
                "secrets": lambda: find("hello"),
                "exports": lambda: reservoir.export(print, Scope("default"), format="toy"),
            }
            calls[kind]()

    with pytest.raises((PluginError, ModelUnavailableError)) as failed:
        use()
    assert "toy of toy 0.2 failed: " in failed.value.message
    assert "a text of the user" not in f"{failed.value.message}{failed.value.hint}"
    assert failed.value.exit_code == (5 if kind in ("counters", "embedders") else 1)


def test_a_file_whose_reading_fails_is_reported(package, tmp_path):
    package.offer("importers", "toy", "Toy")
    file = tmp_path / "x.jsonl"
    file.write_text('{"toy": 1}\n', encoding="utf-8")
    with Reservoir.open() as reservoir:
        report = reservoir.import_files(file)
    assert report.skipped == 1
    assert "the plugin toy of toy 0.2 failed: KeyError" in report.reasons[0]


def test_our_own_formats_and_files_ask_no_package(package, tmp_path, monkeypatch):
    package.offer("importers", "chatgpt", "Odd")
    package.offer("counters", "approximate", "fail")
    file = tmp_path / "x.jsonl"
    file.write_text('{"role": "user", "content": "hello", "partition": "p"}\n', encoding="utf-8")
    monkeypatch.setattr(installed_plugins, "run", None)
    assert load_counter("approximate").count("hello")
    assert importer_named("chatgpt").title == "ChatGPT"
    with Reservoir.open() as reservoir:
        assert reservoir.import_files(file).imported == 1


def test_nothing_is_loaded_when_plugins_are_off(package, monkeypatch):
    package.offer("secrets", "toy", "fail")
    monkeypatch.setenv("RESERVOIR_PLUGINS", "off")
    assert find("hello") == []
    monkeypatch.setenv("RESERVOIR_PLUGINS", "")
    installed_plugins.leave_out()
    assert installed_plugins.find_plugins("secrets") == {}
