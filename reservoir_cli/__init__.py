"""Reservoir: your conversations with every model, and the best context for the next question.

Public names are imported when they are first used, so that ``import reservoir_cli`` is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reservoir_cli.api_types import (
        ContextOptions,
        ContextWindow,
        ExportReport,
        Filter,
        Hit,
        ImportReport,
        Message,
        ModelUnavailableError,
        Recall,
        ReservoirError,
        Scope,
        Skipped,
        StoredMessage,
        StoreError,
        StoreLockedError,
        ToolCall,
        UsageError,
        WindowMessage,
        trim_history,
    )
    from reservoir_cli.reservoir import Reservoir

#: The module of each public name, below this package.
_MODULES = {
    "ContextOptions": "context.prepare_request",
    "ContextWindow": "context.render.formats",
    "ExportReport": "transfer.reports",
    "Filter": "messages",
    "Hit": "retrieval.search_hits",
    "ImportReport": "transfer.reports",
    "Message": "messages",
    "ModelUnavailableError": "errors",
    "Recall": "context.recall",
    "Reservoir": "reservoir",
    "ReservoirError": "errors",
    "Scope": "messages",
    "Skipped": "context.recall",
    "StoreError": "errors",
    "StoreLockedError": "errors",
    "StoredMessage": "messages",
    "ToolCall": "messages",
    "UsageError": "errors",
    "WindowMessage": "context.render.json",
    "trim_history": "chat.trim",
}

__all__ = [
    "ContextOptions",
    "ContextWindow",
    "ExportReport",
    "Filter",
    "Hit",
    "ImportReport",
    "Message",
    "ModelUnavailableError",
    "Recall",
    "Reservoir",
    "ReservoirError",
    "Scope",
    "Skipped",
    "StoreError",
    "StoreLockedError",
    "StoredMessage",
    "ToolCall",
    "UsageError",
    "WindowMessage",
    "trim_history",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
