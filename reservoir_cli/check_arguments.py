"""Check the arguments of ``Reservoir``'s methods, by one rule for each kind of value."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from reservoir_cli.errors import UsageError, wrong_type
from reservoir_cli.messages import (
    LARGEST_ID,
    Filter,
    Key,
    Message,
    Scope,
    check_text,
    check_time,
    check_valid_text,
)
from reservoir_cli.settings.config import Config
from reservoir_cli.storage.keys import Keys

_Class = TypeVar("_Class", bound=type)
#: Raises ``UsageError`` if a value, whose name it receives first, is not of a kind.
_Rule = Callable[[str, Any], None]


def checked(cls: _Class) -> _Class:
    """Let the public methods of a class check their arguments.

    Values of a wrong type raise ``UsageError`` before anything is read or written.
    """
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, _checking(member))
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(_checking(member.__func__)))
    return cls


_signature = cache(inspect.signature)


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        signature = _signature(method)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError:
            return method(*arguments, **named)  # raises it, too, and names the method
        for name, value in bound.arguments.items():
            if name in _LISTS and isinstance(value, Iterator):  # it can be read only once
                value = bound.arguments[name] = list(value)
            parameter = signature.parameters[name]
            rule = RULES.get(rule_of(parameter))
            is_left_out = value is None and parameter.default is None
            if rule and not is_left_out:
                for item in value if parameter.kind == parameter.VAR_POSITIONAL else [value]:
                    rule(name, item)
        return method(*bound.args, **bound.kwargs)

    return call


def rule_of(parameter: inspect.Parameter) -> str:
    """Return the name of a parameter's rule: its own, with its asterisks, or that of its type."""
    if parameter.annotation in (int, int | None):
        return "int"
    if parameter.annotation is Config:
        return "known"
    kinds = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    asterisks = 1 + kinds.index(parameter.kind) if parameter.kind in kinds else 0
    return "*" * asterisks + parameter.name


def _rule(expected: str, is_valid: Callable[[Any], bool]) -> _Rule:
    def check(name: str, value: Any) -> None:
        if not is_valid(value):
            raise wrong_type(name, expected, value)

    return check


def _is(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _has(attribute: str) -> Callable[[Any], bool]:
    """Test for an object by an attribute, if few callers need its type, which is not imported."""
    return lambda value: hasattr(value, attribute) and not isinstance(value, type)


def _are(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: (
        isinstance(values, Iterable)
        and not isinstance(values, str | bytes | Mapping)
        and all(map(is_valid, values))
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2 and all(map(_is(str), pair))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID


def _is_key(value: Any) -> bool:
    return isinstance(value, Key) and _is(str)(value.partition) and _is_whole(value.id)


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(name, "a whole number", value)
    if not _is_whole(value):
        raise UsageError(f"{name} cannot be {value}", hint=f"it must be from 0 to {LARGEST_ID:,}")


def _path(expected: str, kind: Any) -> _Rule:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, kind):
            raise wrong_type(name, expected, value)
        with suppress(UnicodeEncodeError):
            encoded = os.fsencode(value)
            if encoded and b"\0" not in encoded:
                return
        raise UsageError(f"{name} cannot be {str(value)!r}", hint="give the path of a file")

    return check


def _unless(is_valid: Callable[[Any], bool], rule: _Rule) -> _Rule:
    return lambda name, value: None if is_valid(value) else rule(name, value)


def _check_now(name: str, value: Any) -> None:
    """Check the time of a question, which is converted to the local zone."""
    check_time(name, value)
    try:
        value.astimezone(UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        raise UsageError(f"{name} is too far from today: {value}") from None


_PATH = (str, os.PathLike)
_PIECES = _rule(
    "a mapping of texts, or a list of pairs",
    lambda pieces: _are(_is_pair)([*pieces.items()] if isinstance(pieces, Mapping) else pieces),
)
#: The parameters that are lists.
_LISTS = frozenset(
    "messages ids without shown talk procedure knowledge episode sources exclude".split()
)
#: The rules by the names of parameters.
RULES: dict[str, _Rule] = {
    **dict.fromkeys("query question term text system trace_id".split(), check_text),
    **dict.fromkeys(("command", "exclude_conversation"), check_text),
    **dict.fromkeys("partition instance model format mode form".split(), check_valid_text),
    **dict.fromkeys(("only", "old", "new", "*names"), check_valid_text),
    **dict.fromkeys(("threshold", "patience"), _rule("a number", _is(int | float))),
    **dict.fromkeys(("procedure", "knowledge"), _PIECES),
    **dict.fromkeys(("notify", "progress", "explain_empty"), _rule("a function", callable)),
    "int": _check_whole,
    "since": check_time,
    "until": check_time,
    "now": _check_now,
    "ids": _rule(
        "a list of ids from 0 up, or of keys",
        lambda ids: isinstance(ids, Keys) or _are(_is_whole)(ids) or _are(_is_key)(ids),
    ),
    "keys": _rule("a list of keys", _are(_is_key)),
    **dict.fromkeys(("without", "shown"), _rule("a list of ids", _are(_is_whole))),
    "talk": _rule("a list of pairs of texts", _are(_is_pair)),
    "message": _rule("the id of a message", lambda value: _is_whole(value) or _is_key(value)),
    "messages": _rule("a list of Message values", _are(_is(Message))),
    **dict.fromkeys(("episode", "exclude"), _rule("a list of texts", _are(_is(str)))),
    "scope": _rule('a Scope, such as Scope("work")', _is(Scope)),
    "where": _rule('a Filter, such as Filter(role="user")', _is(Filter)),
    "options": _rule("ContextOptions", _has("flags")),
    "embedder": _rule("an embedding model", _has("encode_documents")),
    "settings": _rule(
        "a mapping by the names of settings",
        lambda settings: isinstance(settings, Mapping) and all(map(_is(str), settings)),
    ),
    "known": _rule("the config of a Reservoir", _has("store_location")),
    # An empty location is that of the settings.
    "location": _unless(lambda value: value == "", _path("a path", _PATH)),
    "file": _path("a path", _PATH),
    "sources": _rule("a list of Source values", _are(_has("tool"))),
    "*sources": _unless(_has("head"), _path("a path", _PATH)),
    "config_file": _path("a Path", Path),
    "out": _unless(callable, _path("a Path or a function", Path)),
}
