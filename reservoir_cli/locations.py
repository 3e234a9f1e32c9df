"""What names a store: the path of a file, or the URL of a server."""

from reservoir_cli.errors import UsageError

#: What the URL of a store on a server begins with.
SERVERS = ("postgresql", "postgres")


def is_on_a_server(location: str) -> bool:
    """Whether a store's location is the URL of a server that is supported."""
    scheme, url, _ = location.partition("://")
    return bool(url) and scheme in SERVERS


def check_location(location: str, where: str = "") -> None:
    """Refuse a store's location that is the URL of anything but a server that is supported.

    :param where: what the user calls it, for the error; the URL itself may hold a password.
    :raises UsageError: it is.
    """
    scheme, url, _ = location.partition("://")
    if url and scheme not in SERVERS:
        raise UsageError(
            f"{where}{': ' if where else ''}a store at {scheme}:// is not supported",
            hint=f"give the path of a file, or {SERVERS[0]}://USER@HOST/DATABASE",
        )
