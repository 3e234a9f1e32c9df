"""The types that methods of ``Reservoir`` take and return, as their annotations name them.

A type checker reads this module; a program that runs loads each type from its own module.
"""

from reservoir_cli.context.recall import Recall, Skipped
from reservoir_cli.context.render.window import ContextWindow
from reservoir_cli.context.request import BudgetPlan, ContextOptions, Pieces
from reservoir_cli.context.runs import Runs
from reservoir_cli.context.window_message import WindowMessage
from reservoir_cli.embedding import Embedder
from reservoir_cli.maintenance.database import Database
from reservoir_cli.maintenance.doctor import Check
from reservoir_cli.retrieval.hits import Hit
from reservoir_cli.retrieval.indexing import Indexer
from reservoir_cli.settings.models import Model
from reservoir_cli.storage.records import Filter
from reservoir_cli.transfer.importers import File
from reservoir_cli.transfer.ingest import Ingestor
from reservoir_cli.transfer.reports import ExportReport, ImportReport
from reservoir_cli.transfer.store_exchange import ExchangeLog
from reservoir_cli.transfer.summarize import Outcome
from reservoir_cli.transfer.sync import Source, SyncReport

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
    "Model",
    "Outcome",
    "Pieces",
    "Recall",
    "Runs",
    "Skipped",
    "Source",
    "SyncReport",
    "WindowMessage",
]
