"""Stores refuse or clean names with control characters."""

import pytest

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Conversation, Message, Scope


@pytest.mark.parametrize("bad", ["a\x1b[31mb", "a\nb", "a\u202eb"])
def test_scopes_are_refused_and_ids_are_cleaned(store, add, bad):
    for scope in ({"partition": bad}, {"instance": bad}):
        with pytest.raises(UsageError, match="control characters"):
            add(Message("user", "x"), **scope)
    store.add_conversations(Scope("p", "i"), [Conversation(bad, title="t")])
    (stored,) = add(Message("user", "x", conversation_id=bad, trace_id=bad))
    (summary,) = store.conversations(Scope("p", "i"))
    assert summary.conversation.title == "t"
    assert summary.conversation.id == stored.conversation_id == stored.trace_id
    assert stored.trace_id[0] == "a"
    assert stored.trace_id[1] == "\ufffd"
    with pytest.raises(UsageError, match="control characters"):
        store.move_partition("p", bad)
