"""The mark of an unfinished copy, and the error for a store that has it."""

from reservoir_cli.errors import StoreError

#: The property of an unfinished copy, with its source and the last copied key.
UNFINISHED_COPY = "unfinished_copy"


def unfinished_copy_error(mark: str, place: str) -> StoreError:
    """Return the error for a store that is an unfinished copy."""
    import json
    from shlex import quote

    try:
        source = quote(str(json.loads(mark)["source"]))
    except (ValueError, TypeError, LookupError):  # a damaged value
        source = "SOURCE"
    return StoreError(
        f"the store {place} is a copy that is not finished",
        hint=f"reservoir db copy {source} {quote(place)} resumes it",
    )


def refuse(mark: str | None, place: str) -> None:
    """Refuse to write to or copy a store that is an unfinished copy."""
    if mark is not None:
        raise unfinished_copy_error(mark, place)
