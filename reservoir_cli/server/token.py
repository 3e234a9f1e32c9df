"""The token that programs need to use the server."""

import os
import secrets
from pathlib import Path

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import paths
from reservoir_cli.util.private_files import restrict_permissions, write_private

#: Random bytes of a token, before encoding.
_BYTES = 24
#: The fewest characters that an existing token may have.
_MIN_LENGTH = 16


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
            f"cannot store a token in {file}: {os.strerror(error.errno or 0)}"
        ) from None


def _read(file: Path) -> str:
    """Return the token in a file, or ``""`` if it has none that is safe in a URL."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    safe = all(character.isalnum() or character in "-_" for character in token)
    return token if safe and len(token) >= _MIN_LENGTH else ""
