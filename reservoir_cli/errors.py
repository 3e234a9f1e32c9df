"""All errors, as one tree.

    ReservoirError             1  the operation failed
    ├── TextRemainsError       1  text is deleted, but still in the store's files
    ├── PluginError            1  a plugin failed
    ├── UsageError             2  wrong name, value or combination of options
    ├── StoreError             3  the store cannot be opened, is newer, or is corrupt
    │   ├── StoreCorruptError  3  its contents are damaged
    │   └── StoreLockedError   4  the store stayed locked by another process
    └── ModelUnavailableError  5  the embedding model or token counter is not available

The number is the exit code of the command line. An error is raised where it is detected and
printed once, in ``cli.app``. No error contains the text of a message or the password of a URL.
"""

import re
from collections.abc import Collection

#: The exit codes of the command line and their meanings, as the man page and the docs list them.
EXIT_CODES = {
    0: "Success, also if a read finds nothing.",
    1: "The operation failed, or doctor found a problem. Follow the hint before trying again.",
    2: "Wrong usage: an unknown option, name or value. Trying again does not help.",
    3: "The store cannot be opened, read or written: damaged, newer or unreachable. Trying again "
    "helps only if its server was unreachable.",
    4: "The store stayed locked by another process. Try again.",
    5: "The model or token counter is not available. Trying again helps only if a download failed.",
    6: "context --strict left out or truncated something; the context is printed. Trying again "
    "does not help.",
    130: "Interrupted.",
    143: "Terminated.",
}
#: Names that other programs use for our formats.
_OTHER_NAMES = {
    "md": "markdown",
    "txt": "text",
    "plain": "text",
    "ndjson": "jsonl",
    "claude": "anthropic",
    "gpt": "openai",
}

#: Passwords: in the URL of a store, where one may contain any character by mistake; in any other
#: URL; among the parameters of a URL; in a libpq connection string.
_PASSWORD = r"""(?ix)
    (?: ( \bpostgres(?:ql)?:/* [^/?@:\s]* : ) (?!\*{3}) (?s:.)* (?=@)
      | ( \w:/+ [^/?@\s]*? : ) (?!\*{3}) [^/?\s]* (?=@)
      | ( [?&] (?:ssl)?password= ) (?!\*{3}) [^&\s]*
      | ( (?:^|\s) (?:ssl)?password \s*=\s* ) (?!\*{3}) (?: '(?:[^'\\]|\\.)*' | \S+ )
    )"""


def mask_passwords(text: str) -> str:
    """Return a text with the passwords in URLs of stores masked, for display."""
    lowered = text.casefold()
    if not any(sign in lowered for sign in (":/", "postgres", "password")):
        return text  # no pattern is compiled, for which there may be no memory
    return re.sub(_PASSWORD, lambda match: f"{''.join(filter(None, match.groups()))}***", text)


class ReservoirError(Exception):
    """An operation failed; passwords of URLs in its texts are masked.

    :param message: one line that says what is wrong.
    :param hint: one line that says how to fix it, if known.
    """

    exit_code = 1
    kind = "failed"

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = mask_passwords(message)
        self.hint = hint and mask_passwords(hint)
        super().__init__(self.message)


class TextRemainsError(ReservoirError):
    """Text is deleted, but not yet removed from the store's files."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} are still in the store's files: another program is reading the store, "
            "or the disk is full",
            hint="close that program or free disk space; then any reservoir command removes them",
        )


class PluginError(ReservoirError):
    """What another package offers to Reservoir failed."""


class UsageError(ReservoirError):
    """The request is invalid: an unknown name, a wrong value, conflicting options."""

    exit_code = 2
    kind = "usage"


class StoreError(ReservoirError):
    """The store cannot be opened, was written by a newer version, or is corrupt."""

    exit_code = 3
    kind = "store"


class StoreCorruptError(StoreError):
    """The contents of the store are damaged."""

    #: The default hint.
    WAY_OUT = (
        "run reservoir doctor --repair; if that fails, restore a backup, "
        "or use reservoir doctor --salvage FILE"
    )


class StoreLockedError(StoreError):
    """Another process held the store's lock until the timeout."""

    exit_code = 4
    kind = "locked"


class ModelUnavailableError(ReservoirError):
    """The embedding model or token counter is not on this machine."""

    exit_code = 5
    kind = "unavailable"


def wrong_type(name: str, expected: str, value: object) -> UsageError:
    """Return the error for an argument of another type than expected."""
    kind = type(value).__name__
    if isinstance(value, list | tuple) and value:
        kind = f"a {kind} of {type(value[0]).__name__}"
    return UsageError(f"{name} must be {expected}, not {kind}")


def unknown_format(name: str, names: Collection[str]) -> UsageError:
    """Return the error for an unknown format; its hint suggests the likely one and lists all."""
    from difflib import get_close_matches

    alias = _OTHER_NAMES.get(name.lower(), "")
    matches = [alias] if alias in names else get_close_matches(name.lower(), names, 1)
    question = f"did you mean {matches[0]}? " if matches else ""
    return UsageError(f"unknown format {name!r}", hint=f"{question}formats are {', '.join(names)}")
