"""Compute a model's identity, which decides whether vectors are comparable; engines share it."""

import hashlib
import json
from pathlib import Path

from reservoir_cli.embedding import split_passages
from reservoir_cli.embedding.find_model import sha256
from reservoir_cli.embedding.prompts import CONFIG, Prompts

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
