"""The similarity threshold of links can be set for each partition."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from behind import behind
from builders import EVERYWHERE, FakeEmbedder

from reservoir_cli import Reservoir
from reservoir_cli.maintenance import backup, doctor
from reservoir_cli.message_filter import Filter
from reservoir_cli.messages import Message
from reservoir_cli.storage import copy_store
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.transfer import exporters
from reservoir_cli.transfer.reports import ExportReport

COUNT = 12
#: In "loose" every message is linked to three or four earlier ones, in the others to none.
SETTINGS = """
embedding_model = "nobody/absent-model"
link_cosine = 1
[partitions.loose]
link_cosine = -1
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture
def reservoir(location: str, settings: Path, fake_embedder: FakeEmbedder) -> Iterator[Reservoir]:
    with Reservoir.open(location, config_file=settings, embedder=fake_embedder) as opened:
        for partition in ("loose", "default", "other"):
            messages = [Message("user", f"{partition} {number}") for number in range(COUNT)]
            opened.ingest(messages, partition=partition, embed=False)
        yield opened


def count_linked(location: str) -> Counter[str]:
    """Return how many messages of each partition are linked to an earlier one."""
    query = """
        SELECT partition, COUNT(*) FROM messages
        WHERE id IN (SELECT source_id FROM synapses) GROUP BY 1
    """
    return Counter(dict(behind(location, query)))


def rebuild(reservoir: Reservoir) -> None:
    reservoir.embed()
    behind(reservoir.store.location, "DELETE FROM synapses")
    assert reservoir.indexer.rebuild() == 3 * COUNT


def repair(reservoir: Reservoir) -> None:
    reservoir.embed()
    behind(reservoir.store.location, "DELETE FROM synapses")
    arguments = reservoir.location, reservoir.config.path
    checks = doctor.examine(*arguments, lambda *_: None, tools=(), repair=True)
    assert [check for check in checks if check.name == "store"]


@pytest.mark.parametrize("link", [Reservoir.embed, rebuild, repair])
def test_each_partition_uses_its_own_threshold(
    reservoir: Reservoir, link: Callable[[Reservoir], object]
) -> None:
    link(reservoir)
    assert count_linked(reservoir.store.location) == {"loose": COUNT - 1}


def test_imported_vectors_are_linked_by_the_threshold_of_their_partition(
    reservoir: Reservoir, new_location: Callable[[], str], tmp_path: Path
) -> None:
    reservoir.embed()
    file, target = tmp_path / "all.jsonl", new_location()
    totals, store = ExportReport(), reservoir.store
    pieces = exporters.export(
        store, EVERYWHERE, Filter(), "jsonl", totals, mask=reservoir.redactor, embeddings=True
    )
    file.write_text("".join(pieces), encoding="utf-8")
    path, embedder = reservoir.config.path, FakeEmbedder()
    with Reservoir.open(target, config_file=path, embedder=embedder) as second:
        assert second.import_files(file).imported == 3 * COUNT
        assert second.store.count_unembedded(EVERYWHERE) == 0
    assert count_linked(target) == {"loose": COUNT - 1}


def test_a_copy_has_the_links_of_its_source_even_after_a_repair(
    reservoir: Reservoir, new_location: Callable[[], str]
) -> None:
    reservoir.embed()
    target = new_location()
    with closing(open_store(target)) as copy:
        copy_store.copy(reservoir.store, copy, lambda *_: None)
        assert count_linked(target) == {"loose": COUNT - 1}
        copy.repair(reservoir.config.link_threshold)
    assert count_linked(target) == {"loose": COUNT - 1}


@pytest.mark.sqlite("a server is not salvaged")
def test_salvaged_messages_are_linked_by_the_threshold_of_their_partition(
    reservoir: Reservoir, tmp_path: Path
) -> None:
    reservoir.embed()
    salvaged = tmp_path / "saved.db"
    threshold = reservoir.config.link_threshold
    backup.salvage(reservoir.store.location, salvaged, threshold)
    assert count_linked(str(salvaged)) == {"loose": COUNT - 1}
