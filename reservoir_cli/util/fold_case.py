"""Fold texts for comparison, regardless of case and of how accents are encoded."""

from unicodedata import normalize


def fold(text: str) -> str:
    """Return a text in NFC and casefolded, so that ``Müller`` typed on any system compares equal.

    Some systems write an accent as a separate character after its letter.
    """
    return normalize("NFC", text.casefold())
