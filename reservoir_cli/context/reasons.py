"""Describe to users why a message is in a window or not."""

from reservoir_cli.messages import Role, StoredMessage

_WHY = {
    "newest": "newest",
    "priority": "by priority",
    "excerpt": "the best parts",
    "tier": "by tier",
    "no room": "no room left",
    "too large": "larger than the room",
    "duplicate": "said already",
    "question": "the question itself",
    "orphan result": "its call is missing",
    "unanswered call": "no result for its call",
    "below min_cosine": "not similar enough",
}


def describe_reason(reason: str, message: StoredMessage) -> str:
    """Describe why a message was kept or left out; a call includes its results in its size."""
    if reason == "too large" and (message.role is Role.TOOL or message.tool_calls):
        return "too large with its call" if message.role is Role.TOOL else "too large with results"
    return _WHY.get(reason, reason)
