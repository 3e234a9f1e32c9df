"""``reservoir config``: read and change settings."""

import shlex
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from reservoir_cli.cli import console, options
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.errors import UsageError
from reservoir_cli.settings import config as settings
from reservoir_cli.settings import paths
from reservoir_cli.settings.config import Config
from reservoir_cli.settings.schema import SETTINGS
from reservoir_cli.settings.setting import Setting, Value

_USAGE = "reservoir config [get KEY | set KEY=VALUE… | unset KEY… | list | path]"


def _keys(ctx: typer.Context) -> list[str]:
    """Complete the name of a setting."""
    return list(SETTINGS)


def _assignments(ctx: typer.Context) -> list[str]:
    """Complete the name of a setting and the equals sign."""
    return [f"{key}=" for key in _keys(ctx)]


def _words(ctx: typer.Context) -> list[str]:
    """Complete the action, then the names of settings."""
    words = ctx.params.get("words")
    verb = words[0] if words else ""
    if verb in ("list", "path"):
        return []
    if verb:
        return _assignments(ctx) if verb == "set" else _keys(ctx)
    return [*_TAKES, *_keys(ctx)]


def config(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[get KEY | set KEY=VALUE... | unset KEY... | list | path]",
            help="What to do (default: list). KEY alone means get KEY.",
            autocompletion=_words,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="The same as set; repeatable.",
            autocompletion=_assignments,
        ),
    ] = None,
    get: Annotated[
        str | None, typer.Option(metavar="KEY", help="The same as get.", autocompletion=_keys)
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="The same as unset; repeatable.", autocompletion=_keys),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="The same as list.")] = False,
    path: Annotated[bool, typer.Option("--path", help="The same as path.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show or change settings.

    Without arguments it lists every setting with its value and origin. `set` changes several
    settings together or not at all, `unset` restores the default, and `path` prints the path of
    the settings file.
    """
    options.check_one_form(get=get is not None, list=show, path=path, set=bool(changes or unset))
    if words:
        if changes or unset or show or path or get is not None:
            raise UsageError("choose one action", hint=_USAGE)
        changes, unset, get, path = _parse_words(words)
    typed = globals_of(ctx).config
    if changes or unset:
        from reservoir_cli.cli import change_settings  # imports the store's modules

        edits = change_settings.parse_edits(changes or [], unset or [])
        file = _settings_file(typed)
        change_settings.change(ctx, file, edits)
        if as_json:
            console.document({"path": str(file)})
        return
    if path:
        options.warn_of_unknown_variables()
        file = _settings_file(typed)
        _print_value(str(file), {"path": str(file)}, as_json)
        return
    known = options.load_config(ctx)
    if get is not None:
        value, origin = settings.effective_value(known, get)
        text = _format(get, value)
        _print_value(text, {"key": get, "value": value, "origin": origin}, as_json)
    else:
        _print_list(known, as_json)


def _parse_words(words: list[str]) -> tuple[list[str], list[str], str | None, bool]:
    """Parse the arguments: changes, keys to unset, the key to get, and whether to print the path.

    :raises UsageError: they are malformed; the hint is the exact command.
    """
    verb, *rest = words
    if verb == "set" and rest:
        if len(rest) == 2 and not any("=" in word for word in rest):
            _refuse("set takes KEY=VALUE", f"set {rest[0]}={rest[1]}")
        return rest, [], None, False
    if verb == "unset" and rest:
        return [], rest, None, False
    if verb == "get" and len(rest) == 1:
        return [], [], rest[0], False
    if verb in ("list", "path") and not rest:
        return [], [], None, verb == "path"
    if verb in _TAKES:
        raise UsageError(f"{verb} takes {_TAKES[verb]}", hint=_USAGE)
    if verb in _OTHER_VERBS or len(rest) > 1:
        raise UsageError(f"no such command 'config {verb}'", hint=_equivalent(verb, rest))
    if "=" in verb and not rest:
        _refuse("a change needs the word set", f"set {verb}")
    if len(rest) == 1:
        _refuse("a change needs the word set", f"set {verb}={rest[0]}")
    return [], [], verb, False


def _equivalent(verb: str, rest: list[str]) -> str:
    """Return our command for a verb of other programs."""
    if verb not in _OTHER_VERBS:
        return _USAGE
    return shlex.join(["reservoir", "config", _OTHER_VERBS[verb], *rest])


#: Verbs of other programs, each with ours; users may edit the file that `path` prints.
_OTHER_VERBS = {
    **dict.fromkeys(("edit", "open", "file"), "path"),
    **dict.fromkeys(("remove", "delete", "rm", "reset"), "unset"),
    **dict.fromkeys(("show", "ls"), "list"),
    "add": "set",
}
#: The actions, and what each takes.
_TAKES = {
    "get": "one KEY",
    "set": "KEY=VALUE",
    "unset": "KEY",
    "list": "nothing more",
    "path": "nothing more",
}


def _refuse(message: str, command: str) -> NoReturn:
    raise UsageError(message, hint=f"reservoir config {shlex.join(command.split(' ', 1))}")


def _settings_file(typed: Path | None) -> Path:
    """Return the path of the settings file, even if its content is invalid.

    :param typed: the value of ``--config``.
    :raises UsageError: the named file does not exist.
    """
    if typed is not None and not typed.exists():
        return settings.load(typed).path  # raises the error
    return typed or paths.config_file()


def _format(key: str, value: Value) -> str:
    """Return a value of a dotted key as text; keys of folders have no setting."""
    setting = SETTINGS.get(key.rpartition(".")[2], Setting(name=key, kind=str))
    return setting.format(value)


def _print_value(text: str, fields: dict[str, object], as_json: bool) -> None:
    if as_json:
        console.document(fields)
    elif text:
        console.write(text + "\n")


def _print_list(known: Config, as_json: bool) -> None:
    rows = settings.list_settings(known)
    if as_json:
        console.document(
            {
                "path": str(known.path),
                "settings": [
                    {"key": key, "value": value, "origin": origin} for key, value, origin in rows
                ],
            }
        )
        return
    cells = [(key, _format(key, value), origin) for key, value, origin in rows]
    console.table(("setting", "value", "from"), cells)
