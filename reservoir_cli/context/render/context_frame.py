"""The frame around a printed context, used to recognise it when it is imported again. Pure.

A context that is piped into a tool ends up in that tool's log, and would be imported as something
the user said. It is therefore printed as::

    [Reservoir context]
    …
    [/Reservoir kqzvbea]

    user: the question

The letters at the end are a checksum of everything between the two lines and of the label before
the question. White space is ignored: tools strip, wrap and indent it.
"""

import re
from binascii import crc32
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

_BEGIN = "[Reservoir context]"
TEXT_LABEL = "user: "  # the label before the question in ``text`` and in ``markdown``
QUESTION_HEADING = "Current Message"
MARKDOWN_LABEL = f"## {QUESTION_HEADING}\n\n**user:** "
_LABELS = (MARKDOWN_LABEL, TEXT_LABEL, "")
#: Zero-width characters, which some tools drop along with white space.
_NO_WIDTH = "\u200b\u200c\u200d\ufeff"
_END = re.compile(r"\[/Reservoir ([a-z]{7})\]")
#: How many unmatched beginnings are tried, and how many ends for each: bounds the time to read a
#: text of frame markers only.
_BEGINS_TRIED, _ENDS_TRIED = 16, 200
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Unwrapped(NamedTuple):
    """A text without Reservoir's own contexts, which are replaced by their questions.

    :param questions: the questions, with any text after them.
    :param contexts: how many contexts were removed.
    """

    text: str
    questions: tuple[str, ...]
    contexts: int


class _Frame(NamedTuple):
    start: int
    end: int
    asks: bool


def wrap(text: str, question: str = "", label: str = TEXT_LABEL) -> str:
    """Frame a context, followed by its question, if any, below a label."""
    tail = f"\n\n{label}{question}" if question else ""
    checksum = _encode_checksum(_checksum(label if question else "", _checksum(text)))
    body = f"{_BEGIN}\n{text}\n" if text else f"{_BEGIN}\n"
    return f"{body}[/Reservoir {checksum}]{tail}"


def unwrap(text: str) -> Unwrapped:
    """Remove contexts, but keep their questions; damaged or forged frames stay as they are."""
    frames = list(_frames(text))
    if not frames:
        return Unwrapped(text, (), 0)
    ends = [*(frame.start for frame in frames[1:]), len(text)]
    texts = [text[frame.end : end].strip() for frame, end in zip(frames, ends, strict=True)]
    remaining = [text[: frames[0].start].rstrip(), *texts]
    questions = [
        text_after
        for frame, text_after in zip(frames, texts, strict=True)
        if frame.asks and text_after
    ]
    return Unwrapped("\n\n".join(filter(None, remaining)), tuple(questions), len(frames))


def _frames(text: str) -> Iterator[_Frame]:
    start = text.find(_BEGIN)
    tries = _BEGINS_TRIED
    while start >= 0 and tries:
        frame = _frame_at(text, start)
        if frame:
            yield frame
        else:
            tries -= 1
        start = text.find(_BEGIN, frame.end if frame else start + len(_BEGIN))


def _frame_at(text: str, start: int) -> _Frame | None:
    body_start = start + len(_BEGIN)
    checksum = 0
    for end in islice(_END.finditer(text, body_start), _ENDS_TRIED):
        checksum = _checksum(text[body_start : end.start()], checksum)
        for label in _LABELS:
            stop = _skip(text, end.end(), label)
            if stop and end[1] == _encode_checksum(_checksum(label, checksum)):
                return _Frame(start, stop, bool(label))
        checksum = _checksum(end[0], checksum)
        body_start = end.end()
    return None


def _skip(text: str, start: int, label: str) -> int | None:
    words = map(re.escape, label.split())
    match = re.compile("".join(rf"\s*{word}" for word in words)).match(text, start)
    return match.end() if match else None


def _checksum(text: str, before: int = 0) -> int:
    """Continue a checksum with more text, ignoring white space and zero-width characters."""
    text = "".join(text.split())
    if not text.isascii():
        for character in _NO_WIDTH:
            text = text.replace(character, "")
    return crc32(text.encode("utf-8", "surrogatepass"), before)


def _encode_checksum(checksum: int) -> str:
    """Write a checksum as seven letters, which are fewer tokens than digits."""
    letters = ""
    for _ in range(7):
        checksum, digit = divmod(checksum, len(_LETTERS))
        letters += _LETTERS[digit]
    return letters
