"""``reservoir embed``: give messages their vectors, by this model or another."""

from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.embedding import resolve
from reservoir_cli.retrieval.indexing import EmbeddingState
from reservoir_cli.settings import edit_file
from reservoir_cli.settings.config import Config
from reservoir_cli.util.interrupts import explain_interrupt

_BROKEN_OFF = "broken off; what is embedded stays, and the same command embeds the rest"


def embed(
    ctx: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Change to this model: a name, or a folder."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild all vectors, then use those.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Embed messages that have no embedding yet.

    With --model or --rebuild new vectors are made beside the old ones, which are used until the
    new ones are complete. Broken off, the same command goes on where it was.
    """
    with open_store.open_reservoir(ctx, create=True) as reservoir:
        before, name = reservoir.config, resolve.absolute(model) if model else None
        if name:
            reservoir.use(before.with_flags({"embedding_model": name}))
        with explain_interrupt(console.warn, _BROKEN_OFF):
            done = reservoir.indexer.update(rebuild=rebuild, named=bool(name))
        state = reservoir.indexer.state()
        _say_unfinished(state)
        if name:
            _keep_setting(before, name)
        engine = reservoir.indexer.load_engine() if as_json else reservoir.indexer.engine
    by = f", {engine.kind} engine, weights from the {engine.origin}" if engine else ""
    console.aside(f"embedded {options.counted(done, 'message')}{by}")
    if as_json:
        console.document(
            {
                "embedded": done,
                "model": state.active,
                "engine": engine.kind if engine else None,
                "reason": engine.reason if engine else None,
                "weights": engine.origin if engine else None,
            }
        )


def _say_unfinished(state: EmbeddingState) -> None:
    if state.next:
        console.note(
            f"vectors by {state.next} are not complete, "
            f"{options.counted(state.missing, 'message')} to go: "
            f"reservoir embed --model {state.next}"
        )


def _keep_setting(config: Config, name: str) -> None:
    """Let questions be embedded by the model that the messages are embedded by."""
    value, origin = config.lookup("embedding_model")
    if value == name:
        return
    if origin == "environment":
        console.warn(f"RESERVOIR_EMBEDDING_MODEL names another model: set it to {name}")
        return
    edit_file.edit(config.path, {"embedding_model": name})
    console.note(f"setting embedding_model is {name} from here on")
