"""The error for a format that does not exist."""

from collections.abc import Collection

from reservoir_cli.errors import UsageError

#: What formats are called elsewhere.
_OTHER_NAMES = {
    "md": "markdown",
    "txt": "text",
    "plain": "text",
    "ndjson": "jsonl",
    "claude": "anthropic",
    "gpt": "openai",
}


def unknown_format(name: str, known: Collection[str]) -> UsageError:
    """Return the error for a format; its hint names the one that is meant, and all formats."""
    from difflib import get_close_matches

    other = _OTHER_NAMES.get(name.lower(), "")
    near = [other] if other in known else get_close_matches(name.lower(), known, 1)
    question = f"did you mean {near[0]}? " if near else ""
    return UsageError(f"unknown format {name!r}", hint=f"{question}formats are {', '.join(known)}")
