"""Compare texts whatever their case, and however their accents are encoded."""

from unicodedata import normalize


def fold(text: str) -> str:
    """Return a text in the form in which equal words are equal: ``Müller`` typed on any keyboard.

    Some systems write an accent as a character of its own behind the letter.
    """
    return normalize("NFC", text.casefold())
