"""Making a model ready: opened if it was compiled before, compiled at its first use."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reservoir_cli.embedding import Embedder, Progress, cache
from reservoir_cli.embedding.resolve import Located, check_weights, locate
from reservoir_cli.embedding.safety import require_plain
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.util.files import read_bounded

if TYPE_CHECKING:
    from reservoir_cli.embedding.torch import ReferenceEmbedder

# Before the libraries are loaded: threads of our own share the work, and the tokenizer's would only
# be in their way; and nothing is gathered about the user, in no file in the home folder either.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")

_COMPILING = "compiling the embedding model, which takes some 20 seconds, once"


def load(name: str, *, offline: bool, progress: Progress) -> Embedder:
    """See :func:`reservoir_cli.embedding.load_embedder`."""
    found = locate(name, offline=offline, progress=progress)
    try:
        place = cache.place_of(found.folder)
        return _opened(name, found, place, progress) or _compiled(name, found, place, progress)
    except cache.CacheUnusableError as problem:
        return _reference(name, found, problem.reason, progress)


def damaged(name: str, *, remove: bool) -> bool:
    """See :func:`reservoir_cli.embedding.compiled_is_damaged`."""
    found = locate(name, offline=True, progress=_ignore)
    try:
        place = cache.place_of(found.folder)
        bad = cache.damaged(place)
        if bad and remove:
            cache.remove(place)
        return bad
    except cache.CacheUnusableError:
        return False


def _ignore(*_: object) -> None:
    """Tell nobody."""


def _opened(name: str, found: Located, place: Path, progress: Progress) -> Embedder | None:
    """The model as an earlier start left it; what is damaged is removed."""
    from reservoir_cli.embedding.onnx import CompiledEmbedder

    manifest = cache.read(place)
    if manifest is None:
        return None
    if manifest.refused:
        return _reference(name, found, manifest.refused, progress, manifest.model_id)
    try:
        return CompiledEmbedder(name, place, manifest, found.origin)
    except Exception as error:  # whatever the libraries say of a file, it is of no use
        cache.require_resources(error)
        cache.remove(place)
        return None


def _compiled(name: str, found: Located, place: Path, progress: Progress) -> Embedder:
    """Compile a model and open it; if that fails, the reference is loaded already."""
    from reservoir_cli.embedding.compiler import compile_into

    reference = _reference(name, found, "", progress, doing=_COMPILING)
    reason = "what was compiled is gone again"
    try:
        with cache.building(place) as folder:
            refused = compile_into(folder, reference)
        reason = refused or reason
        if not refused and (opened := _opened(name, found, place, progress)):
            return opened
    except cache.CacheUnusableError as problem:
        reason = problem.reason
    reference.engine = replace(reference.engine, reason=reason)
    return reference


def _require_tokenizer(name: str, found: Located) -> None:
    """Refuse a model whose tokenizer would end the process that loads it.

    :raises ModelUnavailableError: it would.
    """
    file = found.folder / "tokenizer.json"
    if found.origin == "package" or not file.is_file():
        return
    from reservoir_cli.tokens.huggingface import UnloadableError, require_loadable

    try:
        require_loadable(read_bounded(file))
    except (UnloadableError, OSError) as error:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: its tokenizer.json is damaged",
            "download the model again, or choose another",
        ) from error


def _reference(
    name: str,
    found: Located,
    reason: str,
    progress: Progress,
    model_id: str | None = None,
    doing: str = "loading the embedding model",
) -> "ReferenceEmbedder":
    from reservoir_cli.embedding.torch import ReferenceEmbedder

    check_weights(found)
    require_plain(name, found.folder)
    _require_tokenizer(name, found)
    progress(doing, 0, 0)
    return ReferenceEmbedder(name, found, reason, model_id)
