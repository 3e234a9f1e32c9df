"""Back up a store to a file, and salvage a damaged store."""

from datetime import datetime
from pathlib import Path

from reservoir_cli.errors import ReservoirError
from reservoir_cli.settings import paths
from reservoir_cli.settings.store_locations import is_on_a_server
from reservoir_cli.storage.properties import UNFINISHED_COPY, refuse_unfinished
from reservoir_cli.storage.sqlite.care.replace_file import count_messages, publish
from reservoir_cli.storage.sqlite.care.salvage import Lost, rescue
from reservoir_cli.storage.store import Store
from reservoir_cli.util.private_files import resolve_path, temporary_folder
from reservoir_cli.util.progress import Progress, counted
from reservoir_cli.util.read_files import suggest_fix


def back_up(store: Store, target: Path, settings: Path, progress: Progress) -> None:
    """Write a consistent copy of a store, atomically, while other processes may write to it."""
    if store.size() is None:
        raise ReservoirError(
            f"there is no store at {store.location}", hint="reservoir ingest creates it"
        )
    try:
        refuse_unfinished(store.get_property(UNFINISHED_COPY), store.location)
        paths.refuse_own_files(target, store.files(), settings)
        if target.is_dir():
            raise ReservoirError(f"{target} is a folder", hint="name a file in it")
        if (
            target.is_file()
            and not store.holdings()["messages"]
            and count_messages(target.absolute())
        ):
            raise ReservoirError(
                f"the store {store.location} is empty, and {target} is not",
                hint="delete that file first, if it should be replaced",
            )
        with publish(target) as unfinished:
            store.copy_to(unfinished, progress)
    except OSError as error:
        raise ReservoirError(
            f"cannot write {target}: {error.strerror}", hint=suggest_fix(error, target)
        ) from None


def describe(path: Path) -> str:
    """Return the size of a file, when it was changed, and how many messages it holds, if any."""
    try:
        state = path.stat()
    except OSError:
        return ""
    size = f"{state.st_size / 1e6:,.1f} MB" if state.st_size >= 1e5 else f"{state.st_size:,} bytes"
    described = f", {size}, changed {datetime.fromtimestamp(state.st_mtime):%Y-%m-%d %H:%M}"
    if path.is_file() and (count := count_messages(path.absolute())) is not None:
        described += f", {counted(count, 'message')}"
    return described


def salvage(location: str, target: Path) -> Lost:
    """Write the readable part of a damaged store to a new store."""
    if is_on_a_server(location):
        raise ReservoirError(
            "a store on a server cannot be salvaged", hint="restore the database from a dump"
        )
    path = resolve_path(Path(location))
    if not path.is_file():
        raise ReservoirError(f"there is no store at {location}", hint="name the store with --db")
    try:
        target = resolve_path(target)
        if target.exists():
            raise ReservoirError(f"{target} already exists", hint="name another file")
        with (
            publish(target) as unfinished,
            temporary_folder(target.parent, f".{target.name}.") as folder,
        ):
            return rescue(path, unfinished, folder)
    except OSError as error:
        raise ReservoirError(
            f"cannot write {target}: {error.strerror}",
            hint=suggest_fix(error, target) or "name a file in a folder with enough room",
        ) from None
