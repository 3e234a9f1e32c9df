"""Build the error for an unknown format."""

from collections.abc import Collection

from reservoir_cli.errors import UsageError

#: Names that other programs use for our formats.
_OTHER_NAMES = {
    "md": "markdown",
    "txt": "text",
    "plain": "text",
    "ndjson": "jsonl",
    "claude": "anthropic",
    "gpt": "openai",
}


def unknown_format(name: str, known: Collection[str]) -> UsageError:
    """Return the error for an unknown format; its hint suggests the likely one and lists all."""
    from difflib import get_close_matches

    alias = _OTHER_NAMES.get(name.lower(), "")
    matches = [alias] if alias in known else get_close_matches(name.lower(), known, 1)
    question = f"did you mean {matches[0]}? " if matches else ""
    return UsageError(f"unknown format {name!r}", hint=f"{question}formats are {', '.join(known)}")
