"""What providers report of their answers says how far a counter is off, and estimates follow."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reservoir_cli import Reservoir
from reservoir_cli.context.counter_factors import COUNT, ENOUGH, counter_factors, find_factor
from reservoir_cli.maintenance.doctor import Check, examine
from reservoir_cli.messages import Message, Scope
from reservoir_cli.tokens import ApproximateCounter, RatioCounter
from reservoir_cli.transfer.proxied.exchange import Exchange

NOW = datetime.now(UTC)
MODEL, DATED = "claude-opus-4-7", "claude-opus-4-7-20260301"
ANSWER = "The kiln is fired at nine in the evening, because power is cheap then, not earlier. " * 3
COUNTED = ApproximateCounter().count(ANSWER)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    return tmp_path / "store.db"


def answer(
    path: Path, reported: int | None, *, times: int = 1, age: int = 0, text: str = ANSWER
) -> None:
    """Store answers that a provider counted."""
    with Reservoir.open(path) as reservoir:
        for number in range(times):
            question = Message("user", f"When, {number}?", source_id=f"q{reported}{number}")
            reply = Message("assistant", text, source_id=f"a{reported}{number}")
            exchange = Exchange(
                Scope("p", "app"), f"c{number}", DATED, (question,), reply, reported=reported
            )
            reservoir.exchanges.store(exchange, NOW - timedelta(days=age))


def printed(path: Path, model: str | None, *settings: str) -> int:
    """Return the tokens that are counted of a context."""
    config_file = path.with_name("reservoir.toml")
    config_file.write_text("\n".join(settings), encoding="utf-8")
    with Reservoir.open(path, config_file=config_file) as reservoir:
        return reservoir.context("When?", partition="p", model=model, budget=20_000, now=NOW).used


def checked(path: Path, *settings: str) -> Check:
    """Return what ``doctor`` says of token counts."""
    config_file = path.with_name("reservoir.toml")
    config_file.write_text("\n".join(settings), encoding="utf-8")
    checks = examine(path, config_file, lambda *_: None, check_source=lambda *_: None)
    [found] = [check for check in checks if check.name == "token_counts"]
    return found


def test_estimates_follow_the_counts_of_a_model_once_there_are_enough(store):
    answer(store, 2 * COUNTED, times=ENOUGH - 1)
    before = printed(store, MODEL)
    check = checked(store)
    assert check.status == "ok"
    assert f"2.00 times the tokens that approximate counts, by {ENOUGH - 1} answers" in check.detail
    assert printed(store, None) == before
    answer(store, 2 * COUNTED + 1)
    for name in (MODEL, DATED, f"anthropic/{MODEL}"):
        assert printed(store, name) == pytest.approx(2 * before, rel=0.1)
    assert printed(store, "gpt-4o") == printed(store, None)
    check = checked(store)
    assert (check.status, check.fix) == ("ok", None)
    assert "its counts are multiplied by that" in check.detail


def test_a_multiplier_of_the_user_stays_and_the_better_one_is_named(store):
    answer(store, 2 * COUNTED, times=ENOUGH)
    with_own = printed(store, MODEL, "token_multiplier = 1.0")
    assert printed(store, MODEL) == pytest.approx(2 * with_own, rel=0.1)
    check = checked(store, "token_multiplier = 1.0")
    assert check.status == "note"
    assert check.fix == f"reservoir config set models.{DATED}.token_multiplier=2.00"
    check = checked(store, f'[models."{DATED}"]', "token_multiplier = 1.9")
    assert (check.status, check.fix) == ("ok", None)


@pytest.mark.parametrize(
    ("reported", "age", "text"),
    [
        (None, 0, ANSWER),
        (0, 0, ANSWER),
        (40 * COUNTED, 0, ANSWER),  # of something else, such as thinking
        (10**400, 0, ANSWER),
        (2, 0, "Yes."),
        (2 * COUNTED, 100, ANSWER),
    ],
)
def test_an_answer_that_tells_nothing_is_not_compared(store, reported, age, text):
    answer(store, reported, times=ENOUGH, age=age, text=text)
    with Reservoir.open(store) as reservoir:
        assert counter_factors(reservoir.store, NOW) == []


def test_a_factor_is_of_one_counter_and_partition_and_no_run(store):
    answer(store, 2 * COUNTED, times=ENOUGH)
    with Reservoir.open(store) as reservoir:
        factors = [
            find_factor(reservoir.store, "p", MODEL, counter, NOW)
            for counter in (ApproximateCounter(), RatioCounter())
        ]
        assert factors == [pytest.approx(2), None]
        assert find_factor(reservoir.store, "other", MODEL, ApproximateCounter(), NOW) is None
        assert reservoir.stats()["runs"] == 0
        assert reservoir.stats()["answers"]["count"] == 0


def test_only_the_newest_answers_are_read(store):
    answer(store, 2 * COUNTED, times=2, age=3)
    answer(store, 3 * COUNTED, age=2)
    with Reservoir.open(store) as reservoir:
        read = reservoir.store.answer_counts(COUNT, NOW - timedelta(days=9), 2)
        assert [reported for _, _, reported, _ in read] == [3 * COUNTED, 2 * COUNTED]
