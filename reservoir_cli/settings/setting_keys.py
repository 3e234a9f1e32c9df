"""Names of settings: dotted keys, and the tables of the file that contain them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name, is_text
from reservoir_cli.settings import projects
from reservoir_cli.settings.schema import GROUPS, SETTINGS, SINGLE, TABLES, setting_name
from reservoir_cli.settings.setting import Setting
from reservoir_cli.util.unicode_text import similar_names

#: What the name of a table in each group names.
_KINDS = {
    "partitions": "a partition",
    "models": "a model",
    "sources": "a source",
    "upstreams": "an upstream",
}
#: Settings by the names of options, and by what other programs call them.
_MEANT = {
    "budget": "max_context_tokens",
    "limit": "max_context_tokens",
    "max_tokens": "reserve_tokens",
    "window": "max_working_memory_tokens",
    "context_window": "max_working_memory_tokens",
    "similar": "semantic_context_size",
    "threshold": "min_cosine",
    "similarity_threshold": "similar_cosine",
    "synapse_threshold": "link_cosine",
    "min_similarity": "min_cosine",
    "floor": "recall_floor",
    "counter": "token_counter",
    "db": "database",
}
#: How similar a suggested setting must be, and how much less than the nearest one.
_SIMILAR, _NEARLY = 0.76, 0.1
_MIN_PART = 4  #: The shortest typed text that may be a part of a name.
#: A key with balanced quotes, and a value.
_ASSIGNMENT = r"""(?s)((?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])*)(=)(.*)"""


def split_key(key: str) -> tuple[str | None, str | None, str]:
    """Split a dotted key into (table or ``None``, name or ``None``, setting).

    The name is that of a table of :data:`GROUPS`. For ``projects`` the folder takes the place of
    the setting.

    Names may contain dots, ``models.gpt-3.5-turbo.reserve_tokens``, and quotes as in the file,
    ``models."my-model:7b".context_window``.
    """
    if not is_text(key):
        raise UsageError(
            f"{key!r} is not valid text", hint="names of settings, tables and folders are UTF-8"
        )
    if folder := projects.folder_of_key(key):
        return projects.TABLE, None, folder
    quoted = '"' in key or "'" in key
    parts = quoted_parts(key) if quoted else key.split(".")
    table = parts[0] if parts[0] in (*GROUPS, *SINGLE) else None
    if table is None:
        return None, None, find_setting(".".join(parts), None).name
    if table in SINGLE and len(parts) == 2:
        return table, None, find_setting(parts[1], table).name
    if table in SINGLE or len(parts) < 3 or not all(parts[1:]):
        form = (
            f"{table}.NAME.SETTING" if table in GROUPS else f"{table}.{next(iter(TABLES[table]))}"
        )
        raise UsageError(
            f"{key!r} is not a setting",
            hint=f"a setting is {form}; reservoir config list shows all",
        )
    name = check_name(".".join(parts[1:-1]))
    setting = find_setting(parts[-1], table).name
    if table == "partitions" and "/" in name and not quoted:
        partition = name.partition("/")[0]
        raise UsageError(
            f"instances have no settings: {key!r}",
            hint=f"set it for the partition: {table}.{partition}.{setting}; if its name "
            f'contains /, quote it: {table}."{name}".{setting}',
        )
    return table, name, setting


def split_assignment(text: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``; a quoted equals sign belongs to the key."""
    match = re.fullmatch(_ASSIGNMENT, text)
    key, equals, value = match.group(1, 2, 3) if match else text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not an assignment", hint="reservoir config set KEY=VALUE")
    return key.strip(), value


def dotted_key(table: str, name: str, setting: str) -> str:
    """Return a dotted key; the inverse of :func:`split_key`."""
    if table == projects.TABLE:
        return f'{table}."{setting}"'
    if table in SINGLE:
        return f"{table}.{setting}"
    if '"' in name or "'" in name or (table == "partitions" and "/" in name):
        import tomli_w

        name = tomli_w.dumps({name: 0}).removesuffix(" = 0\n")
    return f"{table}.{name}.{setting}"


def quoted_parts(key: str) -> list[str]:
    """Split a dotted key as TOML does."""
    import tomllib

    parts: list[str] = []
    try:
        value: Any = tomllib.loads(f"{key} = 0")
        while isinstance(value, dict):
            ((part, value),) = value.items()
            parts.append(part)
    except ValueError:  # invalid TOML, or more than one key
        value = None
    if value != 0:
        raise UsageError(
            f"misplaced quotes in {key!r}",
            hint='put quotes around a whole name: TABLE."NAME".SETTING',
        )
    return parts


def find_setting(
    key: str, table: str | None, name: str | None = None, *, otherwise: str = ""
) -> Setting:
    """Return the setting for a name, which may be one of the documents.

    :param otherwise: the hint if no name is similar; by default, which names there are.
    """
    allowed = TABLES[table]
    if setting := allowed.get(setting_name(key)):
        return setting
    near = similar_settings(key, [*allowed], table)
    if table in _KINDS:
        if key in SETTINGS:  # of no such table
            near, otherwise = [], ""
        otherwise = otherwise or _describe_allowed(table, allowed)
    location = f" in [{table}.{name}]" if name else f" in [{table}]" if table in SINGLE else ""
    location = location or (f" for {table}" if table else "")
    raise UsageError(
        f"unknown setting {key!r}{location}",
        hint=f"did you mean {', '.join(near)}?"
        if near
        else otherwise or "reservoir config list shows all settings",
    )


def _describe_allowed(table: str | None, allowed: Iterable[str]) -> str:
    names = [*allowed]
    absent = [setting for setting in SETTINGS if setting not in names]
    few = f"every setting but {', '.join(absent)}"
    return f"{_KINDS[table or '']} may have {few if len(absent) < len(names) else ', '.join(names)}"


def suggest_names(typed: str, names: Sequence[str]) -> str:
    """Return the question whether similar names are meant, to begin a hint; empty if none is."""
    near = similar_names(typed, names)
    return f"did you mean {', '.join(near)}? " if near else ""


def similar_settings(typed: str, names: Sequence[str], table: str | None) -> list[str]:
    """Return the settings that a mistyped name may mean, at most three, the nearest first."""
    tables = [*filter(None, TABLES), projects.TABLE] if table is None else []
    first, dot, rest = typed.partition(".")
    if dot:
        return [f"{near}{dot}{rest}" for near in similar_names(first, tables)]
    meanings = {name: name for name in (*names, *tables)}
    meanings |= {other: name for other, name in _MEANT.items() if name in names}
    scores = {name: _similarity(typed.lower(), name) for name in meanings}
    best = max(scores.values())
    least = best if best == 1 else max(_SIMILAR, best - _NEARLY)
    ranked = sorted(meanings, key=lambda name: -scores[name])
    return list(dict.fromkeys(meanings[name] for name in ranked if scores[name] >= least))[:3]


def _similarity(typed: str, name: str) -> float:
    """Return how similar a typed name is to another, as a whole or word by word; 1 if equal."""
    from difflib import SequenceMatcher

    def ratio(one: str, other: str) -> float:
        return SequenceMatcher(None, one, other).ratio()

    if len(typed) >= _MIN_PART and typed.replace("_", "") in name.replace("_", ""):
        return 1 if typed == name else 0.95
    parts = [max(ratio(part, word) for word in name.split("_")) for part in re.split("[_-]", typed)]
    return max(ratio(typed, name), 0.95 * sum(parts) / len(parts))
