"""The compiled engine: ONNX Runtime and the model's own tokenizer, without torch."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reservoir_cli.embedding import Engine
from reservoir_cli.embedding.cache import Manifest
from reservoir_cli.embedding.passages import QUESTION, Span, cut
from reservoir_cli.embedding.tokenizer import pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL, WEIGHTS, TOKENIZER = "model.onnx", "model.bin", "tokenizer.json"
#: Padded word pieces of a batch. Each thread has a batch of its own; twice as many pieces take
#: a twentieth longer, since they leave the processor's caches.
BATCH_PIECES = 500
#: Texts that are cut into word pieces at once.
_TEXTS_AT_ONCE = 1_024
#: Each thread holds some 50 MB while it works.
_MOST_THREADS = 8


class CompiledEmbedder:
    """An :class:`~reservoir_cli.embedding.Embedder` on ONNX Runtime.

    One session serves one question and many messages: it computes in the thread that calls it,
    and so many threads call it for many messages as there are processors.
    """

    def __init__(self, name: str, folder: Path, manifest: Manifest, origin: str) -> None:
        """Open what lies in a folder; whatever the libraries raise means that it is damaged."""
        from tokenizers import Tokenizer

        self.name = name
        self.model_id = manifest.model_id
        self.dimensions = manifest.dimensions
        self.engine = Engine("compiled", "compiled here, and found equal to the reference", origin)
        self._manifest = manifest
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._session = _session(folder / MODEL)
        self._inputs = [each.name for each in self._session.get_inputs()]

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._encoded([self._manifest.query_prompt + text[:QUESTION]]).reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._encoded([self._manifest.document_prompt + text for text in texts])

    def passages(self, text: str) -> list[Span]:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return cut(text, pieces(self._tokenizer, text), self._manifest.passage_pieces)

    def _encoded(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        read = [
            np.array(each.ids, np.int64)
            for start in range(0, len(texts), _TEXTS_AT_ONCE)
            for each in self._tokenizer.encode_batch(list(texts[start : start + _TEXTS_AT_ONCE]))
        ]
        vectors = np.empty((len(texts), self.dimensions), np.float32)

        def embed(places: list[int]) -> None:
            vectors[places] = self._run([read[place] for place in places])

        _each(embed, batches([len(each) for each in read]))
        return vectors

    def _run(self, texts: Sequence["NDArray[np.int64]"]) -> "NDArray[np.float32]":
        """The vectors of texts that are padded together, shape (len(texts), dimensions)."""
        import numpy as np

        width = max(len(each) for each in texts)
        ids = np.full((len(texts), width), self._manifest.pad_id, np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(texts):
            start = width - len(each) if self._manifest.pads_left else 0
            ids[row, start : start + len(each)] = each
            mask[row, start : start + len(each)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (vectors,) = self._session.run(None, {name: given[name] for name in self._inputs})
        return np.asarray(vectors, np.float32)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group texts of like length, the longest first, so that little padding is computed.

    :param lengths: word pieces of each text.
    :returns: places of texts; a group is padded to no more than 500 pieces, or is one text.
    """
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if group and lengths[group[0]] * (len(group) + 1) > BATCH_PIECES:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _each(work: Callable[[list[int]], None], groups: Iterator[list[int]]) -> None:
    """Work through groups, on all processors if there is more than one group."""
    first, second = next(groups, None), next(groups, None)
    if first is None:
        return
    if second is None:
        work(first)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_threads()) as pool:
        for _ in pool.map(work, [first, second, *groups]):
            pass


def _threads() -> int:
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(own or 1, _MOST_THREADS)


def _session(model: Path) -> Any:
    """Open a model that is optimised already, its weights mapped and not copied."""
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
