"""The help texts: the same words on a terminal, in a pipe, in the docs and in the man page.

A terminal gets colour. Ranges are told in words where they matter.
"""

import re
from typing import TYPE_CHECKING

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
else:
    Command = object

#: A range as the option parser writes it, such as ``0<=x<=1`` or ``x>=0``.
_RANGE = re.compile(r"(?:; )?(?:\d+<=)?x[<>]=\d+(?:; )?")


class _Helpful(Command):
    """What commands and groups have in common."""

    def get_help(self, ctx: "Context") -> str:
        """The whole help text, dressed if a terminal shows it."""
        from reservoir_cli.cli import output

        return output.dressed_help(super().get_help(ctx))

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first paragraph; one that is long is wrapped, not cut."""
        return " ".join((self.help or "").split("\n\n")[0].split())

    def collect_usage_pieces(self, ctx: "Context") -> list[str]:
        """The usage line; what is required stands there without braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class HelpfulCommand(_Helpful, TyperCommand):
    """A command."""

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Arguments, then options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if record := each.get_help_record(ctx):
                words, about = record
                told = _RANGE.sub("", about).removesuffix("  []")
                sections.setdefault(each.param_type_name, []).append((words, told))
        for name in ("argument", "option"):
            if records := sections.get(name):
                with formatter.section(f"{name.capitalize()}s"):
                    formatter.write_dl(records)


class HelpfulGroup(_Helpful, TyperGroup):
    """A group of commands."""
