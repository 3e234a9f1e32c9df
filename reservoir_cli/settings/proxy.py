"""The table ``[proxy]`` of the settings: which clients' exchanges the proxy stores.

[proxy]
store = "unless-synced"
"""

from typing import Any

from reservoir_cli.errors import UsageError

TABLE, STORE = "proxy", "store"
KEY = f"{TABLE}.{STORE}"
#: ``unless-synced`` leaves out clients whose histories ``sync`` reads.
CHOICES = ("unless-synced", "always", "never")


def check_entry(key: str, value: Any) -> str:
    """Return the value of an entry.

    :raises UsageError: the key is unknown, or the value is not one of its choices.
    """
    if key != STORE:
        raise UsageError(
            f"unknown setting {key!r} in [{TABLE}]", hint=f'write [{TABLE}] {STORE} = "always"'
        )
    if value not in CHOICES:
        raise UsageError(
            f"{KEY} cannot be {value!r}", hint=f"it must be one of {', '.join(CHOICES)}"
        )
    return str(value)
