"""``reservoir embed``: embed pending messages, or switch to another embedding model."""

import shlex
from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.options import flag, name_option
from reservoir_cli.embedding import find_model
from reservoir_cli.retrieval.embed_messages import EmbeddingState
from reservoir_cli.settings import edit_settings_file
from reservoir_cli.settings.config import Config
from reservoir_cli.util.progress import counted, explain_interrupt

_INTERRUPTED = "interrupted; finished embeddings are kept, and the same command embeds the rest"


def embed(
    ctx: typer.Context,
    model: Annotated[str | None, name_option("Switch to this model: a name or a folder.")] = None,
    rebuild: Annotated[
        bool, flag("--rebuild", "Rebuild all embeddings, then switch to them.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Embed messages that have no embedding yet.

    With --model or --rebuild, new embeddings are built beside the old ones, which stay in use
    until the new ones are complete. Run the command again to resume after an interruption.
    """
    with open_store.open_reservoir(ctx, create=model is not None, change=True) as reservoir:
        before, name = reservoir.config, find_model.absolute(model) if model else None
        if name:
            reservoir.use(before.with_flags({"embedding_model": name}))
        with explain_interrupt(console.warn, _INTERRUPTED):
            embedded = reservoir.indexer.update(rebuild=rebuild, named=bool(name))
        state = reservoir.indexer.state()
        _note_unfinished(state)
        if name:
            _keep_setting(before, name)
        engine = reservoir.indexer.load_engine() if as_json else reservoir.indexer.engine
    by = f", {engine.kind} engine, weights from the {engine.origin}" if engine else ""
    console.aside(f"embedded {counted(embedded, 'message')}{by}")
    if as_json:
        console.document(
            {
                "embedded": embedded,
                "model": state.active,
                "engine": engine.kind if engine else None,
                "reason": engine.reason if engine else None,
                "weights": engine.origin if engine else None,
            }
        )


def _note_unfinished(state: EmbeddingState) -> None:
    if state.next:
        console.note(
            f"the embeddings by {state.next} are not complete, "
            f"{counted(state.missing, 'message')} to go: "
            f"reservoir embed --model {shlex.quote(state.next)}"
        )


def _keep_setting(config: Config, name: str) -> None:
    """Set the model in the settings file, so that questions are embedded by the same model."""
    value, origin = config.lookup("embedding_model")
    if value == name:
        return
    if origin == "environment":
        console.warn(f"RESERVOIR_EMBEDDING_MODEL names another model: set it to {name}")
        return
    edit_settings_file.edit(config.path, {"embedding_model": name})
    console.note(f"the setting embedding_model is {name} from now on")
