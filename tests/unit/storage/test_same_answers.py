"""A store in a file and one on a server give the same answers after any operations."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import citus
import hypothesis.strategies as st
import numpy as np
import pytest
from builders import context
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from postgres_server import PostgresServer, installed

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Filter, Message, Scope, StoredMessage, ToolCall
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.tables.tags_and_pins import TagsAndPins

START = datetime(2026, 5, 9, 12, tzinfo=UTC)
EVERYWHERE = Scope(None)
WORDS = "redis redis queue queues lost jobs Kyōto 京都 京 don't the is café v2.1 we over".split()
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
scopes = st.tuples(st.sampled_from(["p", "ö"]), st.sampled_from(["p", "i"]))
conversation_ids = st.sampled_from([None, "c", "d"])
questions = st.lists(st.sampled_from([*WORDS, '"lost jobs"', "que*", "?"]), min_size=1, max_size=4)

message_fields = st.builds(
    lambda role, text, conversation, calls: (role, text, conversation, calls),
    st.sampled_from(["user", "assistant", "tool", "system"]),
    texts,
    conversation_ids,
    st.booleans(),
)


class SameAnswers(RuleBasedStateMachine):
    """Apply random operations to two stores, and compare their answers."""

    new_database: Callable[[], str]
    embedder: Embedder

    @initialize()
    def open(self) -> None:
        self.files = ExitStack()
        folder = self.files.enter_context(tempfile.TemporaryDirectory())
        self.reservoirs = [
            self.files.enter_context(
                Reservoir.open(
                    location, embedder=type(self).embedder, settings={"link_cosine": 0.2}
                )
            )
            for location in (str(Path(folder) / "store.db"), type(self).new_database())
        ]
        self.count, self.only_read = 0, False

    def teardown(self) -> None:
        if hasattr(self, "files"):
            with self.files:
                self.compare_stores()

    def made(self, role: str, text: str, conversation_id: str | None, calls: bool) -> Message:
        self.count += 1
        # Sometimes an old message is stored late.
        delay = 1_000 if self.count % 7 == 0 else 0
        return Message(
            role,
            text,
            created_at=START + timedelta(minutes=self.count - delay),
            trace_id=f"t{self.count // 2}",
            conversation_id=conversation_id,
            tool_calls=(ToolCall(f"k{self.count % 3}", "f", '{"q": "redis"}'),)
            if calls and role == "assistant"
            else (),
            tool_call_id=f"k{(self.count - 1) % 3}" if role == "tool" else None,
            source="s",
            source_id=str(self.count),
        )

    @rule(
        scope=scopes, drawn=st.lists(message_fields, min_size=1, max_size=12), embed=st.booleans()
    )
    def ingest(self, scope: tuple[str, str], drawn: list[Any], embed: bool) -> None:
        messages = [self.made(*fields) for fields in drawn]
        stored = [
            reservoir.ingest(messages, partition=scope[0], instance=scope[1], embed=embed)
            for reservoir in self.reservoirs
        ]
        self.same(*stored)

    @rule(
        scope=scopes, drawn=st.lists(message_fields, min_size=1, max_size=12), twice=st.booleans()
    )
    def import_file(self, scope: tuple[str, str], drawn: list[Any], twice: bool) -> None:
        messages = [self.made(*fields) for fields in drawn]
        rows = [
            {
                **{name: getattr(message, name) for name in ("role", "content", "trace_id")},
                "conversation_id": message.conversation_id,
                "created_at": str(message.created_at),
                "source": "file",
                "source_id": message.content,
            }
            for message in messages
        ]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "talk.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            for _ in range(2 if twice else 1):
                first, second = (
                    reservoir.import_files(
                        file, form="reservoir", partition=scope[0], instance=scope[1]
                    )
                    for reservoir in self.reservoirs
                )
                assert first == second

    @rule(start=st.integers(0, 400), count=st.integers(1, 5))
    def forget(self, start: int, count: int) -> None:
        for reservoir in self.reservoirs:
            keys = reservoir.store.find(EVERYWHERE)
            assert reservoir.store.delete(keys[start : start + count])

    @rule(
        index=st.integers(0, 400),
        name=st.sampled_from(["a", "京都"]),
        action=st.sampled_from(["tag", "untag", "pin", "unpin"]),
    )
    def mark(self, index: int, name: str, action: str) -> None:
        self.count += 1
        now = START + timedelta(minutes=self.count)
        for reservoir in self.reservoirs:
            for key in reservoir.store.find(EVERYWHERE)[index : index + 1]:
                if action == "pin":
                    TagsAndPins(reservoir.store).pin(key, now)
                else:
                    getattr(reservoir, action)(key, *([name] if action != "unpin" else []))
        views = [reservoir.view(EVERYWHERE, 0, Filter(tag=name)) for reservoir in self.reservoirs]
        self.same(*views)

    @rule()
    def embed(self) -> None:
        first, second = (reservoir.embed() for reservoir in self.reservoirs)
        assert first == second

    @rule(old=st.sampled_from(["p", "ö"]), new=st.sampled_from(["p", "ö", "q"]))
    def move(self, old: str, new: str) -> None:
        if old != new:
            first, second = (
                reservoir.store.move_partition(old, new) for reservoir in self.reservoirs
            )
            assert first == second

    @rule(
        words=questions,
        mode=st.sampled_from(["hybrid", "keyword", "semantic"]),
        scope=st.sampled_from([Scope("p"), Scope("p", "i"), Scope("ö"), EVERYWHERE]),
        link=st.booleans(),
    )
    def search(self, words: list[str], mode: str, scope: Scope, link: bool) -> None:
        self.only_read = True
        first, second = (
            reservoir.search(" ".join(words), mode=mode, limit=500, scope=scope, link=link)
            for reservoir in self.reservoirs
        )
        np.testing.assert_allclose(
            [hit.score for hit in first], [hit.score for hit in second], atol=1e-5
        )
        scores = [{fields_of(hit.message): hit.score for hit in hits} for hits in (first, second)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
        links = [
            {fields_of(hit.message): {fields_of(linked) for linked in hit.linked} for hit in hits}
            for hits in (first, second)
        ]
        assert links[0] == links[1]

    @rule(
        words=questions,
        scope=scopes,
        budget=st.sampled_from([80, 300, 2_000]),
        order=st.sampled_from(["score", "tiers"]),
    )
    def context(self, words: list[str], scope: tuple[str, str], budget: int, order: str) -> None:
        self.only_read = True
        first, second = (
            context(
                reservoir,
                " ".join(words),
                partition=scope[0],
                instance=scope[1] if budget != 300 else None,
                budget=budget,
                order=order,
                format="json",
                trace_id="t",
            )
            for reservoir in self.reservoirs
        )
        assert (first.used, first.truncations, first.to("text")) == (
            second.used,
            second.truncations,
            second.to("text"),
        )
        priorities = [
            {fields_of(candidate.message): candidate.scores.priority for candidate in window.kept}
            for window in (first, second)
        ]
        assert priorities[0] == pytest.approx(priorities[1], abs=1e-5)

    @rule(words=questions, partition=st.sampled_from(["p", "ö"]), current=conversation_ids)
    def recall(self, words: list[str], partition: str, current: str | None) -> None:
        self.only_read = True
        now = START + timedelta(days=1)
        first, second = (
            reservoir.recall(
                " ".join(words),
                partition=partition,
                budget=9_000,
                exclude_conversation=current,
                now=now,
            ).to_row()
            for reservoir in self.reservoirs
        )
        assert first["skipped"] == second["skipped"]
        # Not in their order: of equal messages, that with the lower id is first.
        recalled = [
            sorted(
                (message["role"], message["created_at"], message["content"]) for message in messages
            )
            for messages in (first["messages"], second["messages"])
        ]
        assert recalled[0] == recalled[1]

    @invariant()
    def holds_the_same(self) -> None:
        """Compare the stores after each change, and at the end: a question changes nothing."""
        only_read, self.only_read = getattr(self, "only_read", True), False
        if not only_read:
            self.compare_stores()

    def compare_stores(self) -> None:
        first, second = (reservoir.store for reservoir in self.reservoirs)
        assert first.holdings() == second.holdings()
        assert sorted(first.channels()) == sorted(second.channels())
        assert first.problems() == second.problems() == []
        self.same(first.last(EVERYWHERE, 0), second.last(EVERYWHERE, 0))

    def same(self, first: list[StoredMessage], second: list[StoredMessage]) -> None:
        assert sorted(map(fields_of, first)) == sorted(map(fields_of, second))


def fields_of(message: StoredMessage) -> str:
    """Return all fields of a message except its id."""
    row = message.to_row()
    del row["id"]
    return json.dumps(row, sort_keys=True)


#: Read now, since the environment of a test has none of our variables.
CITUS_EXAMPLES = int(os.environ.get("RESERVOIR_TEST_CITUS_EXAMPLES", "5"))
VERSIONS = {"18": 12, "16": 5}


@pytest.fixture(params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    if request.param == "18" or installed("16") is None:
        yield request.getfixturevalue("postgres")
        return
    dedicated = PostgresServer(request.param)
    yield dedicated
    dedicated.remove()


def test_both_kinds_of_store_give_the_same_answers(server, fake_embedder):
    borrowed: list[str] = []

    def borrow() -> str:
        while borrowed:
            server.give_back(borrowed.pop())
        borrowed.append(server.borrow())
        return borrowed[0]

    compare(borrow, fake_embedder, VERSIONS[server.version])


@pytest.mark.skipif(citus.COORDINATOR is None, reason="RESERVOIR_TEST_CITUS names no coordinator")
def test_a_cluster_gives_the_same_answers_as_a_file(fake_embedder):
    citus.new_store()
    compare(citus.emptied_store, fake_embedder, CITUS_EXAMPLES)


def compare(borrow: Callable[[], str], embedding: Embedder, examples: int) -> None:
    class OnThisServer(SameAnswers):
        new_database = staticmethod(borrow)
        embedder = embedding

    run_state_machine_as_test(
        OnThisServer,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            phases=[Phase.generate, Phase.reuse],
            suppress_health_check=list(HealthCheck),
        ),
    )
