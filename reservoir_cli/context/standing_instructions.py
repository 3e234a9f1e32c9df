"""Recognise standing instructions: "Always name versions.", "I prefer tea". Pure.

They stay quoted material: they are recalled sooner, and never obeyed here.
"""

import re

from reservoir_cli.messages import DOCUMENT_SOURCES, Role, StoredMessage

#: Longer texts are about something else as well.
_LONGEST = 600
#: A sentence that begins so asks for something once and for all.
_FIRST = (
    "always|never|from now on|immer|niemals|nie wieder|ab jetzt|ab sofort|"
    "toujours|jamais|désormais|siempre|nunca|a partir de ahora"
)
_POLITE = "please|bitte|s'il (?:te|vous) pla[iî]t|por favor"
_PREFERS = (
    "i(?:['’]d| would)?(?: (?:always|much|really|usually|generally))? prefer|"
    "ich bevorzuge|je préfère|prefiero"
)
_STANDING = (
    # The number of blanks is bounded: a text of blank lines would take a square of its length.
    rf"(?:^|[.!?:;\n])\s{{0,4}}(?:(?:{_POLITE}),? )?(?:{_FIRST})\b|\b(?:{_PREFERS})\b|"
    r"请(?:始终|总是|务必|一直)|从现在(?:开始|起)|我(?:更喜欢|偏好)"
)
#: Every text that the pattern matches holds one of these; to look for them first is quicker.
_HINTS = (*_FIRST.split("|"), "prefer", "ich bevorzuge", "je préfère", "prefiero", "请", "从", "我")


def is_standing(message: StoredMessage) -> bool:
    """Return whether a user asks for something once and for all, or says what they prefer.

    A document may be written by anybody, and asks for nothing.
    """
    if message.role is not Role.USER or message.source in DOCUMENT_SOURCES:
        return False
    if len(message.content) > _LONGEST:
        return False
    text = message.content.lower()
    return any(hint in text for hint in _HINTS) and re.search(_STANDING, text) is not None
