"""Recognise standing instructions: "Always name versions.", "I prefer tea". Pure.

They are material like all that was stored: their turn comes earlier, and nobody follows them here.
"""

import re

from reservoir_cli.messages import DOCUMENT_SOURCES, Role, StoredMessage

#: Longer texts are about something else as well.
_LONGEST = 600
#: A sentence that begins so asks for something once and for all.
_FIRST = (
    r"always|never|from now on|"
    r"immer|niemals|nie wieder|ab jetzt|ab sofort|toujours|jamais|désormais|"
    r"siempre|nunca|a partir de ahora"
)
_POLITE = r"please|bitte|s'il (?:te|vous) pla[iî]t|por favor"
_PREFERS = (
    r"i(?:['’]d| would)?(?: (?:always|much|really|usually|generally))? prefer|"
    r"ich bevorzuge|je préfère|prefiero"
)
_STANDING = re.compile(
    rf"(?:^|[.!?:;\n]\s*)(?:(?:{_POLITE}),? )?(?:{_FIRST})\b|\b(?:{_PREFERS})\b|"
    r"请(?:始终|总是|务必|一直)|从现在(?:开始|起)|我(?:更喜欢|偏好)",
    re.IGNORECASE,
)


def is_standing(message: StoredMessage) -> bool:
    """Return whether a user asks for something once and for all, or says what they prefer.

    A document may be written by anybody, and asks for nothing.
    """
    text, own = message.content, message.source not in DOCUMENT_SOURCES
    return (
        own
        and message.role is Role.USER
        and len(text) <= _LONGEST
        and _STANDING.search(text) is not None
    )
