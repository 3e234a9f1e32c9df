"""Language models: their context windows and reserves, and how their names are matched."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_TABLE = Path(__file__).with_name("models.toml")


class Model(NamedTuple):
    """A language model and its sizes in tokens."""

    name: str
    context_window: int
    reserve: int
    recommended: int | None = None
    output_limit: int | None = None


@cache
def _table() -> Mapping[str, Any]:
    import tomllib

    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


@cache
def built_in_models() -> tuple[Model, ...]:
    """Return the models of the table."""
    return tuple(
        Model(
            name,
            row["window"],
            row.get("reserve") or _usual_reserve(row["window"]),
            row.get("recommended"),
            row.get("output"),
        )
        for name, row in _table()["models"].items()
    )


@cache
def other_names() -> Mapping[str, str]:
    """Return the names of models in the table by their other names."""
    return {other: name for name, others in _table()["other_names"].items() for other in others}


def _usual_reserve(window: int) -> int:
    """Return the reserve: a quarter of a small window, 1/16 of others, at most 8,192."""
    return window // 4 if window <= 8_192 else min(8_192, window // 16)


#: Patterns are compiled when a name is first looked up.
_PREFIX = r"""(?:
      [^/]+/                                                        # openai/, models/, host:1/ns/
    | (?:openai|azure|anthropic|bedrock|google|google-gla|google-vertex|vertex_ai|gemini|ollama
        |groq|deepseek|openrouter|together|fireworks|xai|ft):       # openai:gpt-4o, ft:gpt-4o
    | mistral:(?=[\w-]*tral)                                        # mistral:7b is a tag
    | (?:[a-z]{2,6}(?:-gov)?\.)?(?:anthropic|meta|mistral|openai|qwen|google)\.   # us.anthropic.
    )(?=.)"""
_DATE = r"""(?:
      [-@](?:20\d{6}|20\d\d-\d\d-\d\d)(?:-v\d+(?::\d+)?)?           # -20250929, -20250514-v1:0
    | -v\d+:\d+ | (?<=\d)-v1                                        # the model version of Bedrock
    | [-@](?:latest|default)
    )$"""


def _without_prefixes(name: str) -> list[str]:
    forms = [name]
    while match := re.match(_PREFIX, forms[-1], re.VERBOSE):
        forms.append(forms[-1][match.end() :])
    return forms


def _without_date(name: str) -> str:
    return re.sub(_DATE, "", name, flags=re.VERBOSE)


def _without_tag(name: str) -> Iterator[str]:
    """Yield the name with its tag shortened step by step: x:8b-q4 gives x:8b, then x."""
    base, _, tag = name.partition(":")
    parts = tag.split("-")
    for count in range(len(parts) - 1, 0, -1):
        yield f"{base}:{'-'.join(parts[:count])}"
    yield base


def _forms(name: str) -> Iterator[str]:
    """Yield the forms of a name to look up, the most literal first; never a mere prefix."""
    bare = _without_prefixes(name.strip().casefold())
    yield from _with_dates(bare)
    if ":" in bare[-1]:
        for form in _without_tag(bare[-1]):
            yield form
            yield _without_date(form)


def _with_dates(names: Sequence[str]) -> Iterator[str]:
    yield from names
    yield from map(_without_date, names)


def is_same_model(name: str, other: str) -> bool:
    """Return whether two names differ only in case, prefixes and dates."""
    forms = [_with_dates(_without_prefixes(each.strip().casefold())) for each in (name, other)]
    return not set(forms[0]).isdisjoint(forms[1])


def match_name(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that matches a name.

    Case is ignored. The name is tried unchanged, then without the provider's prefix, then without a
    date or version suffix, then with the `:tag` shortened step by step; each form is also looked up
    among the other names. A prefix does not match: gpt-4.1 and gpt-4-32k are not gpt-4.

    :param names: those of the table, of the settings, or both. Among names that differ only in
        case, one spelled like `name` wins, else the first.
    """
    spelling: dict[str, str] = {}
    for candidate in names:
        if candidate == name:
            return candidate
        spelling.setdefault(candidate.casefold(), candidate)
    for form in _forms(name):
        if form in spelling:
            return spelling[form]
        if (usual := other_names().get(form, "")) in spelling:
            return spelling[usual]
    return None


def find_model(name: str) -> Model | None:
    """Return the model of the table that matches a name, by the rules of `match_name`."""
    by_name = {model.name: model for model in built_in_models()}
    match = match_name(name, by_name)
    return None if match is None else by_name[match]


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return at most three known names of the same family as a name, else the most similar ones."""
    spelling = {candidate.casefold(): candidate for candidate in names}
    base = _without_prefixes(name.strip().casefold())[-1]
    import difflib

    close = difflib.get_close_matches(base, spelling, n=len(spelling), cutoff=0.5)
    family = [near for near in close if near.startswith(base) and _is_family(base, near)]
    near = family or difflib.get_close_matches(base, spelling)
    return [spelling[name] for name in near[:3]]


def _is_family(name: str, other: str) -> bool:
    """Return whether one name extends the other after a separator, such as gpt-3.5-turbo."""
    short, long = sorted((name, other), key=len)
    return long.startswith(short) and long[len(short) :][:1] in "-:.@_"
