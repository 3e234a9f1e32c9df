"""The importers by the name of their format."""

from importlib import import_module

from reservoir_cli.errors import unknown_format
from reservoir_cli.transfer.importers.importer import Importer

#: Module and class of each format, the most specific first; loaded when a file is read.
_CLASSES = {
    "reservoir": ("native", "Native"),
    "gemini-cli": ("gemini_cli", "GeminiCli"),
    "opencode": ("opencode", "OpenCode"),
    "copilot-chat": ("copilot_chat", "CopilotChat"),
    "copilot-cli": ("copilot_cli", "CopilotCli"),
    "cursor": ("cursor", "Cursor"),
    "chatgpt": ("chatgpt", "ChatGPT"),
    "claude": ("claude", "Claude"),
    "claude-code": ("claude_code", "ClaudeCode"),
    "codex": ("codex", "Codex"),
    "llm": ("llm", "Llm"),
    "cline": ("cline", "Cline"),
    "goose": ("goose", "Goose"),
    "lm-studio": ("lm_studio", "LmStudio"),
    "aider": ("aider", "Aider"),
    "zed": ("zed", "Zed"),
    "open-webui": ("open_webui", "OpenWebUI"),
    "sharegpt": ("sharegpt", "ShareGPT"),
    "anthropic": ("anthropic", "Anthropic"),
    "openai": ("openai", "OpenAI"),
    "markdown": ("plain", "Markdown"),
    "text": ("plain", "Plain"),
}
FORMATS = tuple(_CLASSES)
#: Formats of databases; a database has the format if it contains all tables of one of its sets.
DATABASES: dict[str, tuple[frozenset[str], ...]] = {
    "opencode": (frozenset({"session", "message", "part"}),),
    "cursor": (frozenset({"cursorDiskKV"}),),
    "llm": (frozenset({"responses"}), frozenset({"turns"})),
    "goose": (frozenset({"sessions", "messages", "schema_version"}),),
    "open-webui": (frozenset({"chat", "auth", "user"}),),
    "zed": (frozenset({"threads"}),),
}


def importers() -> dict[str, Importer]:
    """Return all importers by name, the most specific first."""
    return {name: _load(*place)() for name, place in _CLASSES.items()}


def importer_named(form: str) -> Importer:
    """Return the importer of a format.

    :raises UsageError: there is no format of that name.
    """
    if form not in _CLASSES:
        raise unknown_format(form, FORMATS)
    return _load(*_CLASSES[form])()


def _load(module: str, class_name: str) -> type[Importer]:
    loaded: type[Importer] = getattr(import_module(f"{__package__}.{module}"), class_name)
    return loaded
