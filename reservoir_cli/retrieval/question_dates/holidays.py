"""The holidays that questions name, in English: other languages are rewritten to these first."""

#: The month, first day and number of days of each, by its words.
HOLIDAYS = {
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "christmas eve": (12, 24, 1),
    "christmas day": (12, 25, 1),
    "new year 's eve": (12, 31, 1),
    "new year eve": (12, 31, 1),
    "new year 's day": (1, 1, 1),
    "new year day": (1, 1, 1),
    "boxing day": (12, 26, 1),
    "valentine 's day": (2, 14, 1),
    "halloween": (10, 31, 1),
}
#: An expression for all of them.
PATTERN = "|".join(sorted(HOLIDAYS, key=len, reverse=True))
#: The longest word of each: without one of them, a question names no holiday.
SIGNS = frozenset(max(name.split(), key=len) for name in HOLIDAYS)
