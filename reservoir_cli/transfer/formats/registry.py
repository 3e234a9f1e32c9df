"""All importers, by name; the modules are loaded when a file or a name asks for them."""

from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module

from reservoir_cli.errors import unknown_format
from reservoir_cli.transfer.formats.plugin_importer import load_plugin
from reservoir_cli.transfer.reading.importer import Importer
from reservoir_cli.util import installed_plugins

#: Formats of lists of messages, which other files may resemble, and of any text. In a folder or
#: zip they are read only if no file has a more specific format.
LISTS, TEXTS = ("openai", "anthropic"), ("text", "markdown")
#: Module and class of each format, the most specific first, and keys or tables of which every file
#: of the format has one. Without such a sign, the file is no JSON.
_IMPORTERS = {
    "reservoir": ("reservoir_rows:Native", "partition conversation_id trace_id source_id"),
    "gemini-cli": ("gemini_cli:GeminiCli", "projectHash messageId parts"),
    "gemini": ("gemini:Gemini", "header chunkedPrompt"),
    "opencode": ("opencode:OpenCode", "projectID session session_v2"),
    "copilot-chat": ("copilot_chat:CopilotChat", "requests kind vscodeVersion"),
    "copilot-cli": ("copilot_cli:CopilotCli", "parentId"),
    "cursor": ("cursor:Cursor", "cursorDiskKV message"),
    "deepseek": ("deepseek:DeepSeek", "mapping"),
    "chatgpt": ("chatgpt:ChatGPT", "mapping"),
    "claude": ("claude:Claude", "chat_messages project"),
    "qwen-code": ("qwen_code:QwenCode", "parts"),
    "claude-code": ("claude_code:ClaudeCode", "sessionId leafUuid parentUuid isSnapshotUpdate"),
    "antigravity": ("antigravity:Antigravity", "step_index"),
    "kimi-code": ("kimi_code:KimiCode", "event message role type"),
    "droid": ("droid:Droid", "type"),
    "amp": ("amp:Amp", "messages"),
    "codex": ("codex:Codex", "payload instructions"),
    "llama-cpp": ("llama_cpp:LlamaCpp", "currNode convId"),
    "pi": ("pi:Pi", "cwd message"),
    "continue": ("continue_dev:Continue", "history"),
    "librechat": ("librechat:LibreChat", "isCreatedByUser"),
    "grok": ("grok:Grok", "responses"),
    "llm": ("llm:Llm", "responses turns"),
    "cline": ("cline:Cline", "role sessionId"),
    "hermes": ("hermes:Hermes", "sessions"),
    "goose": ("goose:Goose", "working_dir sessions"),
    "lm-studio": ("lm_studio:LmStudio", "versions"),
    "aider": ("aider:Aider", ""),
    "zed": ("zed:Zed", "threads"),
    "open-webui": ("open_webui:OpenWebUI", "history chat"),
    "sharegpt": ("sharegpt:ShareGPT", "conversations"),
    "anthropic": ("api_bodies:Anthropic", "messages role params content loglines"),
    "openai": ("api_bodies:OpenAI", "messages role body input choices response content loglines"),
    "markdown": ("text_and_markdown:Markdown", ""),
    "text": ("text_and_markdown:Plain", ""),
}
FORMATS = tuple(_IMPORTERS)
_SIGNS = {name: frozenset(signs.split()) for name, (_, signs) in _IMPORTERS.items()}


@cache
def _load(name: str) -> Importer:
    module, class_name = _IMPORTERS[name][0].split(":")
    importer: Importer = getattr(import_module(f"{__package__}.{module}"), class_name)()
    return importer


def importer_named(name: str) -> Importer:
    """Return the importer of a format, or raise UsageError if there is none."""
    if name in _IMPORTERS:
        return _load(name)
    found = installed_plugins.find_plugins("importers")
    if name not in found:
        raise unknown_format(name, all_formats())
    return load_plugin(found[name])


def importers() -> dict[str, Importer]:
    """Return our importers by name, the most specific first."""
    return {name: _load(name) for name in FORMATS}


def plugin_importers() -> dict[str, Importer]:
    """Return the importers of plugins by name, or raise PluginError."""
    found = installed_plugins.find_plugins("importers").items()
    return {name: load_plugin(plugin) for name, plugin in found if name not in _IMPORTERS}


def all_formats() -> tuple[str, ...]:
    """Return the names of our formats and of those of plugins."""
    return tuple(dict.fromkeys([*FORMATS, *installed_plugins.find_plugins("importers")]))


def likely_importers(names: Collection[str]) -> Iterator[Importer]:
    """Yield the importers whose files have one of these keys or tables, the most specific first."""
    for name, signs in _SIGNS.items():
        if name not in TEXTS and not signs.isdisjoint(names):
            yield _load(name)
