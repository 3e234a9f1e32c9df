"""Definitions of all settings: names, types, ranges, and the tables that may override them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from reservoir_cli.messages import check_name
from reservoir_cli.settings import upstreams
from reservoir_cli.settings.setting import Setting, Value
from reservoir_cli.settings.store_locations import check_location

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
#: Tokens reserved for the answer if neither a setting nor the model says how many.
DEFAULT_RESERVE = 4_096

#: Settings by the size of the context window: small up to 8,192 tokens, large from 100,000.
PROFILES: dict[str, dict[str, Value]] = {
    "small": {"semantic_context_size": 5, "recent_context_size": 8},
    "large": {"semantic_context_size": 30, "recent_context_size": 25, "synapse_depth": 2},
}
SMALL_WINDOW, LARGE_WINDOW = 8_192, 100_000

#: Tokens of a recall if the caller names no budget; ``llm_plugin.py``, which loads nothing of ours,
#: repeats the number.
RECALL_BUDGET = 1_500
_MANY = 100_000_000


#: The fields of :class:`Settings` in order, without their names and types.
_declared: list[Setting] = []


def _setting(default: Value, about: str, *, in_partitions: bool = True, **rules: Any) -> Any:
    """Declare a setting, and return its default; see :class:`Setting` for its rules."""
    _declared.append(
        Setting(
            name="", kind=str, default=default, about=about, in_partitions=in_partitions, **rules
        )
    )
    return default


def _number(low: float, high: float, default: Value, about: str, **rules: Any) -> Any:
    return _setting(default, about, low=low, high=high, **rules)


def _check_location(value: str, where: str) -> str:
    check_location(value, where)
    return value


class Settings(NamedTuple):
    """The effective value of every setting, for one partition and one model.

    The fields are the complete list of settings; ``reservoir.toml.example`` explains them.
    Durations are in seconds.
    """

    partition: str = _setting("default", "partition if -p is not given", in_partitions=False)
    database: str | None = _setting(
        None,
        "the store if neither --db nor RESERVOIR_DB is set: a path, or postgresql://…",
        in_partitions=False,
        convert=_check_location,
    )
    model: str | None = _setting(
        None, "model to build contexts for if --model is not given", in_partitions=False
    )
    embedding_model: str = _setting(
        DEFAULT_MODEL, "a sentence-transformers name, or a folder", in_partitions=False
    )

    profile: str | None = _setting(
        None,
        "sizes for a small or a large context window",
        choices=("small", "large"),
        in_models=True,
    )
    recent_context_size: int = _number(
        0, 100_000, 15, "how many of the newest messages are candidates", in_models=True
    )
    semantic_context_size: int = _number(
        0, 100_000, 20, "how many of the most similar messages are candidates", in_models=True
    )
    similarity_weight: float = _number(0, 1, 0.7, "weight of similarity in the priority")
    recency_weight: float = _number(0, 1, 0.3, "weight of recency in the priority; 0 disables it")
    similarity: str = _setting(
        "hybrid",
        "hybrid: embeddings, words, neighbours and dates; cosine: embeddings only",
        choices=("hybrid", "cosine"),
    )
    recency: str = _setting(
        "rank", "rank: by the number of newer messages; age: by time", choices=("rank", "age")
    )
    recency_half_life: float = _setting(
        30 * 86_400.0, "recency by age halves after this time", above=0, high=1e10, duration=True
    )
    session_gap: float = _setting(
        4 * 3_600.0,
        "a pause this long ends a session outside of conversations",
        above=0,
        high=1e10,
        duration=True,
    )
    similar_cosine: float = _number(-1, 1, 0.7, "messages with a higher cosine count as similar")
    min_history_messages: int = _number(
        0, 10_000, 2, "how many of the newest messages are chosen first, whatever their score"
    )
    recall_scope: str = _setting(
        "auto", "where to look for older messages", choices=("auto", "instance", "partition")
    )
    order: str = _setting(
        "score",
        "score: by priority; tiers: recent, similar, synapse, older",
        choices=("score", "tiers"),
    )
    min_cosine: float = _number(
        -1, 1, 0.0, "messages with a lower cosine are not recalled; 0 disables it"
    )
    recall_floor: float | None = _number(
        0,
        2,
        None,
        "recall nothing when no message fits the question this well; 0 switches it off "
        "(unset: as measured for the embedding model)",
    )
    recall: bool = _setting(True, "agents and the proxy recall messages")
    follow: bool = _setting(True, "let a question follow up on the last turns of a running session")
    standing_instructions: bool = _setting(
        True, "recall your standing instructions sooner: always ..., I prefer ..."
    )
    enough: bool = _setting(False, "recall only messages of similarity 0.4 or more")
    synapse_depth: int = _number(
        0, 10, 1, "candidates are up to this many links away from recent and similar messages"
    )
    link_cosine: float = _number(-1, 1, 0.7, "two messages with at least this cosine are linked")
    excerpts: str = _setting(
        "auto",
        "auto: recall the best parts of long messages; off: whole messages only",
        choices=("auto", "off"),
    )
    excerpt_over: int = _number(
        1, _MANY, 200, "messages with more tokens than this are recalled by their best parts"
    )
    include_system: bool = _setting(False, "recall stored system messages, as text")
    fill: bool | None = _setting(
        None,
        "add older messages until the budget is spent "
        "(unset: only with --budget, not up to a model's limit)",
    )

    recalled_role: str = _setting(
        "user",
        "role of recalled messages in openai, azure and ollama: user, or system, "
        "which gives stored text the authority of instructions",
        choices=("user", "system"),
    )

    redact: str = _setting(
        "mark",
        "secrets: off, mark them, mask them in output, or remove them before storing",
        choices=("off", "mark", "mask", "remove"),
    )
    retention_days: int | None = _number(
        1,
        36_500,
        None,
        "forget --expired deletes messages older than this (unset: none)",
        days=True,
    )

    system_prompt: str | None = _setting(None, "system prompt if --system is not given")
    max_knowledge_tokens: int = _number(
        0, _MANY, 3_000, "pieces of --knowledge beyond this are left out"
    )
    max_episode_tokens: int = _number(
        0, _MANY, 1_000, "pieces of --episode beyond this are left out"
    )
    episodes: str = _setting(
        "off",
        "auto: contexts contain summaries of other conversations, made by reservoir summarize",
        choices=("off", "auto"),
    )
    max_tool_result_tokens: int = _number(
        0, _MANY, 2_000, "longer tool results are truncated at a line end; 0 never truncates"
    )
    min_history_tokens: int = _number(
        0,
        _MANY,
        4_000,
        "history gets at least this much of a model's limit, at most half of it, "
        "and may use up to half of the reserve for that",
    )
    trim_budget_tokens: int = _number(0, _MANY, 0, "budget of trim; 0 disables it")
    attachment_tokens: int = _number(
        0, _MANY, 1_600, "trim counts each picture, file or recording as this many"
    )
    max_working_memory_tokens: int = _number(
        1, _MANY, 100_000, "context window if no model is named"
    )
    max_context_tokens: int | None = _number(
        1, _MANY, None, "never use more of a context window than this", in_models=True
    )
    reserve_tokens: int | None = _number(
        0,
        _MANY,
        None,
        f"tokens reserved for the answer (unset: the model's value, else {DEFAULT_RESERVE:,})",
        in_models=True,
    )
    token_counter: str = _setting(
        "approximate",
        "approximate, ratio, tiktoken:ENCODING, huggingface:PATH or anthropic:MODEL",
        in_models=True,
    )
    token_multiplier: float = _number(
        0.01,
        100,
        1.0,
        "factor on every count, such as 1.2 for models with smaller tokens",
        in_models=True,
    )
    token_safety: float | None = _number(
        0.01, 100, None, "safety factor on every count (unset: 1.10, or 1.0 if counts are exact)"
    )


SETTINGS: dict[str, Setting] = {
    name: setting._replace(name=name, kind=next(iter(get_args(kind)), kind))  # the first of a union
    for setting, (name, kind) in zip(_declared, Settings.__annotations__.items(), strict=True)
}
DEFAULTS: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}


def _check_partitions(names: list[str], where: str) -> list[str]:
    return list(dict.fromkeys(check_name(name.strip(), where) for name in names))


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


#: The settings that each table of the file may have; ``None`` is its top level. The tables of
#: :data:`GROUPS` have names, ``[models.NAME]``.
TABLES: Mapping[str | None, Mapping[str, Setting]] = {
    None: SETTINGS,
    "partitions": _table(*(setting for setting in SETTINGS.values() if setting.in_partitions)),
    "models": _table(
        *(setting for setting in SETTINGS.values() if setting.in_models),
        Setting(name="context_window", kind=int, low=1, high=_MANY),
    ),
    "sources": _table(
        *(Setting(name=name, kind=str) for name in ("tool", "path")),
        Setting(name="partition", kind=str, convert=check_name),
        Setting(name="exclude", kind=list),
    ),
    upstreams.TABLE: _table(
        Setting(name="url", kind=str, convert=upstreams.check_url),
        Setting(name="protocol", kind=str, choices=upstreams.PROTOCOLS),
    ),
    # By default agents may name no partition but the one they run in, and change only their notes.
    "mcp": _table(
        Setting(name="partitions", kind=list, default=[], convert=_check_partitions),
        Setting(name="correct", kind=bool, default=False),
    ),
    # With unless-synced, the proxy leaves out clients whose histories `sync` reads.
    "proxy": _table(
        Setting(
            name="store",
            kind=str,
            default="unless-synced",
            choices=("unless-synced", "always", "never"),
        )
    ),
}
GROUPS = ("partitions", "models", "sources", upstreams.TABLE)  #: Tables of tables.
SINGLE = ("mcp", "proxy")  #: Single tables with settings of their own.

#: Names of settings in the documents of earlier systems, and ours; they are replaced when read.
DOCUMENTED_NAMES = {
    "token_reserve": "reserve_tokens",
    "context_budget_tokens": "trim_budget_tokens",
}
#: The environment variable of every setting and documented name.
VARIABLES = {name: f"RESERVOIR_{name.upper()}" for name in (*SETTINGS, *DOCUMENTED_NAMES)}


def setting_name(name: str) -> str:
    """Return the name of a setting for one that the documents may use."""
    return DOCUMENTED_NAMES.get(name, name)


def use_own_names(written: Mapping[str, Value]) -> tuple[dict[str, Value], list[tuple[str, str]]]:
    """Replace the documents' names in one origin, such as a table, by our names.

    Our own name wins over the other one.

    :returns: the settings, and pairs of an ignored name and the name that wins.
    """
    values = {setting_name(name): value for name, value in written.items()}
    values |= {name: value for name, value in written.items() if name not in DOCUMENTED_NAMES}
    ignored = [
        (name, own) for name, own in DOCUMENTED_NAMES.items() if name in written and own in written
    ]
    return values, ignored
