"""How many bytes a message takes in a file beside its text, without vectors."""

from datetime import timedelta

import pytest
from builders import NOW

from reservoir_cli.messages import Message

COUNT, TEXT = 2_000, "w" * 100


def size_of(store):
    store._connection.execute("VACUUM")
    [size] = store._connection.execute(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    ).fetchone()
    return size


@pytest.mark.sqlite("it measures a file")
def test_a_message_takes_few_bytes_beside_its_text(store, add):
    empty = size_of(store)
    add(
        *(
            Message(
                "user" if number % 2 else "assistant",
                TEXT,
                created_at=NOW + timedelta(minutes=number),
                conversation_id=f"conversation-{number // 20:04}",
                trace_id=f"trace-{number // 2:04}",
                source="source",
                source_id=f"{number:04}",
            )
            for number in range(COUNT)
        )
    )
    # An entry of an index holds the id once, which is 14 bytes less than twice in each.
    assert (size_of(store) - empty) / COUNT - len(TEXT) < 280
