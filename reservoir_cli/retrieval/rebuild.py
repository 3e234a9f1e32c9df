"""Changing the model: new vectors beside the old ones, and a switch when they are complete."""

from reservoir_cli.embedding import Embedder, Progress
from reservoir_cli.messages import Scope
from reservoir_cli.retrieval.indexing import GROUP, embed_pending, embedded, first_group
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.links import LinkThreshold


def rebuild(
    store: Store, embedder: Embedder, *, synapse_threshold: LinkThreshold, progress: Progress
) -> int:
    """Make vectors of every message by a model, then compare those from there on.

    Each group is safe when it is done: what is broken off goes on where it was. Until the switch
    others ask and write as before. Messages that come in at the last moment are pending after it.

    :param synapse_threshold: from this likeness on messages are linked.
    :returns: how many messages were embedded by this run.
    :raises ReservoirError: another process began to build yet another model meanwhile.
    """
    if store.active_model() is None:  # there is nothing to go on with meanwhile
        store.activate_model(embedder.model_id, embedder.name)
        return embed_pending(
            store, embedder, Scope(None), synapse_threshold=synapse_threshold, progress=progress
        )
    kept_as = store.begin_model(embedder.model_id, embedder.name)
    done, total = 0, store.count_unembedded(model=kept_as)
    while some := first_group(store.unembedded(GROUP, model=kept_as)):
        store.add_passages(kept_as, embedded(some, embedder), synapse_threshold)
        done += len(some)
        progress(f"embedding by {embedder.name}", done, max(total, done))
    progress("changing over", 0, 0)
    store.switch_model(kept_as)
    clear_away(store)
    return done


def clear_away(store: Store) -> None:
    """Remove what a switch left behind, in portions that keep nobody waiting."""
    while store.clear_former_model():
        pass
