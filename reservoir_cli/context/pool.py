"""Prepare the pool that a context is selected from: printable messages with their scores."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir_cli.context import excerpts
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.candidate import Candidate, Scores, Span, Tier
from reservoir_cli.context.cut_tool_results import cut_tool_result
from reservoir_cli.context.messages_to_read import Wanted, compute_ages, longest_whole
from reservoir_cli.context.rank_messages import Inputs, Ranking
from reservoir_cli.errors import StoreError
from reservoir_cli.messages import ConversationName, Role, StoredMessage, plain_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.retrieval import ranking
from reservoir_cli.retrieval.ranking import Scored
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import counter_id
from reservoir_cli.util.languages import is_about_speaker


class PoolRows(NamedTuple):
    """Stored messages for the pool, with titles, and by id the passages of long ones."""

    messages: list[StoredMessage]
    titles: Mapping[ConversationName, str]
    parts: Mapping[int, list[Span]]
    cosines: Mapping[int, tuple[float, ...]]  # of the passages, if they have vectors


def read_rows(
    inputs: Inputs, ranking: Ranking, wanted: Wanted, vector: NDArray[np.float32] | None
) -> PoolRows:
    """Read the wanted messages and the calls, results and replies that belong to them."""
    candidates, store = ranking.scored.candidates, inputs.store
    ids = [int(number) for number in candidates.ids[sorted(wanted.positions)]]
    stored = store.with_partners(ids, ranking.scope)
    _, is_candidate = candidates.positions(np.array([row.id for row in stored], np.int64))
    shown = inputs.request.shown
    stored = [
        row
        for row, matches in zip(stored, is_candidate, strict=True)
        if matches and row.id not in shown
    ]
    excerpt_over = longest_whole(inputs.settings)
    parts, cosines = read_passages(stored, excerpt_over, store, vector)
    titles = {
        name: inputs.redactor.text(name[0], title) for name, title in store.titles(stored).items()
    }
    return PoolRows(stored, titles, parts, cosines)


def as_printed(inputs: Inputs, rows: PoolRows, *, marked_only: bool = False) -> PoolRows:
    """Return the messages as they are printed: counted by the meter, and redacted.

    :param marked_only: leave messages without a marked secret as they are, which saves most of the
        scans; see :func:`is_clean`.
    """
    recounted = recount(rows.messages, inputs.store, inputs.meter)
    printed = redact(recounted, inputs.redactor, inputs.meter, marked_only=marked_only)
    parts = excerpts.map_to_printed(rows.parts, rows.messages, printed)
    return rows._replace(messages=printed, parts=parts)


def recount(rows: list[StoredMessage], store: Store, meter: Meter) -> list[StoredMessage]:
    """Return messages with tokens by the current counter, counting again if another was used."""
    name = counter_id(meter.counter)
    stale = {row.id for row in rows if row.counter != name}
    if not stale:
        return rows
    rows = [
        replace(row, tokens=meter.counter.count(plain_text(row)), counter=name)
        if row.id in stale
        else row
        for row in rows
    ]
    # Store the counts only if no other process is writing: never wait for it.
    with suppress(StoreError), store.write(wait=0):
        store.update_counts({row.key: row.tokens for row in rows if row.id in stale}, name)
    return rows


def redact(
    rows: list[StoredMessage], redactor: Redactor, meter: Meter, *, marked_only: bool = False
) -> list[StoredMessage]:
    """Redact secrets in messages, and count those that changed."""
    redacted_rows = (
        row if marked_only and not row.secrets else redactor.message(row) for row in rows
    )
    return [
        redacted
        if redacted is row
        else replace(redacted, tokens=meter.counter.count(plain_text(redacted)))
        for row, redacted in zip(rows, redacted_rows, strict=True)
    ]


def is_clean(chosen: Iterable[Candidate], rows: PoolRows, redactor: Redactor) -> bool:
    """Return whether no chosen message has a secret that was not marked when it was stored."""
    printed = {candidate.message.id for candidate in chosen}
    unmarked = (row for row in rows.messages if row.id in printed and not row.secrets)
    return all(redactor.message(row) is row for row in unmarked)


def read_passages(
    rows: Sequence[StoredMessage],
    excerpt_over: int | None,
    store: Store,
    vector: NDArray[np.float32] | None,
) -> tuple[dict[int, list[Span]], dict[int, tuple[float, ...]]]:
    """Return the passages of each long message, and their cosines if they have vectors."""
    if excerpt_over is None:
        return {}, {}
    long_rows = [row for row in rows if excerpts.is_long(row, excerpt_over)]
    parts: dict[int, list[Span]] = {}
    cosines: dict[int, tuple[float, ...]] = {}
    if vector is not None:
        for key, stored in store.passages([row.key for row in long_rows]).items():
            parts[key.id], cosines[key.id] = excerpts.compute_cosines(stored, vector)
    for row in long_rows:
        if row.id not in parts:
            parts[row.id] = excerpts.cut(row.content, excerpts.Outline(row.content).breaks)
    return parts, cosines


def build_pool(inputs: Inputs, ranking: Ranking, wanted: Wanted, rows: PoolRows) -> list[Candidate]:
    """Return messages as candidates with their scores; long tool results are cut."""
    scored, messages, meter = ranking.scored, rows.messages, inputs.meter
    candidates = scored.candidates
    positions, _ = candidates.positions(np.array([row.id for row in messages], np.int64))
    max_result_tokens = inputs.settings.max_tool_result_tokens
    limit = int(max_result_tokens / meter.factor)
    about_asker = is_about_speaker(inputs.request.query)
    question_traces = {(row.instance, row.trace_id) for row in messages if row.role is Role.USER}
    pool = []
    for row, position, in_thread, age, running, scores in zip(
        messages,
        positions.tolist(),
        ranking.thread_positions[positions].tolist(),
        compute_ages(ranking.turns, positions),
        ranking.running[positions].tolist(),
        _scores_at(scored, positions),
        strict=True,
    ):
        is_cut = max_result_tokens > 0 and row.role is Role.TOOL and row.tokens > limit
        pinned = position in wanted.pins
        pool.append(
            Candidate(
                cut_tool_result(row, limit, meter.counter) if is_cut else row,
                wanted.tiers.get(position, Tier.OLDER),
                position not in wanted.tiers and not pinned,
                scores,
                age,
                is_cut,
                position=in_thread,
                title=rows.titles.get((row.partition, row.instance, row.conversation_id)),
                replies=row.role is Role.ASSISTANT
                and (row.instance, row.trace_id) in question_traces,
                about_asker=about_asker,
                parts=tuple(rows.parts.get(row.id, ())),
                cosines=rows.cosines.get(row.id, ()),
                pinned=pinned,
                running=running,
            )
        )
    return pool


def _scores_at(scored: Scored, positions: NDArray[np.intp]) -> list[Scores]:
    cosine = scored.candidates.cosine[positions].astype(np.float64)
    embedded = ~np.isnan(cosine)
    values = (scored.similarity, scored.bm25, scored.recency, scored.priority)
    similarity, bm25, recency, priority = (column[positions].tolist() for column in values)
    cosines = np.where(embedded, cosine, 0.0).tolist()
    columns = [similarity, cosines, bm25, recency, priority, embedded.tolist()]
    if scored.parts is None:
        return list(map(Scores, *columns))
    parts = scored.parts[:, positions].T.tolist()
    return list(
        map(Scores, *columns, (dict(zip(ranking.PARTS, row, strict=True)) for row in parts))
    )
