"""Remove what Codex and its editors write into user messages."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from reservoir_cli.transfer.reading.content_blocks import file_marker, part_text

#: Beginnings of the program's notices.
_BEGINNINGS = (
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<skill>",
    "# AGENTS.md instructions\n",
    "Here is a list of plugins that are available but not installed.",
)
_WARNING = re.compile(
    r"Warning: (?:The maximum number of unified exec processes you can keep open is"
    r"|apply_patch was requested via|Your account was flagged for potentially)[^\n]*"
)
_TAGGED = re.compile(
    r"<(codex_internal_context|goal_context|hook_prompt|recommended_plugins|external_[\w.:-]+)"
    r"(?:\s[^<>\n]{0,1000})?>.*</\1>",
    re.DOTALL,
)
#: Where a reply took something from Codex's memory.
_CITATION = re.compile(
    r"(?:(?<!\s)\s++)?<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", re.DOTALL
)
_PICTURE = re.compile(r"<image(?:\s[^<>\n]{0,1000})?>|</image>")  #: The tags around a picture.
#: Headings of what an editor or the application writes before a question, and of the question.
_SETUP = (
    "# Context from my IDE setup:",
    "# Files mentioned by the user:",
    "# Files pasted by the user:",
    "# In app browser:",
    "# Browser comments:",
    "## Referenced chats with Codex:",
)
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$", re.MULTILINE)
_FILES = re.compile(r"^# Files (?:mentioned|pasted) by the user:[ \t]*$", re.MULTILINE)
_FILE = re.compile(r"^## ([^\n]+?): [^\n]+$", re.MULTILINE)
_HEADING = re.compile(r"^# ", re.MULTILINE)
#: The results of a review, which the program records as an action of the user.
_REVIEW = re.compile(
    r"\s*<user_action>(?:(?!<results>).)*+<results>(.*)</results>\s*</user_action>\s*", re.DOTALL
)


def clean_question(content: Any) -> str:
    """Return what the user wrote in a message; empty if the program wrote all of it."""
    parts = content if isinstance(content, list) else [content]
    text = "\n".join(_without_notices(map(part_text, parts)))
    start = text.lstrip()
    heading = _REQUEST.search(start) if start.startswith(_SETUP) else None
    if heading is None:
        return text
    files = list(_file_markers(start[: heading.start()]))
    return "\n".join([*files, start[heading.end() :].strip()]).strip()


def _without_notices(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        start = text.strip()
        is_notice = any(pattern.fullmatch(start) for pattern in (_TAGGED, _WARNING, _PICTURE))
        if not is_notice and not start.startswith(_BEGINNINGS):
            yield text


def _file_markers(setup: str) -> Iterator[str]:
    for listing in _FILES.finditer(setup):
        end = _HEADING.search(setup, listing.end())
        for name in _FILE.findall(setup, listing.end(), end.start() if end else len(setup)):
            yield file_marker(name)


def remove_citations(text: str) -> str:
    """Return a reply without the memories that it cites, which Codex does not display."""
    return _CITATION.sub("", text).rstrip() if "<oai-mem-citation>" in text else text


def review_results(content: str) -> str | None:
    """Return the results of a review in a user message; ``None`` if it is another message."""
    match = _REVIEW.fullmatch(content) if content.lstrip().startswith("<user_action>") else None
    if match is None:
        return None
    results = match[1].strip()
    return "" if results == "None." else results
