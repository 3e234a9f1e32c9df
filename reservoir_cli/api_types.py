"""All public names except ``Reservoir``, and the other types of its parameters and results.

Import it for annotations; at run time the package imports each name from its own module.
"""

from reservoir_cli.chat.trim import trim_history as trim_history
from reservoir_cli.chat.turn import Section as Section
from reservoir_cli.context.candidate import Tier as Tier
from reservoir_cli.context.prepare_request import BudgetPlan as BudgetPlan
from reservoir_cli.context.prepare_request import ContextOptions as ContextOptions
from reservoir_cli.context.prepare_request import Pieces as Pieces
from reservoir_cli.context.recall import Reason as Reason
from reservoir_cli.context.recall import Recall as Recall
from reservoir_cli.context.recall import Skipped as Skipped
from reservoir_cli.context.render.formats import ContextWindow as ContextWindow
from reservoir_cli.context.render.json import WindowMessage as WindowMessage
from reservoir_cli.context.run_statistics import Runs as Runs
from reservoir_cli.embedding import Embedder as Embedder
from reservoir_cli.errors import ModelUnavailableError as ModelUnavailableError
from reservoir_cli.errors import ReservoirError as ReservoirError
from reservoir_cli.errors import StoreError as StoreError
from reservoir_cli.errors import StoreLockedError as StoreLockedError
from reservoir_cli.errors import UsageError as UsageError
from reservoir_cli.maintenance.database import Database as Database
from reservoir_cli.maintenance.doctor import Check as Check
from reservoir_cli.maintenance.summarize import Outcome as Outcome
from reservoir_cli.messages import Filter as Filter
from reservoir_cli.messages import Key as Key
from reservoir_cli.messages import Message as Message
from reservoir_cli.messages import Role as Role
from reservoir_cli.messages import Scope as Scope
from reservoir_cli.messages import StoredMessage as StoredMessage
from reservoir_cli.messages import ToolCall as ToolCall
from reservoir_cli.retrieval.embed_messages import Indexer as Indexer
from reservoir_cli.retrieval.hits import Hit as Hit
from reservoir_cli.retrieval.lookup import Lookup as Lookup
from reservoir_cli.settings.config import Config as Config
from reservoir_cli.settings.models import Model as Model
from reservoir_cli.storage.tables.conversations import ConversationSummary as ConversationSummary
from reservoir_cli.storage.tables.holdings import ChannelSummary as ChannelSummary
from reservoir_cli.transfer.ingest import Ingestor as Ingestor
from reservoir_cli.transfer.proxied.store_exchange import ExchangeLog as ExchangeLog
from reservoir_cli.transfer.reading.decompressed_file import File as File
from reservoir_cli.transfer.reports import ExportReport as ExportReport
from reservoir_cli.transfer.reports import ImportReport as ImportReport
from reservoir_cli.transfer.sync.history_sources import Source as Source
from reservoir_cli.transfer.sync.sync_reports import SyncReport as SyncReport
