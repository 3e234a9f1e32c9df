"""``reservoir config``: read and change settings."""

import os
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import typer

from reservoir_cli.cli import console, options
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.cli.help import ActionGroup, HelpfulCommand, new_app
from reservoir_cli.cli.options import argument, complete_among, flag, option
from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config as settings
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.settings.setting import Setting, Value

_KEY = "A setting; partitions.P.KEY and models.M.KEY apply to one partition or model."
_keys = complete_among(*SETTINGS)
_assignments = complete_among(*(f"{key}=" for key in SETTINGS))


class _ConfigGroup(ActionGroup):
    """The actions; a key alone means ``get``."""

    other_words: ClassVar = {  # users may edit the file that ``path`` prints
        **dict.fromkeys(("edit", "open", "file"), "path"),
        **dict.fromkeys(("remove", "delete", "rm", "reset"), "unset"),
        **dict.fromkeys(("show", "ls"), "list"),
        "add": "set",
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        key, *rest = args
        if key not in self.commands and key not in self.other_words:
            values = [word for word in rest if not word.startswith("-")]
            if len(values) > 1:
                raise UsageError(f"no such command 'config {key}'", hint=self.usage(ctx))
            if values or "=" in key:
                _refuse("a change needs the word set", "=".join([key, *values]))
            args = ["get", *args]
        return super().resolve_command(ctx, args)


config = new_app(
    cls=_ConfigGroup,
    invoke_without_command=True,
    help="""Show or change settings.

    Alone it lists all settings with their origins; KEY alone means get KEY.
    """,
)
action = partial(config.command, cls=HelpfulCommand)


@config.callback()
def run_option(
    ctx: typer.Context,
    changes: Annotated[
        list[str] | None,
        option("KEY=VALUE", "The same as set; repeatable.", "--set", complete=_assignments),
    ] = None,
    key: Annotated[str | None, option("KEY", "The same as get.", "--get", complete=_keys)] = None,
    removed: Annotated[
        list[str] | None, option("KEY", "The same as unset; repeatable.", "--unset", complete=_keys)
    ] = None,
    show: Annotated[bool, flag("--list", "The same as list.")] = False,
    show_path: Annotated[bool, flag("--path", "The same as path.")] = False,
    as_json: options.Json = False,
) -> None:
    """Run the action that an option names."""
    is_change = bool(changes or removed)
    options.check_one_form(get=key is not None, list=show, path=show_path, set=is_change)
    if ctx.invoked_subcommand:
        if is_change or show or show_path or key is not None:
            raise UsageError("choose one action", hint="reservoir config --help")
    elif is_change:
        _change(ctx, changes or [], removed or [], as_json)
    elif show_path:
        path(ctx, as_json)
    elif key is not None:
        get(ctx, key, as_json)
    else:
        list_(ctx, as_json)


@action(epilog="Example: reservoir config get recent_context_size")
def get(
    ctx: typer.Context,
    key: Annotated[str, argument("KEY", _KEY, complete=_keys)],
    as_json: options.Json = False,
) -> None:
    """Print the value of a setting."""
    value, origin = settings.effective_value(options.load_config(ctx), key)
    fields = {"key": key, "value": value, "origin": origin}
    _print_value(_format(key, value), fields, options.wants_json(ctx, as_json))


@action("set", epilog="Example: reservoir config set partition=work recent_context_size=20")
def set_(
    ctx: typer.Context,
    changes: Annotated[list[str], argument("KEY=VALUE...", _KEY, complete=_assignments)],
    as_json: options.Json = False,
) -> None:
    """Change settings, together or not at all."""
    if len(changes) == 2 and not any("=" in word for word in changes):
        _refuse("set takes KEY=VALUE", "=".join(changes))
    _change(ctx, changes, [], as_json)


@action(epilog="Example: reservoir config unset recent_context_size")
def unset(
    ctx: typer.Context,
    keys: Annotated[list[str], argument("KEY...", _KEY, complete=_keys)],
    as_json: options.Json = False,
) -> None:
    """Restore the defaults of settings."""
    _change(ctx, [], keys, as_json)


@action("list", epilog="Example: reservoir config list --json")
def list_(ctx: typer.Context, as_json: options.Json = False) -> None:
    """List every setting with its value and origin."""
    _print_list(options.load_config(ctx), options.wants_json(ctx, as_json))


@action(epilog='Example: $EDITOR "$(reservoir config path)"')
def path(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Print the path of the settings file."""
    options.warn_of_unknown_variables()
    file = str(_settings_file(globals_of(ctx).config))
    _print_value(file, {"path": file}, options.wants_json(ctx, as_json))


def _change(ctx: typer.Context, changes: list[str], removed: list[str], as_json: bool) -> None:
    from reservoir_cli.cli import change_settings  # imports the store's modules

    edits = change_settings.parse_edits(changes, removed)
    file = _settings_file(globals_of(ctx).config)
    change_settings.change(ctx, file, edits)
    if options.wants_json(ctx, as_json):
        console.document({"path": str(file)})


def _refuse(message: str, assignment: str) -> NoReturn:
    raise UsageError(message, hint=f"reservoir config set {shlex.quote(assignment)}")


def _settings_file(typed: Path | None) -> Path:
    """Return the path of the settings file, even if its content is invalid."""
    if typed is not None and not os.path.exists(typed):  # also False for a name too long
        return settings.load(typed).path  # raises the error
    return typed or paths.config_file()


def _format(key: str, value: Value) -> str:
    """Return a value of a dotted key as text; keys of folders have no setting."""
    setting = SETTINGS.get(key.rpartition(".")[2], Setting(name=key, kind=str))
    return setting.format(value)


def _print_value(text: str, fields: Mapping[str, object], as_json: bool) -> None:
    if as_json:
        console.document(fields)
    elif text:
        console.write(text + "\n")


def _print_list(config: Config, as_json: bool) -> None:
    rows = settings.list_settings(config)
    if as_json:
        console.document(
            {
                "path": str(config.path),
                "settings": [
                    {"key": key, "value": value, "origin": origin} for key, value, origin in rows
                ],
            }
        )
        return
    cells = [(key, _format(key, value), origin) for key, value, origin in rows]
    console.table(("setting", "value", "from"), cells)
