"""The table of commands; each command's module is imported only when it is used."""

from collections import UserDict
from importlib import import_module
from typing import Any

import typer

from reservoir_cli.cli.help import HelpfulCommand, ProgramGroup, new_app
from reservoir_cli.cli.mistyped_commands import quote_command
from reservoir_cli.errors import UsageError
from reservoir_cli.util.unicode_text import similar_names

#: The variable in which a completion script names its shell.
COMPLETED_SHELL = "_RESERVOIR_COMPLETE"
#: Each command with an example. A command is the function or app of the same name in the module
#: of the same name, unless :data:`MODULES` names another module.
EXAMPLES = {
    "init": "reservoir init",
    "ingest": 'echo "why did we drop Redis?" | reservoir ingest -p work',
    "sync": "reservoir sync",
    "view": "reservoir view 20 -p work --timestamps",
    "search": "reservoir search job queue -p work",
    "context": "reservoir context why did we drop redis -p work --budget 700 | llm",
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
    "edit": 'reservoir edit 1 "We fly in May." -p home',
    "tag": "reservoir tag 1 travel japan -p home",
    "untag": "reservoir untag 1 japan -p home",
    "pin": "reservoir pin 1 -p home",
    "unpin": "reservoir unpin 1 -p home",
    "forget": 'reservoir forget --match "card number" --all-partitions',
    "move": "reservoir move --project app --to work",
    "export": "reservoir export -p work -o work.jsonl",
    "hook": """echo '{"prompt": "why drop Redis?"}' | reservoir hook user-prompt""",
    "connect": "reservoir connect claude --hooks",
    "disconnect": "reservoir disconnect claude",
    "doctor": "reservoir doctor",
    "db": "reservoir db status",
    "mcp": "reservoir mcp -p work",
    "open": "reservoir open",
    "serve": "reservoir serve --upstream openai=http://localhost:8080/v1",
}

#: The docstring summary of each command, repeated here so that listing them imports none.
SUMMARIES = {
    "init": "Find chat histories on this machine and import them.",
    "ingest": "Store a message from stdin, or import files.",
    "sync": "Import new messages from the chat histories on this machine.",
    "view": "Print the last messages, oldest first.",
    "search": "Find messages by meaning and words, best first.",
    "context": "Print the best context for a question within a token budget.",
    "recall": "Print the stored messages that help an agent with a question.",
    "config": "Show or change settings.",
    "budget": "Show how the tokens of a context are divided, line by line.",
    "models": "List the known models and their token limits.",
    "stats": "Show the tokens that contexts used, and what the store holds.",
    "trim": "Trim the message list of a tool loop to a budget.",
    "embed": "Embed messages that have no embedding yet.",
    "summarize": "Summarise conversations that are new or have grown.",
    "conversations": "List the conversations of a partition or instance.",
    "partitions": "List, rename, merge or delete partitions.",
    "backup": "Copy the store to a file, even while others write to it.",
    "edit": "Replace the text of a message.",
    "tag": "Give a message one or more tags.",
    "untag": "Remove tags from a message.",
    "pin": "Include a message in every context of its partition.",
    "unpin": "Unpin a message.",
    "forget": "Delete messages, and all traces of their text in the store.",
    "move": "Move messages and their conversations to another partition.",
    "export": "Print all messages of a partition, an instance or the store.",
    "hook": "Handle an event of Claude Code, Codex or Gemini CLI.",
    "connect": "Let an agent or editor search and recall your conversations.",
    "disconnect": "Remove reservoir from the settings of an agent or an editor.",
    "doctor": "Check settings, store, model and speed.",
    "db": "Manage the database, or copy a store to or from a server.",
    "mcp": "Serve the store to an agent over MCP; its client starts this.",
    "open": "Open the web page: conversations, contexts and usage.",
    "serve": "Run a proxy that adds memory to any model.",
}

#: The commands by what they are for, as in the README; together they are all commands.
GROUPS = {
    "Import": ("init", "ingest", "sync"),
    "Find": ("search", "view", "conversations"),
    "Ask": ("context", "recall", "budget", "models", "trim", "stats"),
    "Let agents ask": ("connect", "disconnect", "mcp", "hook"),
    "Proxy a model": ("serve", "open"),
    "Correct, tag, summarise": ("edit", "tag", "untag", "pin", "unpin", "summarize"),
    "Forget, export, back up": ("forget", "move", "export", "backup", "partitions"),
    "Configure, repair": ("config", "doctor", "embed", "db"),
}
#: Words that are not commands, each with the commands that may be meant.
_NOT_COMMANDS = {
    **dict.fromkeys(
        ("list", "ls"), "reservoir view lists messages, reservoir conversations lists conversations"
    ),
    **dict.fromkeys(("show", "cat"), "reservoir view --id N"),
    "history": "reservoir view 20",
    "status": "reservoir stats, or reservoir doctor",
    "get": "reservoir config get KEY",
    "set": "reservoir config set KEY=VALUE",
    "import": "reservoir ingest FILE",
    "add": 'echo "…" | reservoir ingest',
    **dict.fromkeys(("ask", "query"), 'reservoir context "…"'),
    **dict.fromkeys(("delete", "remove", "rm"), "reservoir forget --id N"),
    "find": "reservoir search TERM",
    "grep": "reservoir search --keyword TERM",
    "setup": "reservoir init",
}
MODULES = {
    **dict.fromkeys(("tag", "untag", "pin", "unpin"), "tag_and_pin"),
    "disconnect": "connect",
}
#: The length of the longest name, so that the summaries of all groups are aligned.
_LONGEST = max(map(len, EXAMPLES))


class Commands(UserDict[str, Any]):
    """The commands by name; looking one up imports it."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(EXAMPLES))

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _load(name)
        return self.data[name]


def _load(name: str) -> Any:
    app, epilog = new_app(), f"Example: {EXAMPLES[name]}"
    module = MODULES.get(name, name)
    function = getattr(import_module(f"reservoir_cli.cli.commands.{module}"), name)
    if isinstance(function, typer.Typer):  # a command with subcommands
        app.add_typer(function, name=name, epilog=epilog)
        group = typer.main.get_group(app)
        return group.commands[name]
    app.command(name, epilog=epilog, cls=HelpfulCommand)(function)
    return typer.main.get_command(app)


class CommandGroup(ProgramGroup):
    """The program: a group whose commands are imported on demand."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the program's name; accept ``help`` and ``version`` for options."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, ["--version"] if args[:1] == ["version"] else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names."""
        word, *rest = args
        hint = _NOT_COMMANDS.get(word)
        if rest and rest[0] in EXAMPLES and not similar_names(word, list(EXAMPLES)):
            scope = [] if word == "reservoir" else ["-p", word]
            hint = quote_command([*rest, *scope])
        if hint and word not in EXAMPLES and not ctx.resilient_parsing:
            raise UsageError(f"no such command {word!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with their summaries, by what they are for; a summary the names."""
        if self.shows_summary(ctx):
            with formatter.section("Commands"):
                formatter.write_dl([(title, ", ".join(names)) for title, names in GROUPS.items()])
            return
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(_LONGEST), SUMMARIES[name]) for name in names])
