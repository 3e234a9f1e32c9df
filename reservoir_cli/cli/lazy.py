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
