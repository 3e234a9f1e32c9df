"""Connect other programs to this one, and disconnect them."""

from reservoir_cli.agents.connect.client import Client
from reservoir_cli.agents.connect.clients import CLIENTS, client_named
from reservoir_cli.agents.connect.connection import (
    ClientStatus,
    ConnectReport,
    connect,
    disconnect,
    status,
)

__all__ = [
    "CLIENTS",
    "Client",
    "ClientStatus",
    "ConnectReport",
    "client_named",
    "connect",
    "disconnect",
    "status",
]
