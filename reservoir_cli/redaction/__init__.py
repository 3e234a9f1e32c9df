"""Detect secrets in messages (keys, tokens, passwords), and mark, mask or remove them."""

from reservoir_cli.redaction.redact_messages import (
    MASKED_ID,
    Mode,
    Redactor,
    describe_secrets,
    find_kinds,
    redact_conversation,
    redact_id,
    replacements,
    without_secrets,
)

__all__ = [
    "MASKED_ID",
    "Mode",
    "Redactor",
    "describe_secrets",
    "find_kinds",
    "redact_conversation",
    "redact_id",
    "replacements",
    "without_secrets",
]
