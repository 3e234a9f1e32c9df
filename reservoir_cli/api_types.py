"""All public names except ``Reservoir``, and the other types in its annotations.

Only type checkers import this module; at run time each name is imported from its own module.
"""

from reservoir_cli.chat.trim import trim_history
from reservoir_cli.context.prepare_request import BudgetPlan, ContextOptions, Pieces
from reservoir_cli.context.recall import Recall, Skipped
from reservoir_cli.context.render.formats import ContextWindow
from reservoir_cli.context.render.json import WindowMessage
from reservoir_cli.context.run_statistics import Runs
from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import (
    ModelUnavailableError,
    ReservoirError,
    StoreError,
    StoreLockedError,
    UsageError,
)
from reservoir_cli.maintenance.database import Database
from reservoir_cli.maintenance.doctor import Check
from reservoir_cli.message_filter import Filter
from reservoir_cli.messages import Message, Scope, StoredMessage, ToolCall
from reservoir_cli.retrieval.embed_messages import Indexer
from reservoir_cli.retrieval.search_hits import Hit
from reservoir_cli.settings.models import Model
from reservoir_cli.transfer.history_sources import Source
from reservoir_cli.transfer.importers import File
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.reports import ExportReport, ImportReport
from reservoir_cli.transfer.store_exchange import ExchangeLog
from reservoir_cli.transfer.summarize import Outcome
from reservoir_cli.transfer.sync import SyncReport

__all__ = [
    "BudgetPlan",
    "Check",
    "ContextOptions",
    "ContextWindow",
    "Database",
    "Embedder",
    "ExchangeLog",
    "ExportReport",
    "File",
    "Filter",
    "Hit",
    "ImportReport",
    "Indexer",
    "Ingestor",
    "Message",
    "Model",
    "ModelUnavailableError",
    "Outcome",
    "Pieces",
    "Recall",
    "ReservoirError",
    "Runs",
    "Scope",
    "Skipped",
    "Source",
    "StoreError",
    "StoreLockedError",
    "StoredMessage",
    "SyncReport",
    "ToolCall",
    "UsageError",
    "WindowMessage",
    "trim_history",
]
