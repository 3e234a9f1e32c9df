"""What makes vectors comparable: two engines that run one model give it one identity."""

import hashlib
import json
from pathlib import Path

from reservoir_cli.embedding import passages
from reservoir_cli.embedding.resolve import sha256

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
#: The same model for other runtimes.
_COPIES = {"onnx", "openvino"}
#: Files that change no vector.
_IGNORED = {"data_config.json", "tokenizer_config.json", "special_tokens_map.json"}


def model_files(folder: Path) -> list[Path]:
    """The files that a model consists of, in a fixed order."""
    found = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    return [path for path in found if path.parent.name not in _COPIES and path.is_file()]


def model_identity(folder: Path) -> str:
    """Identity of a model's vectors: weights, tokenizer, pooling, prompts, and passage rule.

    It depends on nothing but the files, so every engine gives the same.
    """
    digest = hashlib.sha256(passages.RULE.encode())
    for path in model_files(folder):
        if path.name in _IGNORED:
            continue
        digest.update(path.relative_to(folder).as_posix().encode())
        if path.name == "config_sentence_transformers.json":
            # Its version numbers change nothing; its prompts do.
            known = json.loads(path.read_text(encoding="utf-8"))
            prompts = {key: known.get(key) for key in ("prompts", "default_prompt_name")}
            digest.update(json.dumps(prompts, sort_keys=True).encode())
        else:
            digest.update(bytes.fromhex(sha256(path)))
    return digest.hexdigest()[:32]  # every vector's row carries it
