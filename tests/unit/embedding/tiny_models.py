"""Small models with random weights, saved as sentence-transformers saves them."""

import hashlib
import importlib
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reservoir_cli.embedding import Embedder, compiler
from reservoir_cli.embedding.load_model import load_embedder

TinyModel = Callable[..., Path]

TALK = [
    "The cat sleeps on the sofa, and nobody wakes it.",
    "We moved the job queue to Postgres because its backups are simpler!",
    "Why did the deploy fail at night? The worker lost its lease.",
    "def f(x): return x ** 2  # 0123456789",
]
SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


class Exports:
    """The graphs that the real exporter made of small models, each exported once, then copied.

    They are kept for later runs until what exports them changes. One export takes six seconds.
    Models with the same layers and weights have the same graph, whatever their prompts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._export = compiler._export

    def export(self, model: Any, target: Path) -> None:
        """Do what ``compiler._export`` does."""
        stored = self.folder_of(model)
        if not stored.exists():
            unfinished = Path(tempfile.mkdtemp(dir=self._folder))
            self._export(model, unfinished / target.name)
            with suppress(OSError):  # another worker has exported it meanwhile
                unfinished.rename(stored)
        shutil.copytree(stored, target.parent, dirs_exist_ok=True)

    def folder_of(self, model: Any) -> Path:
        digest = hashlib.sha256(f"{model}\n{model[0].auto_model.config}".encode())
        for name, weights in model.state_dict().items():
            digest.update(name.encode() + weights.numpy().tobytes())
        return self._folder / digest.hexdigest()


def load_quietly(name: str | Path) -> Embedder:
    """Load a model without the libraries' output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_embedder(str(name), offline=True, progress=lambda *_: None)


def save(
    folder: Path,
    architecture: str,
    pooling: str,
    prompts: Mapping[str, str] | None,
    options: Mapping[str, Any],
) -> None:
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer

    parts = modules()
    torch.manual_seed(11)
    tokenizer = _tokenizer(options.get("padding_side", "right"))
    config = getattr(transformers, f"{architecture}Config")(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,  # tracing each one takes seconds
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=64,
        max_position_embeddings=140,
        pad_token_id=0,
        # The same settings under the names of other architectures.
        **(
            {"dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 64}
            if "Distil" in architecture
            else {}
        ),
        **({"embedding_size": 16} if architecture in ("Albert", "Electra") else {}),
    )
    model = getattr(transformers, f"{architecture}Model")(config)
    for parameter in model.parameters():  # large weights, so that embeddings differ
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder / "plain")
    tokenizer.save_pretrained(folder / "plain")
    transformer = parts.Transformer(str(folder / "plain"))
    transformer.max_seq_length = 128
    chain: list[Any] = [
        transformer,
        parts.Pooling(32, pooling, include_prompt=options.get("include_prompt", True)),
    ]
    width = 32
    if options.get("dense"):
        chain.append(parts.Dense(width, 24))
        width = 24
    if options.get("layer_norm"):
        chain.append(parts.LayerNorm(width))
    if options.get("normalize"):
        chain.append(parts.Normalize())
    SentenceTransformer(modules=chain, prompts=dict(prompts or {})).save(str(folder))


def modules() -> Any:
    """Return the module classes, whose location depends on the version of sentence-transformers."""
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.modules")
    except ImportError:
        return importlib.import_module("sentence_transformers.models")


def _tokenizer(padding_side: str) -> Any:
    """Return a fast tokenizer of letters and of the words of a short text.

    A trainer would choose other pieces in each process, so that no graph could be kept.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    talk = " ".join(TALK).lower()
    letters = sorted(set(talk) - {" "})
    words = sorted(set(re.findall(r"\w{2,}", talk)))
    pieces = [*SIGNS, *letters, *(f"##{letter}" for letter in letters), *words]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(16)  # as in many published models; the model itself reads more
    tokenizer.enable_padding(length=16)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        padding_side=padding_side,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
