"""All importers, by name; the modules are loaded when a file or a name asks for them."""

from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from reservoir_cli.errors import ReservoirError, unknown_format
from reservoir_cli.transfer.reading.decompressed_file import SUFFIXES, File, Head, Unreadable
from reservoir_cli.transfer.reading.importer import Importer, Place, Record, Skipped
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.installed_plugins import Plugin

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
    plugins = installed_plugins.find_plugins("importers")
    if name not in plugins:
        raise unknown_format(name, all_formats())
    return load_plugin(plugins[name])


def importers() -> dict[str, Importer]:
    """Return our importers by name, the most specific first."""
    return {name: _load(name) for name in FORMATS}


def plugin_importers() -> dict[str, Importer]:
    """Return the importers of plugins by name, or raise PluginError."""
    plugins = installed_plugins.find_plugins("importers").items()
    return {name: load_plugin(plugin) for name, plugin in plugins if name not in _IMPORTERS}


def all_formats() -> tuple[str, ...]:
    """Return the names of our formats and of those of plugins."""
    return tuple(dict.fromkeys([*FORMATS, *installed_plugins.find_plugins("importers")]))


def likely_importers(names: Collection[str]) -> Iterator[Importer]:
    """Yield the importers whose files have one of these keys or tables, the most specific first."""
    for name, signs in _SIGNS.items():
        if name not in TEXTS and not signs.isdisjoint(names):
            yield _load(name)


#: Attributes of an importer's class.
_ATTRIBUTES = ("title", "instance", "endings", "folders", "tables", "version")


@cache
def load_plugin(plugin: Plugin) -> Importer:
    """Return a plugin's importer under the name of its entry point, or raise PluginError."""
    importer = installed_plugins.run(plugin, installed_plugins.load(plugin))
    if not isinstance(importer, Importer):
        raise installed_plugins.failure(plugin, "it is no importer")
    return PluginImporter(plugin, importer)


class PluginImporter(Importer):
    """Calls the importer of a plugin."""

    def __init__(self, plugin: Plugin, importer: Importer) -> None:
        self._plugin, self._importer = plugin, importer
        described: dict[str, Any] = {
            name: getattr(importer, name, getattr(Importer, name, plugin.name))
            for name in _ATTRIBUTES
        }
        if not described["endings"]:
            named = (ending for place in self.places() for ending in place.endings)
            described["endings"] = tuple(end for end in named if not end.endswith(SUFFIXES))
        vars(self).update(described, name=plugin.name)

    def detect(self, head: Head) -> bool:
        return bool(installed_plugins.run(self._plugin, lambda: self._importer.detect(head)))

    def places(self) -> Iterator[Place]:
        yield from installed_plugins.run(self._plugin, lambda: list(self._importer.places()))

    def is_repeated(self, file: File) -> bool:
        return bool(installed_plugins.run(self._plugin, lambda: self._importer.is_repeated(file)))

    def read(self, file: File) -> Iterator[Record | Skipped]:
        """Yield what the plugin yields; what follows an error of the plugin is skipped."""
        try:
            yield from self._importer.read(file)
        except (ReservoirError, Unreadable, OSError):
            raise
        except Exception as error:
            raise Unreadable(
                installed_plugins.failure(self._plugin, type(error).__name__).message
            ) from error
