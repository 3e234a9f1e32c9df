"""Export conversations as Markdown: a title, and each message under its role and time."""

from reservoir_cli.messages import StoredMessage, plain_text
from reservoir_cli.transfer.exporters.build_turns import Thread


def write(thread: Thread) -> str:
    """Render a conversation as a section of Markdown."""
    partition, instance, _ = thread.name
    title = _join_lines(thread.about.title) if thread.about else ""
    place = f"{partition}/{instance}"
    parts = [f"# {title or place}", *([f"*{place}*"] if title else [])]
    return "\n\n".join([*parts, *map(_format_message, thread.messages)]) + "\n\n"


def _join_lines(text: str | None) -> str:
    """Return a text without line breaks, which would end a heading."""
    return " ".join((text or "").split())


def _format_message(message: StoredMessage) -> str:
    name = _join_lines(message.name)
    author = f"{message.role.value} ({name})" if name else message.role.value
    time = message.created_at.isoformat(timespec="seconds")
    return f"## {author} · {time}\n\n{plain_text(message)}"
