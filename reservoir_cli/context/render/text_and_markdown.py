"""Render the window as plain text or Markdown. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from reservoir_cli.chat.turn import Section, Turn
from reservoir_cli.context.render.context_frame import (
    MARKDOWN_LABEL,
    QUESTION_HEADING,
    TEXT_LABEL,
    wrap,
)
from reservoir_cli.context.render.forged_lines import has_forged_line
from reservoir_cli.context.render.quote_recalled import RECALLED_TITLE, SUMMARIES_TITLE, indent
from reservoir_cli.messages import ToolCall, call_text

_TURNS = (Section.HISTORY, Section.CURRENT)
_HEADINGS = {
    Section.SYSTEM: "System",
    Section.KNOWLEDGE: "Retrieved Knowledge",
    Section.EPISODE: "Past Conversation Context",
    Section.RECALLED: "Recalled Messages",
    Section.HISTORY: "Conversation",
    Section.CURRENT: QUESTION_HEADING,
}


def to_text(turns: Sequence[Turn]) -> str:
    """Render sections separated by an empty line; history and question as ``role: …``."""
    blocks = [
        "\n".join(_turn_text(turn, "{}: {}") for turn in group)
        for _, group in groupby(turns, key=lambda turn: turn.section)
    ]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def to_markdown(turns: Sequence[Turn]) -> str:
    """Render the same text under headings instead of bracketed titles."""
    blocks = []
    for section, group in groupby(turns, key=lambda turn: turn.section):
        if section is Section.PROCEDURE:
            titled = (_split_title(turn.content) for turn in group)
            blocks += [f"## {title}\n\n{text}" for title, text in titled]
        elif section in (Section.SYSTEM, *_TURNS):
            text = "\n\n".join(_turn_text(turn, "**{}:** {}") for turn in group)
            blocks.append(f"## {_HEADINGS[section]}\n\n{text}")
        else:
            blocks += [block for turn in group for block in _titled_blocks(section, turn)]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def render_framed(turns: Sequence[Turn], *, markdown: bool) -> str:
    """Frame the whole window, so that importers recognise it when it is imported again."""
    write, label = (to_markdown, MARKDOWN_LABEL) if markdown else (to_text, TEXT_LABEL)
    context = [turn for turn in turns if turn.section is not Section.CURRENT]
    question = "".join(turn.content for turn in turns if turn.section is Section.CURRENT)
    return wrap(write(context)[:-1], question, label) + "\n"


def _turn_text(turn: Turn, form: str) -> str:
    if turn.section not in _TURNS:
        return turn.content
    is_current = turn.section is Section.CURRENT
    text = turn.content if is_current else turn_text(turn.content, turn.tool_calls)
    return form.format(turn.role, text)


def turn_text(content: str, tool_calls: Iterable[ToolCall]) -> str:
    """Return the text of a turn, indented if a line could pass for a role, title, day or frame."""
    parts = [*([content] if content else []), *map(call_text, tool_calls)]
    return "\n".join(indent(part) if has_forged_line(part) else part for part in parts)


def _titled_blocks(section: Section, turn: Turn) -> Iterator[str]:
    content = turn.content
    if content.startswith(SUMMARIES_TITLE):
        summaries, _, content = content.partition("\n\n")
        title, text = _split_title(summaries)
        yield f"## {title}\n\n{text}"
    if content.startswith(f"{RECALLED_TITLE} "):  # what they are is said on the line of the title
        yield f"## {_HEADINGS[section]}\n\n{content.removeprefix(RECALLED_TITLE)[1:]}"
    elif content:
        yield f"## {_HEADINGS[section]}\n\n{_split_title(content)[1]}"


def _split_title(content: str) -> tuple[str, str]:
    title, _, text = content.partition("\n")
    return title[1:-1], text
