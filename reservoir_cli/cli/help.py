"""The classes of commands and groups, which read words that the option parser would misunderstand.

Help texts are the same for terminals, pipes, the docs and the man page.

``-h`` fits a screen of 24 lines: of the options in a panel (``rich_help_panel``) it has the names.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from reservoir_cli.cli import console
from reservoir_cli.cli.mistyped_commands import replace_words
from reservoir_cli.errors import UsageError
from reservoir_cli.util.unicode_text import similar_names

if TYPE_CHECKING:
    _Base = TyperCommand
else:
    _Base = object

#: A range as the option parser writes it, such as ``0<=x<=1`` or ``x>=0``.
_RANGE = re.compile(r"(?:; )?(?:\d+<=)?x[<>]=\d+(?:; )?")
#: The key in ``ctx.meta`` that asks for a help text of one screen.
_SUMMARY = "reservoir_cli.help.summary"
_HELP = ("-h", "--help")
#: Stands for a hyphen while texts are wrapped, so that no option or name is divided at one.
_HYPHEN = "\u2011"
#: Dashes that editors and web pages show in place of one or two hyphens, and a word that begins
#: with one: its beginning, the name and perhaps a value.
_DASHES = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_DASHED = rf"(?s)(?=-?[{_DASHES}])[-{_DASHES}]+([A-Za-z][\w-]*)(=.*)?"


class _Helpful(_Base):
    """The help formatting that commands and groups share; they also accept ``-p=work``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parameters = self.get_params(ctx)
        if not ctx.resilient_parsing:
            _refuse_dashes(args, parameters)
        names = {parameter.name for parameter in parameters}
        if "explain_all" in names:
            args = _join_explain_all(args)
        if "hooks_mcp" in names:  # an option with and without a value would take the next word
            args = ["--hooks-mcp" if word == "--hooks=mcp" else word for word in args]
        split = split_short_options(parameters, args, interspersed=ctx.allow_interspersed_args)
        return super().parse_args(ctx, list(split))

    def get_help(self, ctx: Any) -> str:
        return console.style_help(super().get_help(ctx).replace(_HYPHEN, "-"))

    def shows_summary(self, ctx: Any) -> bool:
        return bool(ctx.meta.get(_SUMMARY))

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def get_short_help_str(self, limit: int = 45) -> str:
        return " ".join((self.help or "").split("\n\n")[0].split())

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        about = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            about = about.split("\n\n")[0] if self.shows_summary(ctx) else about
            formatter.write_text(about.replace("-", _HYPHEN))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.epilog:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(self.epilog.replace("-", _HYPHEN))

    def records(self, ctx: Any) -> list[tuple[str, str]]:
        return _records(ctx, self.get_params(ctx))

    def write_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[Any]] = {"Options": []}
        params: list[Any] = self.get_params(ctx)
        for param in params:
            if param.param_type_name == "option" and not param.hidden:
                panels.setdefault(param.rich_help_panel or "Options", []).append(param)
        if self.shows_summary(ctx):
            usual = panels.pop("Options")
            rare = [param.opts[-1] for others in panels.values() for param in others]
            panels = {"Options": [param for param in usual if param.opts[-1] not in _HELP]}
        for title, parameters in panels.items():
            _write_section(formatter, title, _records(ctx, parameters))
        if self.shows_summary(ctx):
            more = f"{ctx.command_path} --help says more"
            more += f", also about {', '.join(rare)}." if rare else "."
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(more.replace("-", _HYPHEN))


def _records(ctx: Any, params: Iterable[Any]) -> list[tuple[str, str]]:
    pairs = [record for param in params if (record := param.get_help_record(ctx))]
    return [(syntax, _RANGE.sub("", about).removesuffix("  []")) for syntax, about in pairs]


def _write_section(formatter: Any, title: str, records: list[tuple[str, str]]) -> None:
    if records:
        with formatter.section(title):
            formatter.write_dl([(words, about.replace("-", _HYPHEN)) for words, about in records])


def _show_summary(ctx: Any, option: object, is_set: bool) -> None:
    ctx.meta[_SUMMARY] = is_set
    _show_help(ctx, option, is_set)


def _summary_option() -> TyperOption:
    return TyperOption(
        param_decls=["-h"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_summary,
        help="Show a summary and exit.",
    )


def _show_help(ctx: Any, _option: object, is_set: bool) -> None:
    if is_set and not ctx.resilient_parsing:
        console.write(ctx.get_help() + "\n", styled=True)
        ctx.exit()


def _quiet_option() -> TyperOption:
    return TyperOption(
        param_decls=["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, option, is_set: console.be_quiet(is_set),
        help="Print no notes or summaries.",
    )


class HelpfulCommand(_Helpful, TyperCommand):
    """A command; it accepts ``--quiet``, as the program does before the command."""

    def __init__(self, *names: Any, params: list[Any] | None = None, **attributes: Any) -> None:
        params = [*(params or ()), _quiet_option(), _summary_option()]
        super().__init__(*names, params=params, **attributes)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and of options."""
        arguments = [] if self.shows_summary(ctx) else _arguments(self)
        _write_section(formatter, "Arguments", _records(ctx, arguments))
        self.write_options(ctx, formatter)


class HelpfulGroup(_Helpful, TyperGroup):
    """A group of commands; without a command it prints its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help if there are no arguments."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            _show_help(ctx, None, True)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the section of options, and the commands."""
        if not self.shows_summary(ctx):
            self.write_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class ProgramGroup(HelpfulGroup):
    """The program itself; without a command it prints the summary of its help."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        super().__init__(params=[*(params or ()), _summary_option()], **attributes)

    def get_summary(self, ctx: Any) -> str:
        """Return the help text that fits a screen."""
        ctx.meta[_SUMMARY] = True
        return self.get_help(ctx)


class ActionGroup(HelpfulGroup):
    """A command with actions, which does something without one, too."""

    #: Words of other programs, each with the action that is meant.
    other_words: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *names: Any, params: list[Any] | None = None, **attributes: Any) -> None:
        super().__init__(*names, params=[*(params or ()), _quiet_option()], **attributes)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the action that the first word names."""
        word = args[0]
        if word not in self.commands and not ctx.resilient_parsing:
            near = self.other_words.get(word) or next(
                iter(similar_names(word, list(self.commands))), ""
            )
            hint = replace_words({word: near}) if near else self.usage(ctx)
            raise UsageError(f"no such command '{self.name} {word}'", hint=hint)
        return super().resolve_command(ctx, args)

    def usage(self, ctx: Any) -> str:
        """Return all actions and what they take."""
        actions = (
            " ".join([name, *(parameter.make_metavar(ctx) for parameter in _arguments(command))])
            for name, command in self.commands.items()
        )
        return f"{ctx.command_path} [{' | '.join(actions)}]"


def _arguments(command: Any) -> Iterable[Any]:
    return (param for param in command.params if param.param_type_name == "argument")


def split_short_options(
    parameters: Iterable[Any], words: list[str], *, interspersed: bool
) -> Iterator[str]:
    """Yield the words without the equals sign in ``-p=work``: the parser would read ``=work``.

    :param interspersed: whether options may follow arguments.
    """
    options = {name: option for option in parameters for name in option.opts}
    rest = iter(words)
    for word in rest:
        if word == "--" or not (interspersed or word.startswith("-")):
            yield from (word, *rest)
            return
        end = _end_of_option(word, options)
        if word[:2] != "--" and end and word[end:].startswith("="):
            yield from (word[:end], word[end + 1 :])
        else:
            yield word
            if end == len(word):
                yield from islice(rest, 1)  # its value, which may look like an option


def _end_of_option(word: str, options: dict[str, Any]) -> int:
    """Return where the value of the last option in a word such as ``-qp`` begins; 0 for none."""
    if word.startswith("--"):
        return len(word) if _takes_value(options.get(word)) else 0
    for end, letter in enumerate(word[1:] if word.startswith("-") else "", 2):
        if f"-{letter}" not in options:
            return 0
        if _takes_value(options[f"-{letter}"]):
            return end
    return 0


def _takes_value(option: Any) -> bool:
    return option is not None and not (option.is_flag or option.count)


def _join_explain_all(args: list[str]) -> list[str]:
    """Make ``--explain all`` one option, but only at the end: a question may follow it."""
    joined = list(args)
    for index, word in enumerate(args[:-1]):
        if word == "--":
            break
        is_last = index + 2 == len(args) or args[index + 2].startswith("-")
        if word == "--explain" and args[index + 1] == "all" and is_last:
            joined[index + 1] = "--explain-all"
    return joined


def _refuse_dashes(words: Sequence[str], parameters: Iterable[Any]) -> None:
    """Refuse options with dashes of web pages; other words, as of a question, are left alone.

    :raises UsageError: the hint is the command with hyphens.
    """
    words = words[: words.index("--") if "--" in words else None]
    unusual = (word for word in words if not word.isascii())
    dashed = [match for word in unusual if (match := re.fullmatch(_DASHED, word))]
    names = {name for parameter in parameters for name in parameter.opts} if dashed else ()
    meant = {
        match[0]: f"{option}{match[2] or ''}"
        for match in dashed
        if (option := f"{'-' if len(match[1]) == 1 else '--'}{match[1]}") in names
    }
    if meant:
        first = next(iter(meant))
        raise UsageError(f"{first!r} begins with a dash that is not a hyphen", replace_words(meant))


def new_app(**attributes: Any) -> typer.Typer:
    """Return an application whose help and completion are ours."""
    return typer.Typer(
        rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, **attributes
    )
