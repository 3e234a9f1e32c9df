"""Background work waits for questions, but not forever."""

import threading
import time

from reservoir_cli.server import limits
from reservoir_cli.server.background_work import StartReason, Traffic

ASKING, WORKING = "asking", "working"


def in_thread(work: Traffic, order: list[object]) -> threading.Thread:
    due = time.monotonic() + limits.MAX_DELAY
    thread = threading.Thread(target=lambda: order.append(work.wait(WORKING, due)), daemon=True)
    thread.start()
    return thread


def test_work_waits_until_a_question_was_answered(monkeypatch):
    monkeypatch.setattr(limits, "MAX_DELAY", 1e9)
    questions, order = Traffic(), list[object]()
    questions.begin(ASKING)
    waiting = in_thread(questions, order)
    order.append("answered")
    questions.end(ASKING)
    waiting.join(60)
    assert order == ["answered", StartReason.PAUSE]


def test_work_starts_immediately_if_a_request_waits_for_its_thread(monkeypatch):
    monkeypatch.setattr(limits, "MAX_DELAY", 1e9)
    questions, order = Traffic(), list[object]()
    questions.begin(ASKING)
    waiting = in_thread(questions, order)
    questions.begin(WORKING)
    waiting.join(60)
    assert order == [StartReason.URGENT]


def test_work_that_has_waited_long_runs_with_the_work_queued_meanwhile():
    questions = Traffic()
    questions.begin(ASKING)
    now = time.monotonic()
    assert questions.wait(WORKING, now) is StartReason.LATE
    assert questions.wait(WORKING, now + limits.MAX_DELAY / 2) is StartReason.LATE


def test_embedding_is_not_released_by_overdue_storing(monkeypatch):
    monkeypatch.setattr(limits, "MAX_LONG_DELAY", 1e9)
    questions, order = Traffic(), list[object]()
    questions.begin(ASKING)
    embedding_due = time.monotonic() + limits.MAX_LONG_DELAY
    embedding = threading.Thread(
        target=lambda: order.append(questions.wait("embedding", embedding_due)), daemon=True
    )
    embedding.start()
    order.append(questions.wait(WORKING, time.monotonic()))
    questions.end(ASKING)
    embedding.join(60)
    assert order == [StartReason.LATE, StartReason.PAUSE]


def test_work_gives_way_to_a_question_until_it_was_answered():
    questions, order = Traffic(), list[object]()
    questions.begin(ASKING)

    def work() -> None:
        questions.give_way(WORKING, time.monotonic() + 1e6)
        order.append("worked")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    order.append("answered")
    questions.end(ASKING)
    thread.join(60)
    assert order == ["answered", "worked"]


def test_work_does_not_give_way_when_it_is_late_or_a_question_is_queued_behind_it():
    questions = Traffic()
    questions.begin(ASKING)
    questions.give_way(WORKING, time.monotonic())
    questions.begin(WORKING)
    # A daemon, so that a failure ends the test instead of the thread keeping the process alive.
    arguments = (WORKING, time.monotonic() + 1e6)
    working = threading.Thread(target=questions.give_way, args=arguments, daemon=True)
    working.start()
    working.join(60)
    assert not working.is_alive()
