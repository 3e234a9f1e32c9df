"""``reservoir config``: read and change settings."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reservoir_cli.cli import completion, console, nothing_found, options
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.messages import Scope

if TYPE_CHECKING:
    from reservoir_cli.settings.config import Config


_USAGE = "reservoir config [get KEY | set KEY=VALUE… | unset KEY… | list | path]"


def config(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[get KEY | set KEY=VALUE... | unset KEY... | list | path]",
            help="What to do; nothing lists them. KEY alone is get KEY.",
            autocompletion=completion.config_words,
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="The same as set; repeatable.",
            autocompletion=completion.assignments,
        ),
    ] = None,
    get: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The same as get.", autocompletion=completion.settings),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="The same as unset; repeatable.",
            autocompletion=completion.settings,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="The same as list.")] = False,
    path: Annotated[bool, typer.Option("--path", help="The same as path.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show or change settings.

    Alone it lists every setting, its value, and where the value comes from. `set` changes several
    settings together or not at all, `unset` goes back to the default, and `path` prints where the
    settings file is.
    """
    from reservoir_cli.settings import config as settings
    from reservoir_cli.settings.keys import split_key
    from reservoir_cli.settings.schema import format_value

    options.one_form(get=get is not None, list=show, path=path, set=bool(changes or unset))
    if words:
        if changes or unset or show or path or get is not None:
            raise UsageError("name what to do once", hint=_USAGE)
        changes, unset, get, path = _spoken(words)
    given = options.globals_of(ctx).config
    if changes or unset:
        edits = _changes(changes or [], unset or [])
        file = _change(given, edits)
        _say_if_empty(ctx, edits.get("partition"))
        for key in edits:
            if key.rpartition(".")[2] == "redact":
                _count_stored_secrets(ctx, split_key(key)[1])
        if as_json:
            console.document({"path": str(file)})
        return
    if path:
        file = _file(given)
        _print_value(str(file), {"path": str(file)}, as_json)
        return
    known = options.load_config(ctx)
    if get is not None:
        value, origin = settings.effective(known, get)
        text = format_value(split_key(get)[2], value)
        _print_value(text, {"key": get, "value": value, "origin": origin}, as_json)
    else:
        _print_list(known, as_json)


def _spoken(words: list[str]) -> tuple[list[str], list[str], str | None, bool]:
    """Return what words ask for: changes, keys to unset, a key to get, and whether the path.

    :raises UsageError: they are not well formed; the hint is the exact command.
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
    if verb in ("get", "set", "unset", "list", "path"):
        raise UsageError(f"{verb} takes {_TAKES[verb]}", hint=_USAGE)
    if verb in _OTHER_VERBS or len(rest) > 1:
        raise UsageError(f"config cannot {verb}", hint=_ours(verb, rest))
    if "=" in verb and not rest:
        _refuse("a change needs the word set", f"set {verb}")
    if len(rest) == 1:
        _refuse("a change needs the word set", f"set {verb}={rest[0]}")
    return [], [], verb, False


def _ours(verb: str, rest: list[str]) -> str:
    """Return the command that does what a verb of other programs does."""
    if verb not in _OTHER_VERBS:
        return _USAGE
    return shlex.join(["reservoir", "config", _OTHER_VERBS[verb], *rest])


#: Verbs of other programs, each with ours; the file that `path` prints is there to be edited.
_OTHER_VERBS = {
    **dict.fromkeys(("edit", "open", "file"), "path"),
    **dict.fromkeys(("remove", "delete", "rm", "reset"), "unset"),
    **dict.fromkeys(("show", "ls"), "list"),
    "add": "set",
}
_TAKES = {
    "get": "one KEY",
    "set": "KEY=VALUE",
    "unset": "KEY",
    "list": "nothing more",
    "path": "nothing more",
}


def _refuse(what: str, meant: str) -> NoReturn:
    raise UsageError(what, hint=f"reservoir config {shlex.join(meant.split(' ', 1))}")


def _say_if_empty(ctx: typer.Context, partition: str | None) -> None:
    """Say that the partition that is used from now on holds nothing, if others hold something."""
    if partition is None:
        return
    with suppress(ReservoirError), options.open_reservoir(ctx) as reservoir:
        if places := reservoir.lookup.places():
            nothing_found.tell(Scope(partition), places)


def _count_stored_secrets(ctx: typer.Context, partition: str | None) -> None:
    """Say how many messages keep secrets although they are removed from now on."""
    from reservoir_cli.reservoir import Filter

    with suppress(ReservoirError), options.open_reservoir(ctx) as reservoir:
        if reservoir.config.lookup("redact", partition)[0] != "remove":
            return
        if count := len(reservoir.find(Scope(partition), Filter(secrets=True))):
            verb = "holds" if count == 1 else "hold"
            console.note(
                f"{options.counted(count, 'stored message')} {verb} secrets: they are hidden in "
                "what is printed, and not removed; reservoir view 0 --secrets --all-partitions "
                "lists them, reservoir forget --id N deletes one"
            )


def _change(given: Path | None, changes: dict[str, str | None]) -> Path:
    """Change the settings file, and tell of names that are older ones."""
    from reservoir_cli.maintenance.availability import check_changes
    from reservoir_cli.settings import config, edit_file

    file = _file(given)
    if any(text is not None for text in changes.values()):
        check_changes(config.load(given), changes)
    edit_file.edit(file, changes)
    for key, text in changes.items():
        if text is not None and (note := _note(key, text)):
            console.note(note)
    return file


def _note(key: str, text: str) -> str:
    """Describe what an older name of a key stands for."""
    from reservoir_cli.settings.keys import split_written_key
    from reservoir_cli.settings.schema import from_alias, parse_value, setting_of

    written = split_written_key(key)[2]
    if (setting := setting_of(written)) == written:
        return ""
    value = from_alias(written, given := parse_value(written, text, key))
    scale = f", a plain cosine: {value} for {given}" if value != given else ""
    return f"{written} is now called {setting}{scale}"


def _file(given: Path | None) -> Path:
    """Return the settings file, even if its content is wrong.

    :raises UsageError: it was named, and is not there.
    """
    from reservoir_cli.settings import config, paths

    if given is not None and not given.exists():
        return config.load(given).path  # it says what is wrong
    return given or paths.config_file()


def _changes(changes: list[str], unset: list[str]) -> dict[str, str | None]:
    from reservoir_cli.settings.keys import split_assignment

    parsed: dict[str, str | None] = dict.fromkeys(unset)
    for each in changes:
        key, value = split_assignment(each)
        parsed[key] = value
    return parsed


def _print_value(text: str, fields: dict[str, object], as_json: bool) -> None:
    if as_json:
        console.document(fields)
    elif text:
        console.write(text + "\n")


def _print_list(known: "Config", as_json: bool) -> None:
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
