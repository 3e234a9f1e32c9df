"""The table ``[mcp]`` of the settings: which partitions agents may name.

    [mcp]
    partitions = ["work", "home"]

Without it, agents are limited to the partition they run in.
"""

from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.settings.setting_values import parse_list

TABLE, PARTITIONS = "mcp", "partitions"
KEY = f"{TABLE}.{PARTITIONS}"


def check_entry(key: str, value: Any) -> list[str]:
    """Return the partitions of an entry; on the command line they are separated by commas.

    :raises UsageError: the key is unknown, or the value is not a list of partition names.
    """
    hint = f'write [{TABLE}] {PARTITIONS} = ["work", "home"]'
    if key != PARTITIONS:
        raise UsageError(f"unknown setting {key!r} in [{TABLE}]", hint=hint)
    names = parse_list(value) if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{KEY} must be a list of partitions", hint=hint)
    return list(dict.fromkeys(check_name(name.strip()) for name in names))
