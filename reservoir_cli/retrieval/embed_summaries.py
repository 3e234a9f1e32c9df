"""Embed the summaries of conversations after a change of the model."""

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope
from reservoir_cli.storage.store import Store
from reservoir_cli.storage.tables.summaries import Summaries


def embed_summaries(store: Store, embedder: Embedder, scope: Scope) -> None:
    """Embed the summaries that another model embedded: a question finds no others."""
    summaries = Summaries(store)
    for summary in summaries.read(scope):
        if summary.model_id != embedder.model_id:
            vector = embedder.encode_documents([summary.text])[0]
            summaries.set_vector(summary, embedder.model_id, vector)
