"""Find the id that a client gives its conversation in a request."""

import re
from collections.abc import Mapping
from typing import Any

from reservoir_cli.messages import clean_name
from reservoir_cli.server.proxy.provider_histories import named_history

#: Headers that hold the id of a conversation.
_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
#: Members of a request's metadata that hold it.
_METADATA = ("session_id", "conversation_id", "thread_id", "chat_id")
#: Anthropic's clients join user, account and session in one text.
_SESSION = re.compile(r"_session_([0-9A-Za-z-]{8,})")
_MAX_ID = 200


def conversation_of(values: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return the id that a client gives its conversation, if any.

    :param values: the members of the request.
    :param headers: by lower-case name.
    """
    metadata = values.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    user = metadata.get("user_id")
    session = _SESSION.search(user) if isinstance(user, str) else None
    candidates = [
        *(headers.get(name) for name in _HEADERS),
        named_history(values),
        session and session[1],
        *(metadata.get(name) for name in _METADATA),
    ]
    ids = [clean_id for value in candidates if (clean_id := _clean(value))]
    return ids[0] if ids else None


def cache_key_of(values: Mapping[str, Any]) -> str | None:
    """Return the key by which a provider finds cached prompts, if a request has one.

    Requests with different keys are of different conversations. Those with the same key need not
    be of the same one: some programs use one key for all their conversations.
    """
    return _clean(values.get("prompt_cache_key"))


def _clean(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return None
    return clean_name(value.strip())[:_MAX_ID]
