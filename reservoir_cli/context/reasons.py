"""Why a message is in a window or not, in words for people."""

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
    """Describe a reason of a selection; a call and its results are too large together."""
    if reason == "too large" and (message.role is Role.TOOL or message.tool_calls):
        return "too large with its call" if message.role is Role.TOOL else "too large with results"
    return _WHY.get(reason, reason)
