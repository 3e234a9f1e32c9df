"""All public names except ``Reservoir``, and the other types of its parameters and results.

Import it for annotations; at run time the package imports each name from its own module.
"""

from reservoir_cli.chat.trim import trim_history
from reservoir_cli.chat.turn import Section
from reservoir_cli.context.candidate import Tier
from reservoir_cli.context.prepare_request import BudgetPlan, ContextOptions, Pieces
from reservoir_cli.context.recall import Reason, Recall, Skipped
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
from reservoir_cli.maintenance.summarize import Outcome
from reservoir_cli.messages import Filter, Key, Message, Role, Scope, StoredMessage, ToolCall
from reservoir_cli.retrieval.embed_messages import Indexer
from reservoir_cli.retrieval.lookup import Lookup
from reservoir_cli.retrieval.search_hits import Hit
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.models import Model
from reservoir_cli.storage.tables.conversations import ConversationSummary
from reservoir_cli.storage.tables.holdings import PlaceSummary
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.proxied.store_exchange import ExchangeLog
from reservoir_cli.transfer.reading.file import File
from reservoir_cli.transfer.reports import ExportReport, ImportReport
from reservoir_cli.transfer.sync.history_sources import Source
from reservoir_cli.transfer.sync.sync_reports import SyncReport

__all__ = [
    "BudgetPlan",
    "Check",
    "Config",
    "ContextOptions",
    "ContextWindow",
    "ConversationSummary",
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
    "Key",
    "Lookup",
    "Message",
    "Model",
    "ModelUnavailableError",
    "Outcome",
    "Pieces",
    "PlaceSummary",
    "Reason",
    "Recall",
    "ReservoirError",
    "Role",
    "Runs",
    "Scope",
    "Section",
    "Skipped",
    "Source",
    "StoreError",
    "StoreLockedError",
    "StoredMessage",
    "SyncReport",
    "Tier",
    "ToolCall",
    "UsageError",
    "WindowMessage",
    "trim_history",
]
