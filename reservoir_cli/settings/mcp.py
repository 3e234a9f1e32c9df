"""What agents may do over MCP: the table ``[mcp]`` of the settings.

    [mcp]
    partitions = ["work", "home"]

``partitions`` are those that an agent may ask for by name; without them it has the one it is in.
"""

from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name

TABLE, PARTITIONS = "mcp", "partitions"
KEY = f"{TABLE}.{PARTITIONS}"


def check_entry(key: str, value: Any) -> list[str]:
    """Return the partitions of an entry; on the command line they stand between commas.

    :raises UsageError: there is no such key, or it holds no names of partitions.
    """
    hint = f'write [{TABLE}] {PARTITIONS} = ["work", "home"]'
    if key != PARTITIONS:
        raise UsageError(f"unknown setting {key!r} in [{TABLE}]", hint=hint)
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{KEY} must be a list of partitions", hint=hint)
    return list(dict.fromkeys(check_name(name.strip()) for name in names))
