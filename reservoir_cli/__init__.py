"""Reservoir: your conversations with every model, and the best context for the next question.

Public names are imported when they are first used, so that ``import reservoir_cli`` is cheap.
"""

# ruff: isort: skip_file
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reservoir_cli.api_types import (
        ContextOptions as ContextOptions,
        ContextWindow as ContextWindow,
        ExportReport as ExportReport,
        Filter as Filter,
        Hit as Hit,
        ImportReport as ImportReport,
        Message as Message,
        ModelUnavailableError as ModelUnavailableError,
        Recall as Recall,
        ReservoirError as ReservoirError,
        Scope as Scope,
        Skipped as Skipped,
        StoredMessage as StoredMessage,
        StoreError as StoreError,
        StoreLockedError as StoreLockedError,
        ToolCall as ToolCall,
        UsageError as UsageError,
        WindowMessage as WindowMessage,
        trim_history as trim_history,
    )
    from reservoir_cli.reservoir import Reservoir as Reservoir

#: The module of each public name, below this package.
_MODULES = {
    "ContextOptions": "context.prepare_request",
    "ContextWindow": "context.render.formats",
    "ExportReport": "transfer.reports",
    "Filter": "messages",
    "Hit": "retrieval.hits",
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

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
