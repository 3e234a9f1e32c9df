"""Conversations to be read: a title, and each message under who said it and when."""

from reservoir_cli.messages import StoredMessage, plain_text
from reservoir_cli.transfer.exporters.conversations import Thread


def write(thread: Thread) -> str:
    """Render a conversation as a section of Markdown."""
    partition, instance, _ = thread.name
    title = " ".join((thread.about.title or "").split()) if thread.about else ""
    place = f"{partition}/{instance}"
    parts = [f"# {title or place}", *([f"*{place}*"] if title else [])]
    return "\n\n".join([*parts, *map(_message, thread.messages)]) + "\n\n"


def _message(message: StoredMessage) -> str:
    spoken = message.role.value + (f" ({message.name})" if message.name else "")
    when = message.created_at.isoformat(timespec="seconds")
    return f"## {spoken} · {when}\n\n{plain_text(message)}"
