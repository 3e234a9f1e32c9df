"""Special cases of Claude.ai's export."""

from reading import lines, read, roles_and_texts

from reservoir_cli.transfer.importers.claude import Claude


def test_blocks_that_are_not_displayed_are_left_out() -> None:
    content = [
        {"type": "text", "text": "Done."},
        {"type": "token_budget"},
        {"type": "flag", "flag": "x"},
    ]
    reply = {"uuid": "m", "sender": "assistant", "text": "", "content": content}
    entries = read(lines({"uuid": "c", "chat_messages": [reply]}), Claude())
    assert roles_and_texts(entries) == [("assistant", "Done.")]
