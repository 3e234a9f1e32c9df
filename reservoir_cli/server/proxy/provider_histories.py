"""Follow conversations whose history the provider keeps.

Requests have only what is new, and a reference: ``previous_response_id`` or ``conversation``
(Responses), or the tokens of ``context`` (Ollama's ``/api/generate``).
"""

import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from reservoir_cli.server import limits


def reference_of(values: Mapping[str, Any]) -> str | None:
    """Return a request's reference to a history at the provider; ``None`` if it has none."""
    if is_id(response := values.get("previous_response_id")):
        return str(response)
    if context := context_reference(values):
        return context
    # The same words may be a retry or a new question: store them twice rather than lose an answer.
    return uuid.uuid4().hex if named_history(values) else None


def named_history(values: Mapping[str, Any]) -> str | None:
    """Return the id of the conversation at the provider that a request names, if any."""
    value = values.get("conversation")
    identity = value.get("id") if isinstance(value, dict) else value
    return str(identity) if is_id(identity) else None


def context_reference(values: Mapping[str, Any]) -> str | None:
    """Return a reference to the history in ``context``; requests and answers have the same."""
    context = values.get("context")
    if not isinstance(context, list) or not context:
        return None
    return hashlib.sha256(json.dumps(context).encode()).hexdigest()


def is_id(value: Any) -> bool:
    """Return whether a value can be an id."""
    return isinstance(value, str) and bool(value.strip())


class ProviderHistories:
    """The conversations of the latest answers, by the references of requests that continue them."""

    def __init__(self) -> None:
        self._conversations: OrderedDict[tuple[str, str], str] = OrderedDict()

    def find(self, partition: str, reference: str) -> str | None:
        """Return the conversation that a reference continues, if it is known."""
        return self._conversations.get((partition, reference))

    def add(self, partition: str, reference: str, conversation: str) -> None:
        """Remember the conversation of an answer."""
        self._conversations[partition, reference] = conversation
        if len(self._conversations) > limits.MAX_REMEMBERED_ANSWERS:
            self._conversations.popitem(last=False)
