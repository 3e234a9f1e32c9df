"""The least cosine of links can be set for each partition."""

import pytest

from reservoir_cli import Reservoir
from reservoir_cli.messages import Message, Scope

SETTINGS = """
embedding_model = "nobody/absent-model"
link_cosine = 1
[partitions.loose]
link_cosine = -1
"""


@pytest.mark.parametrize("scope", [None, Scope(None)], ids=["the partition", "all partitions"])
@pytest.mark.parametrize("partition", ["loose", "default", "other"])
def test_each_partition_uses_its_own_threshold(location, tmp_path, fake_embedder, partition, scope):
    settings = tmp_path / "settings.toml"
    settings.write_text(SETTINGS)
    with Reservoir.open(location, config_file=settings, embedder=fake_embedder) as reservoir:
        for name in ("loose", "default", "other"):
            messages = [Message("user", f"{name} {number}") for number in range(12)]
            reservoir.ingest(messages, partition=name)
        hits = reservoir.search("5", limit=99, partition=partition, scope=scope, link=True)
        linked = {len(hit.linked) > 0 for hit in hits if hit.message.partition == partition}
        assert linked == {partition == "loose"}
