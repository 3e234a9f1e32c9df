"""Find what is between two marks, in one pass even if the second mark is missing.

A regular expression such as ``BEGIN.*?END`` looks for the end again from each beginning.
"""

from collections.abc import Iterator


def texts_between(text: str, begin: str, end: str) -> Iterator[str]:
    """Yield what is between each pair of marks, without blanks around it."""
    for start, stop in _spans(text, begin, end):
        yield text[start + len(begin) : stop - len(end)].strip()


def remove_between(text: str, begin: str, end: str) -> str:
    """Return a text without each pair of marks and what is between them."""
    kept, position = list[str](), 0
    for start, stop in _spans(text, begin, end):
        kept.append(text[position:start])
        position = stop
    return "".join(kept) + text[position:]


def _spans(text: str, begin: str, end: str) -> Iterator[tuple[int, int]]:
    start = text.find(begin)
    while start >= 0 and (found := text.find(end, start + len(begin))) >= 0:
        yield start, found + len(end)
        start = text.find(begin, found + len(end))
