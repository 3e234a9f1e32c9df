"""Names and figures of the public interface that several tests check."""

ROW = (
    *("id", "trace_id", "conversation_id", "partition", "instance", "role", "content", "name"),
    *("tool_calls", "tool_call_id", "created_at", "source", "source_id", "tokens"),
)
#: Additional fields of a row of a context.
SCORES = ("similarity", "cosine", "bm25", "recency", "priority")
PLACED = ("section", "tier", *SCORES, "excerpt_priority", "spans")
#: A context as JSON, and the budget in it.
DOCUMENT = (
    *("schema_version", "query", "trace_id", "scope", "model", "counter", "budget", "messages"),
    *("dropped", "not_reached", "truncated", "relevance", "floor", "nothing_found", "excerpts"),
    "timings_ms",
)
BUDGET = (
    *("window", "reserve", "available", "system", "procedure", "knowledge", "episodes"),
    *("current", "history_available", "history_used", "used", "utilisation"),
    "window_utilisation",
)
#: The tokens available to a context for well-known models.
AVAILABLE = {
    "gpt-3.5-turbo": 3_072,
    "gpt-4": 6_144,
    "gpt-4-turbo": 120_000,
    "gpt-4o": 120_000,
    "gpt-4o-mini": 120_000,
    "llama3.1:8b": 30_720,
    "llama3.1:70b": 30_720,
    "mistral:7b": 30_720,
    "codellama": 15_360,
}
