"""Measure how much of what was recalled the answers used.

Counted are the rare words and numbers of each recalled message that the answer contains and the
question does not. The records hold numbers only; they do not influence any ranking.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from reservoir_cli.messages import Filter, Role, Scope, StoredMessage, from_epoch_ms
from reservoir_cli.storage.store import Store

USE, RECALL = "use", "recall"  # the format of such a record, and of the record of a recall
#: The members of a recall's ``sections``: the ids of its messages, and the reader's session.
RECALLED, SESSION = "recalled", "session"
_RARE, _USED, _MESSAGES, _USED_MESSAGES = "rare_words", "used_words", "messages", "used_messages"
#: A question is stored with nearly the time of its recall, its answer within the second time.
_NEARLY, _ANSWERED = timedelta(minutes=2), timedelta(hours=1)
#: Recalls are measured up to this age, so many at a time, and so many messages of each.
_OLDEST, _MOST, _MOST_MESSAGES = timedelta(days=30), 100, 12
#: Words are rare if they are in at most this share of a scope's messages, or this number.
_RARE_SHARE, _RARE_COUNT = 0.05, 4


class _RecallTurn(NamedTuple):
    """A question for which messages were recalled, and the messages that answer it."""

    question: StoredMessage
    answer: tuple[StoredMessage, ...]


def measure_use(
    store: Store, runs: Sequence[Mapping[str, Any]], now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield a record for each recent recall whose answer is stored and not measured yet."""
    measured = {(run["partition"], run["at"]) for run in runs if run["format"] == USE}
    waiting = [
        run
        for run in runs
        if run["format"] == RECALL
        and run["kept"]
        and now - from_epoch_ms(run["at"]) <= _OLDEST
        and (run["partition"], run["at"]) not in measured
        and RECALLED in json.loads(run["sections"])
    ]
    for run in waiting[-_MOST:]:
        recalled = json.loads(run["sections"])
        turn = _find_turn(store, run, recalled[SESSION])
        if turn is None:
            continue
        scope = Scope(run["partition"])
        rows = store.by_id(recalled[RECALLED][:_MOST_MESSAGES], scope)
        counts = [_count_used(store, scope, row, turn) for row in rows if row.content.strip()]
        yield {
            **{name: value for name, value in run.items() if name != "id"},
            "format": USE,
            "sections": json.dumps(
                {
                    _RARE: sum(rare for rare, _ in counts),
                    _USED: sum(used for _, used in counts),
                    _MESSAGES: len(counts),
                    _USED_MESSAGES: sum(used > 0 for _, used in counts),
                }
            ),
        }


def _find_turn(store: Store, run: Mapping[str, Any], session: str) -> _RecallTurn | None:
    """Return the question of a recall and its answer; ``None`` unless both are stored."""
    scope, asked_at = Scope(run["partition"]), from_epoch_ms(run["at"])
    where = Filter(session=session, since=asked_at - _NEARLY, until=asked_at + _ANSWERED)
    rows = store.by_id([key.id for key in store.find(scope, where)], scope)
    rows.sort(key=lambda row: (row.created_at, row.id))
    questions = [
        (abs(row.created_at - asked_at), at)
        for at, row in enumerate(rows)
        if row.role is Role.USER and row.created_at <= asked_at + _NEARLY
    ]
    if not questions:
        return None
    _, first = min(questions)
    answer = []
    for row in rows[first + 1 :]:
        if row.role is Role.USER:
            break
        if row.role is Role.ASSISTANT and row.content.strip():
            answer.append(row)
    return _RecallTurn(rows[first], tuple(answer)) if answer else None


def _count_used(
    store: Store, scope: Scope, message: StoredMessage, turn: _RecallTurn
) -> tuple[int, int]:
    """Return how many rare stems a message has that the question lacks, and how many were used."""
    import numpy as np  # takes 40 ms; most statistics measure nothing

    candidates = store.gather(scope, None, message.content, None).candidates
    own, question = (
        candidates.positions(np.array([row.id], np.int64))[0] for row in (message, turn.question)
    )
    answer = candidates.positions(np.array([row.id for row in turn.answer], np.int64))[0]
    most = max(_RARE_COUNT, _RARE_SHARE * len(candidates.ids))
    rare = [
        posting.positions
        for posting in candidates.postings
        if len(posting.positions) <= most
        and np.isin(own, posting.positions).any()
        and not np.isin(question, posting.positions).any()
    ]
    return len(rare), sum(bool(np.isin(answer, positions).any()) for positions in rare)


def summarize_use(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how much of what was recalled the answers used, in total and by week and partition."""
    by_week: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for run in runs:
        year, week, _ = from_epoch_ms(run["at"]).isocalendar()
        by_week[f"{year}-W{week:02}", run["partition"]].append(run)
    rows = [
        {"week": week, "partition": partition, **_sum(some)}
        for (week, partition), some in sorted(by_week.items())
    ]
    return {**_sum(runs), "by_week": rows}


def _sum(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    counts = [json.loads(run["sections"]) for run in runs]
    totals = {
        name: sum(row[name] for row in counts) for name in (_MESSAGES, _USED_MESSAGES, _RARE, _USED)
    }
    share = round(totals[_USED] / totals[_RARE], 3) if totals[_RARE] else None
    tokens = sum(run["input_tokens"] for run in runs)
    return {"recalls": len(runs), "input_tokens": tokens, **totals, "used_share": share}
