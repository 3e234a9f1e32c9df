"""Giving stored messages their vectors, in groups that each are safe when they are done."""

from itertools import accumulate

from reservoir_cli.embedding import Embedder, Progress
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Key, Scope, StoredMessage, plain_text
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.links import LinkThreshold
from reservoir_cli.storage.records import Passage

#: A group is safe when it is done, and is sorted by length: of so many messages, or fewer if
#: they have so many characters, which take some five seconds.
GROUP, _GROUP_CHARACTERS = 512, 200_000
#: Only so many characters of a message are embedded, which take 160 MB; words are found in all.
LONGEST = 1_000_000


def embed_pending(
    store: Store,
    embedder: Embedder,
    scope: Scope,
    *,
    synapse_threshold: LinkThreshold,
    progress: Progress,
    limit: int | None = None,
    newest: bool = False,
    wait: float | None = None,
) -> int:
    """Give messages their vectors, in groups that each are safe when they are done.

    :param synapse_threshold: from this likeness on messages are linked.
    :param limit: at most so many messages; ``None`` for all.
    :param wait: seconds to wait for the write lock.
    :returns: how many messages were embedded.
    :raises ReservoirError: the store's vectors are of another model.
    """
    _require_same_model(store, embedder)
    total = store.count_unembedded(scope) if limit is None else limit
    done = 0
    if total:
        progress("embedding", 0, total)
    while limit is None or done < limit:
        most = min(GROUP, total - done or 1)
        some = first_group(store.unembedded(most, scope, newest=newest))
        if not some:
            break
        passages = embedded(some, embedder)
        with store.write(wait):
            if store.active_model() is None:
                store.activate_model(embedder.model_id, embedder.name)
            store.add_passages(embedder.model_id, passages, synapse_threshold)
        done += len(some)
        progress("embedding", done, max(total, done))
    return done


def _require_same_model(store: Store, embedder: Embedder) -> None:
    active = store.active_model()
    if active is not None and active[0] != embedder.model_id:
        raise ReservoirError(
            f"the vectors of this store are of another model than {embedder.name}",
            hint=f"reservoir embed --rebuild, or config --set embedding_model={active[1]}",
        )


def first_group(messages: list[StoredMessage]) -> list[StoredMessage]:
    """As many of some messages as are safe together soon; one, however long it is."""
    lengths = accumulate(len(plain_text(each)) for each in messages)
    count = sum(1 for length in lengths if length <= _GROUP_CHARACTERS)
    return messages[: max(1, count)]


def embedded(messages: list[StoredMessage], embedder: Embedder) -> dict[Key, list[Passage]]:
    """Return the passages of messages with their vectors."""
    # A message without any text keeps no vector, and is no longer pending.
    said = ((message.key, plain_text(message)[:LONGEST]) for message in messages)
    texts = [(key, text) for key, text in said if text.strip()]
    spans = [
        (key, number, start, end, text[start:end])
        for key, text in texts
        for number, (start, end) in enumerate(embedder.passages(text))
    ]
    vectors = embedder.encode_documents([passage for *_, passage in spans])
    passages: dict[Key, list[Passage]] = {message.key: [] for message in messages}
    for (key, number, start, end, _), vector in zip(spans, vectors, strict=True):
        passages[key].append(Passage(key.id, number, start, end, vector))
    return passages
