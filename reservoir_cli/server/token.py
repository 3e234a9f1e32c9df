"""The token that programs need to use the server."""

import secrets
from pathlib import Path

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import restrict_permissions, write_private
from reservoir_cli.util.read_files import read_regular

#: Random bytes of a token, before encoding.
_BYTES = 24
#: The fewest characters that an existing token may have.
_MIN_LENGTH = 16
#: The largest file that is read, in bytes.
_MAX_SIZE = 1 << 20


def load_token() -> str:
    """Return the token of this home; create one if there is none.

    :raises ReservoirError: its file cannot be read or written.
    """
    file = paths.token_file()
    try:
        restrict_permissions([file])
        if token := _read(file):
            return token
        write_private(file, secrets.token_urlsafe(_BYTES) + "\n")
        return _read(file)
    except OSError as error:
        raise ReservoirError(
            f"cannot store a token in {file}: {error.strerror}", hint="move it away"
        ) from None


def _read(file: Path) -> str:
    """Return the token in a file, or ``""`` if it has none that is safe in a URL."""
    try:
        token = read_regular(file, _MAX_SIZE).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    safe = all(character.isalnum() or character in "-_" for character in token)
    return token if safe and len(token) >= _MIN_LENGTH else ""
