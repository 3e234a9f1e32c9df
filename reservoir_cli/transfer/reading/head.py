"""Find the keys of a JSON text without parsing it, however long its strings are."""

import re
from collections.abc import Collection
from typing import BinaryIO

from reservoir_cli.transfer.reading.input_files import HEAD
from reservoir_cli.util.read_files import LARGEST

#: Brackets of objects, keys with short values, and other strings. The last string of a line may be
#: cut off.
_TOKEN = re.compile(
    r'(?P<line>^\{)|(?P<open>\{)|(?P<close>\})|"(?:(?P<key>[^"\\\n]{0,100}+)"\s*:'
    r'(?:\s*"(?P<value>[^"\\\n]{0,60}+)")?|[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?)',
    re.M,
)
_DEEPEST = 6  # keys deeper than this are arguments and results of tools, which may have any name
#: Keys whose values say what an object is.
_KINDS = frozenset(
    {"type", "role", "kind", "object", "sender", "author", "header", "url", "harness"}
)
#: The parts of the pattern that are brackets, and what they add to the depth.
_BRACKETS = {"line": 0, "open": 1, "close": -1}
#: After so many objects, the format is looked for again.
_LOOKS = (1, 2, 4, 8)
#: Objects, keys and strings that are examined at once, and at most.
_FIRST_STEP, _STEP = 100, 1_000
_MOST_TOKENS = 200_000


class Head:
    """The beginning of a file, with the keys of its objects and where they are.

    Only as much is scanned as :meth:`advance` is called for; text inside strings does not count.

    :ivar objects: how many objects that are not inside others were completed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = text.lstrip("\ufeff \t\r\n")
        self.is_json = self.start[:1] in ("{", "[")
        self.is_array = self.start[:1] == "["
        self.objects = 0
        self._depths: dict[str, int] = {}
        self._kinds: set[str] = set()
        self._depth = self._tokens = 0
        self._text = text if self.is_json else ""
        self._position = 0

    def has(self, *names: str, depth: int = 2) -> bool:
        """Return whether an object has one of the keys, in at most ``depth`` nested objects."""
        return any(self._depths.get(name, _DEEPEST) <= depth for name in names)

    def has_all(self, *names: str, depth: int = 2) -> bool:
        """Return whether there are objects with all of the keys."""
        return all(self.has(name, depth=depth) for name in names)

    def has_kind(self, *kinds: str) -> bool:
        """Return whether an object says that it is of one of the kinds, as its type or role."""
        return not self._kinds.isdisjoint(kinds)

    @property
    def keys(self) -> Collection[str]:
        """All keys found so far."""
        return self._depths.keys()

    def advance(self) -> bool:
        """Scan up to the end of an object, or some more; return whether there was more."""
        depth, depths, size = self._depth, self._depths, len(self._text)
        step = _FIRST_STEP if not self._tokens else _STEP
        count, position = 0, self._position
        for token in _TOKEN.finditer(self._text, position):
            part = token.lastgroup  # of a string, which may be long, nothing is copied
            if token.end() == size and part not in _BRACKETS:
                position = token.start()  # it may be cut off
                break
            position = token.end()
            count += 1
            if part == "key" or part == "value":
                key = token["key"]
                depths[key] = min(depth, depths.get(key, _DEEPEST))
                if part == "value" and key in _KINDS:
                    self._kinds.add(token["value"])
            elif part in _BRACKETS:
                depth = 1 if part == "line" else depth + _BRACKETS[part]
                if depth == 0 and part == "close":
                    self.objects += 1
                    step = 0 if self.objects in _LOOKS else step
            if count >= step:
                break
        is_further = position > self._position
        self._depth, self._position = depth, position
        self._tokens += count
        return is_further

    def read_on(self, stream: BinaryIO) -> bool:
        """Add more of the file behind what was read last; return whether there was more."""
        rest = self._text[self._position :]
        if self._tokens >= _MOST_TOKENS or len(rest) > LARGEST:
            return False
        data = stream.read(max(HEAD, len(rest)))
        self._text, self._position = rest + data.decode("utf-8", "replace"), 0
        return bool(data)
