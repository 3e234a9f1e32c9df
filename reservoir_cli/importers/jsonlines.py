"""JSON documents and JSON Lines as one stream of objects, each with its place."""

import json
from collections.abc import Iterator
from typing import Any

from reservoir_cli.importers import Skipped


def objects(text: str) -> Iterator[tuple[str, dict[str, Any]] | Skipped]:
    """The objects of a JSON array, a single object, or JSON Lines, with their places.

    Whatever is no object, or does not parse, comes out as skipped; a torn last line too.
    """
    document = _parse(text)
    if isinstance(document, list):
        for number, each in enumerate(document, 1):
            yield _checked(f"entry {number}", each)
    elif isinstance(document, dict):
        yield "the document", document
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield _checked(f"line {number}", _parse(line))


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _checked(place: str, value: Any) -> tuple[str, dict[str, Any]] | Skipped:
    if isinstance(value, dict):
        return place, value
    return Skipped(place, "not a JSON object")
