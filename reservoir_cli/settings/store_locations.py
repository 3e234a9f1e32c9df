"""Locations of stores: the path of a file, or the URL of a server."""

from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import is_text

SERVERS = ("postgresql", "postgres")  #: URL schemes of a store on a server.
#: The first keyword of a libpq connection string, which is not a URL.
_LIBPQ_KEYWORDS = (
    *("host", "hostaddr", "port", "dbname", "user", "password", "passfile", "service"),
    *("servicefile", "sslmode", "options", "connect_timeout", "application_name"),
)


def is_on_a_server(location: str) -> bool:
    """Return whether a store's location is the URL of a supported server."""
    scheme, url, _ = location.partition("://")
    return bool(url) and scheme in SERVERS


def check_location(location: str, where: str = "") -> None:
    """Refuse URLs of unsupported servers, URLs that are not text, and libpq connection strings.

    :param where: the option or setting to name in the error instead of the location, which may
        contain a password. A command cannot use a store in memory, which ends with it.
    """
    if where and str(Path(location)) == ":memory:":
        raise UsageError(
            f"{where}: a store in memory would be lost when the command ends",
            hint="give the path of a file",
        )
    prefix = f"{where}: " if where else ""
    keyword, equals, _ = location.partition("=")
    if equals and keyword.strip() in _LIBPQ_KEYWORDS:
        raise UsageError(
            f"{prefix}libpq connection strings are not supported",
            hint="give the URL of the server, postgresql://USER@HOST:PORT/DATABASE",
        )
    scheme, url, _ = location.partition("://")
    if not url and location.partition(":")[0] in SERVERS:
        raise UsageError(
            f"{prefix}the URL of a server has two slashes after its scheme",
            hint="it has the form postgresql://USER@HOST:PORT/DATABASE",
        )
    if url and not is_text(location):
        raise UsageError(
            f"{prefix}the URL is not valid text", hint="write other bytes than ASCII as %XX"
        )
    if url and scheme not in SERVERS:
        raise UsageError(
            f"{prefix}a store at {scheme}:// is not supported",
            hint=f"give the path of a file, or {SERVERS[0]}://USER@HOST/DATABASE",
        )
