"""The tables ``[mcp]`` and ``[proxy]`` of the settings, which have a single setting each.

Without ``mcp.partitions``, agents may name no partition but the one they run in. With
``unless-synced``, the proxy leaves out clients whose histories ``sync`` reads.
"""

from typing import Any, NamedTuple

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name
from reservoir_cli.settings.schema import Value
from reservoir_cli.settings.setting_values import parse_list


class SingleSetting(NamedTuple):
    """The only setting of a table.

    :param example: its value in a hint, as TOML.
    :param choices: its values; without them, it is a list of partitions.
    """

    table: str
    name: str
    default: Value
    example: str
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The dotted key."""
        return f"{self.table}.{self.name}"

    def check_entry(self, key: str, value: Any) -> Value:
        """Return the value of an entry; on the command line, commas separate partitions.

        :raises UsageError: the key is unknown, or the value is invalid.
        """
        hint = f"write [{self.table}] {self.name} = {self.example}"
        if key != self.name:
            raise UsageError(f"unknown setting {key!r} in [{self.table}]", hint=hint)
        if self.choices:
            if value not in self.choices:
                hint = f"it must be one of {', '.join(self.choices)}"
                raise UsageError(f"{self.key} cannot be {value!r}", hint=hint)
            return str(value)
        names = parse_list(value) if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UsageError(f"{self.key} must be a list of partitions", hint=hint)
        return list(dict.fromkeys(check_name(name.strip()) for name in names))


MCP = SingleSetting("mcp", "partitions", [], '["work", "home"]')
PROXY = SingleSetting(
    "proxy", "store", "unless-synced", '"always"', ("unless-synced", "always", "never")
)
SINGLE = {setting.table: setting for setting in (MCP, PROXY)}
