"""Check the arguments of ``Reservoir``'s methods, by one rule for each kind of value."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from reservoir_cli.errors import wrong_type
from reservoir_cli.message_filter import Filter
from reservoir_cli.messages import Key, Message, Scope, check_text, check_time

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


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        for name, rule, value in _values(signature, arguments, named):
            if rule in RULES:
                RULES[rule](name, value)
        return method(*arguments, **named)

    return call


def _values(
    signature: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Yield the name of each value of a call, the name of its rule, and the value.

    Yield none if the call raises ``TypeError``, and no ``None`` that is a default.
    """
    try:
        bound = signature.bind(*arguments, **named).arguments
    except TypeError:
        return
    for name, value in bound.items():
        parameter = signature.parameters[name]
        rule = rule_of(parameter)
        if rule.startswith("**"):
            yield from ((key, rule, item) for key, item in value.items() if item is not None)
        elif rule.startswith("*"):
            yield from ((name, rule, item) for item in value)
        elif value is not None or parameter.default is not None:
            yield name, rule, value


def rule_of(parameter: inspect.Parameter) -> str:
    """Return the name of a parameter's rule: its own, with its asterisks."""
    kinds = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    asterisks = 1 + kinds.index(parameter.kind) if parameter.kind in kinds else 0
    return "*" * asterisks + parameter.name


def _rule(expected: str, is_valid: Callable[[Any], bool]) -> _Rule:
    """Return a rule.

    :param expected: what a value must be, for the error.
    """

    def check(name: str, value: Any) -> None:
        if not is_valid(value):
            raise wrong_type(name, expected, value)

    return check


def _is(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _are(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Test all values of a list or tuple; other sequences may be long, or readable only once."""

    def are_valid(values: Any) -> bool:
        if isinstance(values, list | tuple):
            return all(map(is_valid, values))
        return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)

    return are_valid


def _are_pieces(pieces: Any) -> bool:
    return _are(_is_pair)(list(pieces.items()) if isinstance(pieces, Mapping) else pieces)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2 and all(map(_is(str), pair))


_TEXTS = (
    "query question term text partition instance model format mode form system trace_id command "
    "exclude_conversation only old new *names"
)
_IDS = _rule("a list of ids", _are(_is(int | Key)))
_PIECES = _rule("a mapping of texts, or a list of pairs", _are_pieces)
_PATH = (str, os.PathLike)


def _check_part(name: str, value: Any) -> None:
    """Check a part of a plan: tokens, or the name of a partition or model."""
    RULES[name if name in ("partition", "model") else "count"](name, value)


#: The rules by the names of parameters.
RULES: dict[str, _Rule] = {
    **dict.fromkeys(_TEXTS.split(), check_text),
    **dict.fromkeys(("since", "now"), check_time),
    **dict.fromkeys(("count", "limit", "newest", "most"), _rule("a whole number", _is(int))),
    **dict.fromkeys(("threshold", "patience"), _rule("a number", _is(int | float))),
    **dict.fromkeys(("ids", "without"), _IDS),
    **dict.fromkeys(("procedure", "knowledge"), _PIECES),
    **dict.fromkeys(("location", "file"), _rule("a path", _is(_PATH))),
    "message": _rule("the id of a message", _is(int | Key)),
    "messages": _rule("a list of Message values", _are(_is(Message))),
    "episode": _rule("a list of texts", _are(_is(str))),
    "scope": _rule('a Scope, such as Scope("work")', _is(Scope)),
    "where": _rule('a Filter, such as Filter(role="user")', _is(Filter)),
    # Their types are not imported here, as few callers need them.
    "options": _rule("ContextOptions", lambda value: hasattr(value, "flags")),
    "sources": _rule("a list of Source values", _are(lambda value: hasattr(value, "tool"))),
    "*sources": _rule("a path", lambda value: isinstance(value, _PATH) or hasattr(value, "head")),
    "**parts": _check_part,
    "config_file": _rule("a Path", _is(Path)),
    "out": _rule("a Path or a function", lambda value: isinstance(value, Path) or callable(value)),
}
