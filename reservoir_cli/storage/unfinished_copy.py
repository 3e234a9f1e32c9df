"""A copy that was broken off: what tells of it, and what it says to who wants to use it."""

from reservoir_cli.errors import StoreError

#: The property that says where a copy that is not complete comes from, and how far it is.
UNFINISHED_COPY = "unfinished_copy"


def told(mark: str, place: str) -> StoreError:
    """Return the error for a store with that mark.

    :param mark: the value of :data:`UNFINISHED_COPY`.
    """
    import json
    from shlex import quote

    try:
        source = quote(str(json.loads(mark)["source"]))
    except (ValueError, TypeError, LookupError):  # it is not of our making
        source = "SOURCE"
    return StoreError(
        f"the store {place} is a copy that is not finished",
        hint=f"reservoir db copy {source} {quote(place)} goes on with it",
    )


def refuse(mark: str | None, place: str) -> None:
    """Refuse to write to a store that is still being copied, or to copy it on.

    :raises StoreError: it has that mark.
    """
    if mark is not None:
        raise told(mark, place)
