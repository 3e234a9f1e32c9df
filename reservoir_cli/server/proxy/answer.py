"""A model's answer, put together from the JSON values of its stream."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reservoir_cli.messages import Message, ToolCall, clean_text
from reservoir_cli.transfer.reading.foreign_values import obj


@dataclass
class _Call:
    """A tool call; ``initial`` are its arguments if no pieces of them follow."""

    id: str = ""
    name: str = ""
    initial: str = ""
    arguments: list[str] = field(default_factory=list)

    def parse(self) -> ToolCall:
        arguments = "".join(self.arguments) or self.initial
        return ToolCall(clean_text(self.id), clean_text(self.name), clean_text(arguments))


@dataclass
class Answer:
    """The part of an answer that was received so far, in pieces that are joined at the end.

    :param complete: whether the model reported that it had finished.
    :param reference: by which a request can continue the answer, if the provider keeps a history.
    :param tokens: tokens of the request, as the provider reports them.
    :param cached: how many of them came from the provider's cache; ``None`` if not reported.
    :param written: tokens of the answer, as the provider reports them, without its thinking.
    :param has_more: whether it has parts that are no text of the answer.
    """

    id: str = ""
    texts: dict[Any, list[str]] = field(default_factory=dict)
    calls: dict[Any, _Call] = field(default_factory=dict)
    complete: bool = False
    failed: bool = False
    reference: str | None = None
    tokens: int = 0
    cached: int | None = None
    written: int | None = None
    has_more: bool = False

    @property
    def text_tokens(self) -> int | None:
        """The reported tokens of the text; ``None`` if the answer has other parts, or no end."""
        is_whole = self.complete and not self.failed
        return self.written if is_whole and not (self.has_more or self.calls) else None

    def message(self) -> Message | None:
        """Return the answer as a message; ``None`` if it is empty."""
        text = clean_text("\n\n".join(filter(None, self._paragraphs()))).strip()
        calls = [call.parse() for call in self.calls.values() if call.name]
        return Message("assistant", text, tool_calls=tuple(calls)) if text or calls else None

    def _paragraphs(self) -> list[str]:
        """Return the texts; adjacent blocks, into which citations split a text, are joined."""
        paragraphs, last = list[str](), None
        for key, pieces in self.texts.items():
            text = "".join(pieces)
            if _is_adjacent(last, key):
                paragraphs[-1] += text
            else:
                paragraphs.append(text)
            last = key
        return paragraphs

    def add_text(self, key: Any, text: Any) -> None:
        """Append to one of the answer's texts."""
        if isinstance(text, str):
            self.texts.setdefault(_as_key(key), []).append(text)

    def set_text(self, key: Any, text: Any) -> None:
        """Replace one of the answer's texts."""
        self.texts[_as_key(key)] = [text if isinstance(text, str) else ""]

    def add_call(self, key: Any, id: Any, name: Any, arguments: Any) -> None:
        """Add to one of the answer's tool calls."""
        key = _as_key(key)
        call = self.calls.setdefault(key, _Call())
        if name and id and call.id and id != call.id:  # some providers number all calls 0
            self.calls[key, call.id] = self.calls.pop(key)
            call = self.calls[key] = _Call()
        call.id = call.id or (id if isinstance(id, str) else "")
        call.name = call.name or (name if isinstance(name, str) else "")
        if isinstance(arguments, (dict, list)):
            call.initial = json.dumps(arguments, ensure_ascii=False)
        elif isinstance(arguments, str):
            call.arguments.append(arguments)

    def set_call(self, key: Any, id: Any, name: Any, arguments: Any) -> None:
        """Replace one of the answer's tool calls."""
        self.calls.pop(_as_key(key), None)
        self.add_call(key, id, name, arguments)


def _as_key(number: Any) -> Any:
    """Return the number of a text or a call; providers may send anything in its place."""
    try:
        hash(number)
    except TypeError:
        return repr(number)
    return number


def _is_adjacent(last: Any, key: Any) -> bool:
    if isinstance(last, tuple) and isinstance(key, tuple):  # the numbers of message and text
        return last[0] == key[0] and _is_adjacent(last[1], key[1])
    return isinstance(last, int) and isinstance(key, int) and key == last + 1


def as_objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list; none if it is no list."""
    return [obj(item) for item in value] if isinstance(value, list) else []


def as_count(value: Any) -> int | None:
    """Return a number of tokens; ``None`` if it is none."""
    return value if type(value) is int and value >= 0 else None
