"""The commands, each loaded when it is asked for: a run pays for the one it uses."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer

from reservoir_cli.cli.help import HelpfulCommand, HelpfulGroup

#: Each command with an example. It is the function, or the app, of that name in the module of
#: that name, or in the one that :data:`MODULES` names.
EXAMPLES = {
    "init": "reservoir init",
    "ingest": 'echo "why did we drop Redis?" | reservoir ingest -p work',
    "sync": "reservoir sync",
    "view": "reservoir view 20 -p work --timestamps",
    "search": 'reservoir search "job queue" -p work',
    "context": 'reservoir context "why did we drop Redis?" -p work --budget 2000 | llm',
    "recall": 'reservoir recall "why did we drop Redis?" -p work',
    "config": "reservoir config set partition=work recent_context_size=20",
    "budget": "reservoir budget --model gpt-4o --system 1200 --current 100",
    "models": "reservoir models",
    "stats": "reservoir stats --since 7d",
    "trim": "reservoir trim messages.json --iteration 3 --budget 4000",
    "embed": "reservoir embed",
    "summarize": 'reservoir summarize -p work --with "llm -s summarize"',
    "conversations": "reservoir conversations -p work --since 30d",
    "partitions": "reservoir partitions rename work acme",
    "backup": "reservoir backup reservoir-copy.db",
    "edit": 'id=$(echo "We fly in Mai." | reservoir ingest); reservoir edit "$id" "We fly in May."',
    "tag": "reservoir tag 1 travel japan -p home",
    "untag": "reservoir untag 1 japan -p home",
    "pin": "reservoir pin 1 -p home",
    "unpin": "reservoir unpin 1 -p home",
    "forget": 'reservoir forget --match "card number" --all-partitions',
    "export": "reservoir export -p work -o work.jsonl",
    "hook": """echo '{"prompt": "why did we drop Redis?"}' | reservoir hook user-prompt""",
    "connect": "reservoir connect claude --hooks",
    "disconnect": "reservoir disconnect claude",
    "doctor": "reservoir doctor",
    "db": "reservoir db status",
    "mcp": "reservoir mcp -p work",
    "open": "reservoir open",
    "serve": "reservoir serve --upstream openai=http://localhost:8080/v1",
}

#: What each command does: the summary of its function, for a list that loads none of them.
SUMMARIES = {
    "init": "Find histories on this machine, and import them.",
    "ingest": "Store a message from stdin, or import files.",
    "sync": "Import what is new in the histories on this machine.",
    "view": "Print the last messages, oldest first.",
    "search": "Find messages by meaning and words, the best first.",
    "context": "Print the best context for a question, inside a token budget.",
    "recall": "Print the messages that an agent should know for a question.",
    "config": "Show or change settings.",
    "budget": "Show where the tokens of a context go, line by line.",
    "models": "List the models that are known, and their limits in tokens.",
    "stats": "Show what contexts took over time, and what the store holds.",
    "trim": "Trim the message list of a tool loop to a budget.",
    "embed": "Embed messages that have no embedding yet.",
    "summarize": "Summarise conversations that have no summary yet, or grew since.",
    "conversations": "List the conversations of a partition or instance.",
    "partitions": "List what each partition and instance holds; rename, merge or delete a "
    "partition.",
    "backup": "Copy the store to a file, even while other programs write to it.",
    "edit": "Replace the text of a message.",
    "tag": "Give a message one or more tags.",
    "untag": "Take tags from a message.",
    "pin": "Put a message into every context of its partition, if it fits.",
    "unpin": "Take the pin off a message.",
    "forget": "Delete messages, and every word of them, from all files of the store.",
    "export": "Print all messages of a partition, or of less or more, by time.",
    "hook": "Answer an event of Claude Code, Codex or Gemini CLI, whose JSON is read from stdin.",
    "connect": "Let an agent or an editor search and recall your conversations.",
    "disconnect": "Remove reservoir from the settings of an agent or an editor.",
    "doctor": "Check settings, store, model and speed.",
    "db": "Look after the database itself, and bring a store from a file to a PostgreSQL server "
    "or back.",
    "mcp": "Serve an agent over MCP, on stdin and stdout; its client starts this.",
    "open": "Open the page: conversations, the window of a question, and use.",
    "serve": "Serve a memory in front of any model: set a client's base URL to the printed one.",
}

MODULES = dict.fromkeys(("tag", "untag", "pin", "unpin"), "marks")


class Commands(MutableMapping[str, Any]):
    """The commands by name; looking one up loads it."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> Any:
        example = EXAMPLES[name]
        app = typer.Typer(
            add_completion=False,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
        )
        module = MODULES.get(name, name)
        function = getattr(import_module(f"reservoir_cli.cli.commands.{module}"), name)
        if isinstance(function, typer.Typer):  # a command with commands of its own
            app.add_typer(function, name=name, epilog=f"Example: {example}")
            group = typer.main.get_group(app)
            return group.commands[name]
        app.command(name, epilog=f"Example: {example}", cls=HelpfulCommand)(function)
        return typer.main.get_command(app)

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(EXAMPLES)

    def __len__(self) -> int:
        return len(EXAMPLES)


class CommandGroup(HelpfulGroup):
    """A group of :class:`Commands`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with what each does."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))
