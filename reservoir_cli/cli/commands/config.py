"""``reservoir config``: read and change settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import completion, options

if TYPE_CHECKING:
    from reservoir_cli.settings.config import Config


def config(
    ctx: typer.Context,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting; repeatable.",
            autocompletion=completion.assignments,
        ),
    ] = None,
    get: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Print one value.", autocompletion=completion.settings),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Go back to the default; repeatable.",
            autocompletion=completion.settings,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Print all of them (default).")] = False,
    path: Annotated[bool, typer.Option("--path", help="Print where the settings file is.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show or change settings.

    Alone it lists every setting, its value, and where the value comes from.
    """
    from reservoir_cli.cli import console
    from reservoir_cli.settings import config as settings
    from reservoir_cli.settings import file as settings_file
    from reservoir_cli.settings.schema import format_value

    options.one_form(get=get is not None, list=show, path=path, set=bool(changes or unset))
    given = options.globals_of(ctx).config
    if changes or unset:
        file = _file(given)
        settings_file.edit(file, _changes(changes or [], unset or []))
        if as_json:
            console.document({"path": str(file)})
        return
    if path:
        file = _file(given)
        _print_value(str(file), {"path": str(file)}, as_json)
        return
    known = settings.load(given)
    if get is not None:
        value, origin = settings.effective(known, get)
        text = format_value(settings_file.split_key(get)[2], value)
        _print_value(text, {"key": get, "value": value, "origin": origin}, as_json)
    else:
        _print_list(known, as_json)


def _file(given: Path | None) -> Path:
    """The settings file, whatever is wrong in it.

    :raises UsageError: it was named, and is not there.
    """
    from reservoir_cli.settings import config, paths

    if given is not None and not given.exists():
        return config.load(given).path  # it says what is wrong
    return given or paths.config_file()


def _changes(changes: list[str], unset: list[str]) -> dict[str, str | None]:
    from reservoir_cli.settings import file as settings_file

    parsed: dict[str, str | None] = dict.fromkeys(unset)
    for each in changes:
        key, value = settings_file.split_assignment(each)
        parsed[key] = value
    return parsed


def _print_value(text: str, fields: dict[str, object], as_json: bool) -> None:
    from reservoir_cli.cli import console

    if as_json:
        console.document(fields)
    elif text:
        console.write(text + "\n")


def _print_list(known: "Config", as_json: bool) -> None:
    from reservoir_cli.cli import console
    from reservoir_cli.settings import config as settings
    from reservoir_cli.settings.schema import format_value

    rows = settings.listed(known)
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
    shown = [
        (key, format_value(key.rpartition(".")[2], value), origin) for key, value, origin in rows
    ]
    console.table(("setting", "value", "from"), shown)
