"""Small models with random weights, and the folder that compiled ones go to."""

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reservoir_cli.embedding import Embedder, load_embedder

TinyModel = Callable[..., Path]

TALK = [
    "The cat sleeps on the sofa, and nobody wakes it.",
    "We moved the job queue to Postgres because its backups are simpler!",
    "Why did the deploy fail at night? The worker lost its lease.",
    "def f(x): return x ** 2  # 0123456789",
]
SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def quietly(name: str | Path) -> Embedder:
    """Load a model; what the libraries say meanwhile is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_embedder(str(name), offline=True, progress=lambda *_: None)


@pytest.fixture
def models_folder() -> Path:
    """Where this test's home keeps compiled models; it is not there yet."""
    return Path(os.environ["RESERVOIR_HOME"]) / "cache" / "models"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Build a model of two small layers, once for each set of arguments; its folder."""
    built: dict[str, Path] = {}

    def build(
        architecture: str = "Bert",
        pooling: str = "mean",
        prompts: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Path:
        key = repr((architecture, pooling, prompts, more))
        if key not in built:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                folder = tmp_path_factory.mktemp("tiny")
                _save(folder, architecture, pooling, prompts, more)
            built[key] = folder
        return built[key]

    return build


def _save(
    folder: Path,
    architecture: str,
    pooling: str,
    prompts: Mapping[str, str] | None,
    more: Mapping[str, Any],
) -> None:
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

    torch.manual_seed(7)
    tokenizer = _tokenizer(more.get("padding_side", "right"))
    config = getattr(transformers, f"{architecture}Config")(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=64,
        max_position_embeddings=140,
        pad_token_id=0,
        # The same under the names that some architectures have for them.
        **(
            {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
            if "Distil" in architecture
            else {}
        ),
        **({"embedding_size": 16} if architecture in ("Albert", "Electra") else {}),
    )
    model = getattr(transformers, f"{architecture}Model")(config)
    for parameter in model.parameters():  # large weights, so that texts are far apart
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder / "plain")
    tokenizer.save_pretrained(folder / "plain")
    transformer = Transformer(str(folder / "plain"))
    transformer.max_seq_length = 128
    modules: list[Any] = [
        transformer,
        Pooling(32, pooling, include_prompt=more.get("include_prompt", True)),
    ]
    width = 32
    if more.get("dense"):
        modules.append(Dense(width, 24))
        width = 24
    if more.get("layer_norm"):
        modules.append(LayerNorm(width))
    if more.get("normalize"):
        modules.append(Normalize())
    SentenceTransformer(modules=modules, prompts=dict(prompts or {})).save(str(folder))


def _tokenizer(padding_side: str) -> Any:
    """A fast tokenizer of word pieces, trained on a little talk."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(TALK, trainers.WordPieceTrainer(vocab_size=200, special_tokens=SIGNS))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.enable_truncation(16)  # as many are published; the model reads more
    made.enable_padding(length=16)
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        padding_side=padding_side,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
