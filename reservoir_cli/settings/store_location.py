"""Check the location of a store: the path of a file, or the URL of a server."""

import re
from pathlib import Path

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import is_text

#: URL schemes of a store on a server.
SERVERS = ("postgresql", "postgres")
#: The first keyword of a libpq connection string, which is not a URL.
_LIBPQ_KEYWORDS = (
    *("host", "hostaddr", "port", "dbname", "user", "password", "passfile", "service"),
    *("servicefile", "sslmode", "options", "connect_timeout", "application_name"),
)


def is_on_a_server(location: str) -> bool:
    """Return whether a store's location is the URL of a supported server."""
    scheme, url, _ = location.partition("://")
    return bool(url) and scheme in SERVERS


def file_identity(location: str) -> tuple[int, int] | None:
    """Return the device and inode of a store's file; ``None`` if missing, zeros on a server."""
    if is_on_a_server(location):
        return (0, 0)
    try:
        status = Path(location).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def mask_password(location: str) -> str:
    """Return a store's location with its password masked, for display."""
    location = re.sub(r"(://[^/?@]*?:)[^/?]*@", r"\1***@", location)
    location = re.sub(r"(?i)([?&](?:ssl)?password=)[^&]*", r"\1***", location)
    # libpq connection strings are refused, but a settings file may contain one.
    return re.sub(
        r"(?i)((?:^|\s)(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", r"\1***", location
    )


def check_location(location: str, where: str = "") -> None:
    """Refuse URLs of unsupported servers, URLs that are not text, and libpq connection strings.

    :param where: the option or setting to name in the error instead of the location, which may
        contain a password.
    :raises UsageError: the location is one of these.
    """
    keyword, equals, _ = location.partition("=")
    if equals and keyword.strip() in _LIBPQ_KEYWORDS:
        raise UsageError(
            f"{where}{': ' if where else ''}libpq connection strings are not supported",
            hint="give the URL of the server, postgresql://USER@HOST:PORT/DATABASE",
        )
    scheme, url, _ = location.partition("://")
    if url and not is_text(location):
        raise UsageError(
            f"{where}{': ' if where else ''}the URL is not valid text",
            hint="write other bytes than ASCII as %XX",
        )
    if url and scheme not in SERVERS:
        raise UsageError(
            f"{where}{': ' if where else ''}a store at {scheme}:// is not supported",
            hint=f"give the path of a file, or {SERVERS[0]}://USER@HOST/DATABASE",
        )
