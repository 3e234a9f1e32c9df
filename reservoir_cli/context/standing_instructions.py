"""Recognise standing instructions ("Always name versions"), which are recalled sooner. Pure."""

import re

from reservoir_cli.messages import DOCUMENT_SOURCES, Role, StoredMessage

_LONGEST = 600  # longer texts are about other things as well
#: Words that begin a permanent request.
_LEADS = (
    "always|never|from now on|immer|niemals|nie wieder|ab jetzt|ab sofort|"
    "toujours|jamais|désormais|siempre|nunca|a partir de ahora"
)
_POLITE = "please|bitte|s'il (?:te|vous) pla[iî]t|por favor"
_PREFERS = (
    "i(?:['’]d| would)?(?: (?:always|much|really|usually|generally))? prefer|"
    "ich bevorzuge|je préfère|prefiero"
)
_STANDING = (
    # The number of blanks is bounded: blank lines would take quadratic time.
    rf"(?:^|[.!?:;\n])\s{{0,4}}(?:(?:{_POLITE}),? )?(?:{_LEADS})\b|\b(?:{_PREFERS})\b|"
    r"请(?:始终|总是|务必|一直)|从现在(?:开始|起)|我(?:更喜欢|偏好)"
)
#: Every match contains one of these; checking for them first is faster.
_HINTS = (*_LEADS.split("|"), "prefer", "ich bevorzuge", "je préfère", "prefiero", "请", "从", "我")


def is_standing(message: StoredMessage) -> bool:
    """Return whether a user, not a document, makes a lasting request or states a preference."""
    if message.role is not Role.USER or message.source in DOCUMENT_SOURCES:
        return False
    if len(message.content) > _LONGEST:
        return False
    text = message.content.lower()
    for hint in _HINTS:
        if hint in text:
            return re.search(_STANDING, text) is not None
    return False
