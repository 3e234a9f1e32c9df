"""Export conversations as Markdown: a title, and each message under its role and time."""

from reservoir_cli.messages import StoredMessage, plain_text
from reservoir_cli.transfer.exporters.conversations import Thread


def write(thread: Thread) -> str:
    """Render a conversation as a section of Markdown."""
    partition, instance, _ = thread.name
    title = _on_one_line(thread.about.title) if thread.about else ""
    place = f"{partition}/{instance}"
    parts = [f"# {title or place}", *([f"*{place}*"] if title else [])]
    return "\n\n".join([*parts, *map(_message, thread.messages)]) + "\n\n"


def _on_one_line(text: str | None) -> str:
    """Return a text without line breaks, which would end a heading."""
    return " ".join((text or "").split())


def _message(message: StoredMessage) -> str:
    name = _on_one_line(message.name)
    spoken = f"{message.role.value} ({name})" if name else message.role.value
    when = message.created_at.isoformat(timespec="seconds")
    return f"## {spoken} · {when}\n\n{plain_text(message)}"
