"""The help texts: the same words on a terminal, in a pipe, in the docs and in the man page.

A terminal gets colour. Ranges are told in words where they matter.
"""

import re
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from reservoir_cli.cli import console

if TYPE_CHECKING:
    _Base = TyperCommand
else:
    _Base = object

#: A range as the option parser writes it, such as ``0<=x<=1`` or ``x>=0``.
_RANGE = re.compile(r"(?:; )?(?:\d+<=)?x[<>]=\d+(?:; )?")


class _Helpful(_Base):
    """What commands and groups have in common."""

    def get_help(self, ctx: Any) -> str:
        """Return the whole help text, styled for a terminal."""
        return console.dressed_help(super().get_help(ctx))

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first paragraph; wrap it if it is long, do not cut it."""
        return " ".join((self.help or "").split("\n\n")[0].split())

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line; required parameters have no braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def records(self, ctx: Any, kind: str | None = None) -> list[tuple[str, str]]:
        """Arguments and options as they are written, each with what it does.

        :param kind: only ``argument`` or ``option``.
        """
        found = [each for each in self.get_params(ctx) if kind in (None, each.param_type_name)]
        shown = [record for each in found if (record := each.get_help_record(ctx))]
        return [(words, _RANGE.sub("", about).removesuffix("  []")) for words, about in shown]


def _be_quiet(ctx: Any, option: object, wanted: bool) -> None:
    if wanted:
        console.be_quiet(wanted)


class HelpfulCommand(_Helpful, TyperCommand):
    """A command. It takes ``--quiet``, as the program itself does before the command."""

    def __init__(self, *names: Any, params: list[Any] | None = None, **attributes: Any) -> None:
        quiet = TyperOption(
            param_decls=["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_be_quiet,
            help="Print no notes and no summary.",
        )
        super().__init__(*names, params=[*(params or ()), quiet], **attributes)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            if records := self.records(ctx, kind):
                with formatter.section(title):
                    formatter.write_dl(records)


class HelpfulGroup(_Helpful, TyperGroup):
    """A group of commands. Without a command it prints its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help if nothing is typed."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            console.write(ctx.get_help() + "\n")
            ctx.exit()
        return super().parse_args(ctx, args)
