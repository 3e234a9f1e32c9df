"""Prepare the pool that a context is selected from: printable messages with their scores."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context import excerpts, passages, turns
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.tiers import ages
from reservoir_cli.context.types import Candidate, Scores, Span, Tier
from reservoir_cli.errors import StoreError
from reservoir_cli.messages import Role, Scope, StoredMessage, plain_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.storage.base import Store
from reservoir_cli.tokens import counter_id


def titles_of(
    rows: Sequence[StoredMessage], scope: Scope, store: Store, mask: Redactor
) -> dict[tuple[str, str | None], str]:
    """Return the redacted titles of the messages' conversations."""
    assert scope.partition is not None
    threads = {
        (scope.partition, row.instance, row.conversation_id) for row in rows if row.conversation_id
    }
    return {
        (instance, number): mask.text(partition, about.title)
        for (partition, instance, number), about in store.known_conversations(threads).items()
        if about.title
    }


def recounted(rows: list[StoredMessage], store: Store, meter: Meter) -> list[StoredMessage]:
    """Return messages with tokens by the current counter, counting again if another was used."""
    name = counter_id(meter.counter)
    stale = {each.id for each in rows if each.counter != name}
    if not stale:
        return rows
    rows = [
        replace(each, tokens=meter.counter.count(plain_text(each)), counter=name)
        if each.id in stale
        else each
        for each in rows
    ]
    # Store the counts only if no other process is writing: never wait for it.
    with suppress(StoreError), store.write(wait=0):
        store.update_counts({each.key: each.tokens for each in rows if each.id in stale}, name)
    return rows


def masked(rows: list[StoredMessage], mask: Redactor, meter: Meter) -> list[StoredMessage]:
    """Redact secrets in messages, and count those that changed."""
    shown = mask.messages(rows)
    return [
        each if each is row else replace(each, tokens=meter.counter.count(plain_text(each)))
        for row, each in zip(rows, shown, strict=True)
    ]


def passages_of(
    rows: Sequence[StoredMessage],
    excerpt_over: int | None,
    store: Store,
    vector: NDArray[np.float32] | None,
) -> tuple[dict[int, list[Span]], dict[int, tuple[float, ...]]]:
    """Return the passages of each long message, and their cosines if they have vectors.

    :param excerpt_over: messages with more tokens are long; ``None`` if none is.
    :param vector: the question's embedding; ``None`` to rank passages by words only.
    """
    if excerpt_over is None:
        return {}, {}
    long = [row for row in rows if excerpts.is_long(row, excerpt_over)]
    parts: dict[int, list[Span]] = {}
    cosines: dict[int, tuple[float, ...]] = {}
    if vector is not None:
        for key, stored in store.passages([row.key for row in long]).items():
            parts[key.id], cosines[key.id] = passages.cosines(stored, vector)
    for row in long:
        if row.id not in parts:
            parts[row.id] = passages.cut(row.content, excerpts.Outline(row.content).breaks)
    return parts, cosines


def pool_of(
    rows: list[StoredMessage],
    scored: Scored,
    in_threads: ranking.Places,
    tiers: dict[int, Tier],
    pins: set[int],
    max_result_tokens: int,
    meter: Meter,
    titles: Mapping[tuple[str, str | None], str],
    parts: Mapping[int, Sequence[Span]],
    cosines: Mapping[int, tuple[float, ...]],
    about_asker: bool,
) -> list[Candidate]:
    """Return messages as candidates with their scores; long tool results are cut."""
    found = scored.candidates
    places, _ = found.places(np.array([row.id for row in rows], np.int64))
    limit = int(max_result_tokens / meter.factor)
    asked = {(row.instance, row.trace_id) for row in rows if row.role is Role.USER}
    pool = []
    for row, place, age in zip(rows, places.tolist(), ages(found, places), strict=True):
        cosine = float(found.cosine[place])
        scores = Scores(
            float(scored.similarity[place]),
            0.0 if np.isnan(cosine) else cosine,
            float(scored.bm25[place]),
            float(scored.recency[place]),
            float(scored.priority[place]),
            not np.isnan(cosine),
            _parts_of(scored, place),
        )
        cut = max_result_tokens > 0 and row.role is Role.TOOL and row.tokens > limit
        pool.append(
            Candidate(
                turns.shorten_result(row, limit, meter.counter) if cut else row,
                tiers.get(place, Tier.OLDER),
                place not in tiers and place not in pins,
                scores,
                age,
                cut,
                place=int(in_threads[place]),
                title=titles.get((row.instance, row.conversation_id)),
                replies=row.role is Role.ASSISTANT and (row.instance, row.trace_id) in asked,
                about_asker=about_asker,
                parts=tuple(parts.get(row.id, ())),
                cosines=cosines.get(row.id, ()),
                pinned=place in pins,
            )
        )
    return pool


def _parts_of(scored: Scored, place: int) -> dict[str, float]:
    """Return the components of a message's similarity if they were requested."""
    if scored.parts is None:
        return {}
    return dict(zip(ranking.PARTS, scored.parts[:, place].tolist(), strict=True))
