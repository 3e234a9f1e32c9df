"""Which indexes SQLite uses: no read walks through a whole store or partition without need."""

from datetime import timedelta

import pytest
from builders import NOW, FakeEmbedder, embed

from reservoir_cli.messages import Filter, Message, Scope, ToolCall

P, HERE, EVERYWHERE = Scope("p"), Scope("p", "i"), Scope(None)


@pytest.fixture
def plans(store, add):
    """Return a function that gives the plans of all statements on messages of some work."""
    calls = (ToolCall("call", "f", "{}"),)
    add(
        *(
            Message("user", f"m{n}", NOW + timedelta(minutes=n), conversation_id="c")
            for n in range(9)
        ),
        Message("assistant", "", NOW, conversation_id="c", tool_calls=calls),
        Message("tool", "r", NOW + timedelta(days=1), conversation_id="c", tool_call_id="call"),
        Message("user", "loose", NOW),
    )
    embed(store, FakeEmbedder())

    def explain(work):
        statements = []
        store._connection.set_trace_callback(statements.append)
        work()
        store._connection.set_trace_callback(None)
        return [
            row[3]
            for statement in dict.fromkeys(statements)
            if statement.lstrip().startswith("SELECT") and "messages" in statement
            for row in store._connection.execute(f"EXPLAIN QUERY PLAN {statement}")
            if any(word in f"{row[3]} " for word in (" m ", "messages", "B-TREE"))
        ]

    return explain


WORK = {
    "the newest of all partitions": (lambda store: store.last(EVERYWHERE, 3), "messages_by_time"),
    "the newest of a partition": (lambda store: store.last(P, 3), "messages_by_partition"),
    "the newest of an instance": (lambda store: store.last(HERE, 3), "messages_by_instance"),
    "a conversation": (
        lambda store: store.last(P, 3, Filter(conversation_id="c")),
        "messages_by_conversation (partition=? AND conversation_id=?",
    ),
    "a session": (
        lambda store: store.find(P, Filter(session="c")),
        "messages_by_conversation (partition=? AND conversation_id>?",
    ),
    "a trace": (
        lambda store: store.find(P, Filter(trace_id="t")),
        "messages_by_trace (partition=? AND trace_id=?",
    ),
    "secrets": (
        lambda store: store.find(EVERYWHERE, Filter(secrets=True)),
        "messages_with_secrets",
    ),
    "linked messages": (
        lambda store: store.linked([2, 12], 2, HERE, 0.0),
        "messages_by_conversation (partition=? AND conversation_id=? AND instance=? AND created_at",
    ),
    "the caller of a result": (
        lambda store: store.with_partners([11], HERE),
        "messages_by_conversation (partition=? AND conversation_id=? AND instance=? AND created_at",
    ),
    "how many conversations there are": (
        lambda store: store.holdings(),
        "USING COVERING INDEX messages_by_conversation",
    ),
}


@pytest.mark.sqlite("it is about the plans of SQLite")
@pytest.mark.parametrize(("work", "index"), WORK.values(), ids=WORK)
def test_a_read_uses_its_index(store, plans, work, index):
    steps = plans(lambda: work(store))
    assert any(index in step for step in steps), steps


@pytest.mark.sqlite("it is about the plans of SQLite")
@pytest.mark.parametrize("scope", [EVERYWHERE, P, HERE])
def test_the_newest_messages_are_not_sorted(store, plans, scope):
    """An index on times is in order of id, too, though it does not name the id."""
    steps = plans(lambda: store.last(scope, 3))
    assert any("messages_by_" in step for step in steps)
    assert not any("B-TREE" in step for step in steps), steps
