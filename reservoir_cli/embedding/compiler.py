"""Compile a model: export it from torch, optimise it, and compare it with the reference.

This happens on the first use of a model and takes about ten seconds and 600 MB of libraries.
"""

import errno
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.embedding.compiled_models import Manifest, tool_versions, write_manifest
from reservoir_cli.embedding.embedder import Engine
from reservoir_cli.embedding.onnx import MODEL, WEIGHTS, CompiledEmbedder, save_tokenizer
from reservoir_cli.embedding.torch import ReferenceEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch.nn import Module

#: The lowest accepted cosine between vectors of a compiled model and of the reference.
_AGREEMENT = 0.9999
#: The kinds of modules that the compiled graph can contain.
_MODULES = {"Transformer", "Pooling", "Dense", "LayerNorm", "Normalize"}
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_EXPORTED = "exported.onnx"
_FEW = 4  #: How many samples the reference embeds at once.

#: Texts whose vectors are compared: short and long, in many scripts, with code and symbols.
SAMPLES = (
    "a",
    "?",
    "Yes.",
    "  spaces   before and behind  ",
    "Why did we drop Redis?",
    "The cat sleeps on the sofa.",
    "We moved the job queue to Postgres, because its backups are simpler.",
    "line one\nline two\r\n\ttabbed line three",
    "def f(x: int) -> int:\n    return x**2 + 1  # square\n",
    "SELECT name, COUNT(*) FROM users WHERE age >= 18 GROUP BY name;",
    '{"key": [1, 2.5, null, true], "other": "value"}',
    "https://example.org/a/path?query=1&other=two#part",
    "2026-05-09T12:00:00+00:00 ERROR worker[17]: timed out after 30.5 s",
    "ALL CAPITALS, and CamelCaseWords, and snake_case_words",
    "naïve café, Straße, ångström, señor, œuvre",
    "Η ουρά εργασιών χάθηκε τη νύχτα",  # noqa: RUF001 - it is Greek
    "Вчера очередь задач потеряла сообщения",
    "התור איבד הודעות אתמול בלילה",
    "فقدت قائمة الانتظار الرسائل الليلة الماضية",
    "कल रात कतार ने संदेश खो दिए",
    "เมื่อคืนคิวงานทำข้อความหาย",
    "数据库昨天很慢，我们重启了它。",  # noqa: RUF001 - it is Chinese
    "昨夜、ジョブキューがメッセージを失いました。",
    "어젯밤 작업 대기열이 메시지를 잃어버렸습니다",
    "🧑‍🚀 🚀 👍🏽 🇺🇳 ❤️",
    "∑ᵢ xᵢ² ≤ ∫₀¹ f(t) dt ⇒ ∀ε>0 ∃δ",
    "zero\u200bwidth, soft\u00adhyphen, combining e\u0301, non\u00a0breaking",
    "supercalifragilisticexpialidocious" * 4,
    "0123456789" * 12,
    "The deploy failed at night and nobody was watching. " * 6,
    "queue " * 150,
    "The worker lost its lease, and the message was delivered a second time. " * 60,
)


class NotCompilableError(Exception):
    """A model cannot be compiled, or the result differs from the reference."""


def compile_into(
    folder: Path, reference: ReferenceEmbedder, report: Callable[[int], None] = lambda _: None
) -> str:
    """Compile a model, or record why that is not possible.

    :param report: called with the completed share of the work, in percent; loading the reference
        counts as the first part.
    :returns: why the model cannot be compiled, or an empty string.
    """
    try:
        manifest = _compile(folder, reference, report)
    except NotCompilableError as error:
        for path in folder.iterdir():
            path.unlink()
        manifest = Manifest(reference.model_id, str(error), tool_versions())
    write_manifest(folder, manifest)
    return manifest.refused


def _compile(folder: Path, reference: ReferenceEmbedder, report: Callable[[int], None]) -> Manifest:
    if reason := _find_obstacle(reference):
        raise NotCompilableError(reason)
    report(35)
    # Run the reference first: tokenizing in parallel before torch's first run slows torch down.
    expected = _embed_with_reference(reference)
    report(40)
    with _suppress_logs():
        _export(reference.model, folder / _EXPORTED)
        report(90)
        _optimise(folder)
    for path in folder.glob(f"{_EXPORTED}*"):
        path.unlink()
    assert reference.tokenizer is not None
    vocabulary = save_tokenizer(reference.tokenizer, folder)
    manifest = _build_manifest(reference)._replace(vocabulary=vocabulary)
    report(95)
    _require_agreement(folder, manifest, expected)
    return manifest


def _find_obstacle(reference: ReferenceEmbedder) -> str:
    model, first = reference.model, next(iter(reference.model))
    kinds = [type(module).__name__ for module in model]
    foreign = [kind for kind in kinds if kind not in _MODULES]
    special = ("query_length", "document_length", "query_expansion")
    obstacles = {
        f"it has a module {', '.join(foreign)}": foreign,
        "its first module is not a transformer": kinds[0] != "Transformer",
        "it has no fast tokenizer": reference.tokenizer is None,
        "it takes chat messages instead of texts": "message"
        in getattr(first, "modality_config", {}),
        "it treats questions and texts differently": any(getattr(first, n, None) for n in special),
        "its pooling excludes the prompt": any(
            getattr(module, "include_prompt", True) is False for module in model
        ),
        "its vectors are truncated": model.truncate_dim is not None,
    }
    return next((reason for reason, holds in obstacles.items() if holds), "")


def _embed_with_reference(reference: ReferenceEmbedder) -> "NDArray[np.float32]":
    """Embed the samples with the reference; see :func:`_embed_samples`."""
    import numpy as np
    import torch

    threads, prompts = torch.get_num_threads(), reference.prompts
    torch.set_num_threads(1)
    try:
        messages = np.concatenate(
            [
                reference.encode_documents(SAMPLES[n : n + _FEW])
                for n in range(0, len(SAMPLES), _FEW)
            ]
        )
        if prompts.query == prompts.document:
            return np.concatenate([messages, messages])
        questions = np.stack([reference.encode_query(text) for text in SAMPLES])
        return np.concatenate([questions, messages])
    finally:
        torch.set_num_threads(threads)


def _embed_samples(embedder: CompiledEmbedder) -> "NDArray[np.float32]":
    import numpy as np

    questions = np.stack([embedder.encode_query(text) for text in SAMPLES])
    return np.concatenate([questions, embedder.encode_documents(SAMPLES)])


def _export(model: Any, target: Path) -> None:
    """Export a model with all its modules as one graph, for any batch size and length.

    Attention is exported as basic operations: the exporter guards torch's fused attention against
    rows of padding only, which makes long texts a sixth slower.
    """
    import torch

    features = model.preprocess(["two texts of", "different lengths, so that one is padded"])
    names = [name for name in _INPUTS if name in features]
    shape = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    transformer = model[0].auto_model
    usual = transformer.config._attn_implementation
    try:
        transformer.set_attn_implementation("eager")
        with torch.no_grad():
            program = torch.onnx.export(
                _as_one_module(model, names).eval(),
                tuple(features[name] for name in names),
                dynamo=True,
                verbose=False,
                dynamic_shapes=((shape,) * len(names),),
                input_names=names,
                output_names=["vectors"],
            )
    except Exception as error:  # the exporter raises errors of any type
        raise NotCompilableError(f"it cannot be exported: {type(error).__name__}") from error
    finally:
        transformer.set_attn_implementation(usual)
    assert program is not None
    program.save(target, external_data=True)


def _as_one_module(model: Any, names: Sequence[str]) -> "Module":
    """Return all modules of a ``SentenceTransformer``, plus normalisation, as one module."""
    import torch

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stages = torch.nn.ModuleList(list(model))

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            features: dict[str, Any] = dict(zip(names, inputs, strict=True))
            for stage in self.stages:
                features = stage(features)
            vectors: torch.Tensor = features["sentence_embedding"]
            return torch.nn.functional.normalize(vectors, p=2, dim=1)

    return Whole()


def _optimise(folder: Path) -> None:
    import onnxruntime

    size = sum(path.stat().st_size for path in folder.glob(f"{_EXPORTED}*"))
    if shutil.disk_usage(folder).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / MODEL)
    options.log_severity_level = 4
    external = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{external}_file_name", WEIGHTS)
    options.add_session_config_entry(f"{external}_min_size_in_bytes", "8192")
    try:
        onnxruntime.InferenceSession(
            str(folder / _EXPORTED), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the runtime's errors have no common base class
        raise NotCompilableError(f"ONNX Runtime refuses it: {type(error).__name__}") from error


def _build_manifest(reference: ReferenceEmbedder) -> Manifest:
    tokenizer, prompts = reference.model.tokenizer, reference.prompts
    return Manifest(
        model_id=reference.model_id,
        refused="",
        tools=tool_versions(),
        dimensions=reference.dimensions,
        max_length=reference.max_length,
        passage_pieces=reference.passage_pieces,
        query_prompt=prompts.query,
        document_prompt=prompts.document,
        pad_id=tokenizer.pad_token_id or 0,
        pads_left=tokenizer.padding_side == "left",
    )


def _require_agreement(folder: Path, manifest: Manifest, expected: "NDArray[np.float32]") -> None:
    import numpy as np

    try:
        vectors = _embed_samples(CompiledEmbedder("", folder, manifest, Engine("compiled", "", "")))
    except Exception as error:  # as above
        raise NotCompilableError(f"ONNX Runtime cannot run it: {type(error).__name__}") from error
    cosines = np.sum(vectors * expected, axis=1)
    if not np.all(cosines >= _AGREEMENT):  # also False for NaN
        raise NotCompilableError("its compiled form computes different vectors")


@contextmanager
def _suppress_logs() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
