"""Recognise requests that a client makes for itself, such as for a conversation's title."""

import re
from collections.abc import Mapping
from typing import Any

from reservoir_cli.server.proxy import request_messages
from reservoir_cli.server.proxy.providers.wire_protocol import WireProtocol

#: System prompts of such requests.
_SIDE = re.compile(
    r"(?is)\btitle generator\b|\b(?:generate|write|create|produce)\b[^.\n]{0,60}\btitle\b"
    r"|\bisNewTopic\b"
)
#: Open WebUI's requests for titles, tags and the like. A question about documents begins alike.
_TASK = re.compile(r"\s*### Task:\s(?=(?s:.*)<chat_history>)")
#: The first message of opencode's title requests.
_TITLE = re.compile(r"\s*Generate a title for this conversation:\s*")
#: A client's request to summarise a conversation, before it goes on with the summary alone: what
#: is to be written, and what for.
_SUMMARY_REQUEST = re.compile(
    r"(?is)(?:\b(?:creat|writ|provid|generat|produc|prepar|draft)\w*\b[^.\n]{0,80}"
    r"\b(?:summary|handoff|hand-off|snapshot)\b|\b(?:summari[sz]|condens|compact)\w*\b)"
    r"[^.\n]{0,120}\b(?:conversation|session|chat|thread|discussion|history|context|LLM|agent)\b"
    r"|\bprompt (?:for|to) (?:continu|resum)\w*\b|\bcontinue\b[^.\n]{0,40}\bsession\b"
)
_SUMMARY_PURPOSE = re.compile(
    r"(?i)\b(?:continu|resum)\w*|\bnext steps?\b|\bpending\b|\bhand-?off\b|\btake over\b"
    r"|\bcontext (?:window|limit|length)|\bout of context\b|\blosing\b|\btoo (?:large|long)\b"
)
_SHORTEST_REQUEST = 150  # such requests are long: they list what the summary must contain
#: How a message begins that carries such a summary.
_CARRIES_SUMMARY = re.compile(
    r"(?is)\bcontinu\w+ (?:from|of) (?:a|an|the|our|my) (?:previous|earlier|prior|last)\b"
    r"|\b(?:conversation|history|context|messages|discussion|transcript)\b[^.\n]{0,60}\b(?:is|was|has|"
    r"have|were) (?:been )?(?:summari[sz]ed|compacted|condensed)\b"
    r"|\bsummary (?:of|for|from)\b[^.\n]{0,60}\b(?:conversation|session|history|context|messages|"
    r"discussion|thinking|work|progress)\b"
    r"|\A\W*(?:\w+ ){0,2}(?:conversation|session|context|history|chat|handoff|compact\w*) "
    r"(?:summary|snapshot)\b"
    r"|\A\s*<(?:state_snapshot|summary|\w+[_-](?:summary|snapshot)|compact\w*)\b"
    r"|\bproduced a summary\b"
)
#: Characters in which that is said, and the fewest of a message that carries a summary.
_SUMMARY_HEAD, _SHORTEST_SUMMARY = 300, 300
#: Characters of a prompt that are searched, and of a system prompt that say what it is for.
_SEARCHED, _INTRODUCTION = 1_000, 600


def is_side_request(
    protocol: WireProtocol, values: Mapping[str, Any], first: str, newest: str, *, has_answers: bool
) -> bool:
    """Return whether a request asks for a title or summary, completes code, or checks a model."""
    if protocol.wants_one_token(values) or protocol.completes_code(values):
        return True
    if _TASK.match(newest) or _TITLE.fullmatch(first):
        return True
    system = request_messages.system_prompt(values)[:_SEARCHED]
    if _asks_for_summary(system[:_INTRODUCTION]):
        return True
    if has_answers and _asks_for_summary(newest[:_SEARCHED]):
        return True
    return not has_answers and bool(_SIDE.search(system))


def _asks_for_summary(text: str) -> bool:
    return bool(
        len(text) >= _SHORTEST_REQUEST
        and _SUMMARY_REQUEST.search(text)
        and _SUMMARY_PURPOSE.search(text)
    )


def carries_summary(text: str) -> bool:
    """Return whether a user's message is the summary with which a client goes on."""
    is_long = len(text) >= _SHORTEST_SUMMARY
    return is_long and bool(_CARRIES_SUMMARY.search(text[:_SUMMARY_HEAD]))
