"""What names a store: the path of a file, or the URL of a server."""

from reservoir_cli.errors import UsageError

#: What the URL of a store on a server begins with.
SERVERS = ("postgresql", "postgres")
#: How the parameters of a server begin where they are written for libpq, not as a URL.
_PARAMETERS = (
    *("host", "hostaddr", "port", "dbname", "user", "password", "passfile", "service"),
    *("servicefile", "sslmode", "options", "connect_timeout", "application_name"),
)


def is_on_a_server(location: str) -> bool:
    """Whether a store's location is the URL of a server that is supported."""
    scheme, url, _ = location.partition("://")
    return bool(url) and scheme in SERVERS


def check_location(location: str, where: str = "") -> None:
    """Refuse what names no store: the URL of another kind of server, or parameters for libpq.

    :param where: what the user calls it, for the error; the location itself may hold a password.
    :raises UsageError: it is one of these.
    """
    name, assigned, _ = location.partition("=")
    if assigned and name.strip() in _PARAMETERS:
        raise UsageError(
            f"{where}{': ' if where else ''}parameters for libpq are not supported",
            hint="give the URL of the server, postgresql://USER@HOST:PORT/DATABASE",
        )
    scheme, url, _ = location.partition("://")
    if url and scheme not in SERVERS:
        raise UsageError(
            f"{where}{': ' if where else ''}a store at {scheme}:// is not supported",
            hint=f"give the path of a file, or {SERVERS[0]}://USER@HOST/DATABASE",
        )
