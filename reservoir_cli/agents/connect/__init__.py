"""Connect other programs to this one, and disconnect them, one module per program."""

from reservoir_cli.agents.connect.connection import Outcome, Status, connect, disconnect, status

__all__ = ["Outcome", "Status", "connect", "disconnect", "status"]
