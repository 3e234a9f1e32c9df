"""The compiled engine: ONNX Runtime and the model's own tokenizer, without torch."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from reservoir_cli.embedding.compiled_models import Manifest
from reservoir_cli.embedding.embedder import Embedder, Engine
from reservoir_cli.embedding.split_passages import QUESTION, Span, cut, pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

MODEL, WEIGHTS, TOKENIZER = "model.onnx", "model.bin", "tokenizer.json"
VOCABULARY = "vocab.txt"  #: The word pieces of a tokenizer whose own file lacks them, a line each.
#: The most padded word pieces of a batch. Each thread works on its own batch; batches twice as
#: large are 5% slower, because they no longer fit the processor's caches.
BATCH_PIECES = 500
_TEXTS_AT_ONCE = 1_024  #: How many texts are tokenized at once.
_MOST_THREADS = 8  #: Limits memory: each thread uses about 20 MB.


class CompiledEmbedder(Embedder):
    """An :class:`~reservoir_cli.embedding.Embedder` on ONNX Runtime.

    One session serves single questions and many messages: it computes in the calling thread, and
    messages are embedded in one thread per processor.
    """

    def __init__(self, name: str, folder: Path, manifest: Manifest, engine: Engine) -> None:
        import tokenizers  # noqa: F401 - before the model is opened, since imports block each other

        opening = _Opening(folder / MODEL)
        self.name = name
        self.model_id = manifest.model_id
        self.dimensions = manifest.dimensions
        self.engine = engine
        self._manifest, self._threads = manifest, _threads()
        self._model = folder / MODEL
        try:
            self._tokenizer = _load_tokenizer(folder, manifest.vocabulary)
        finally:
            self._session = opening.result()
        self._inputs = [node.name for node in self._session.get_inputs()]

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        return self._encode([self._manifest.query_prompt + text[:QUESTION]]).reshape(-1)

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        return self._encode([self._manifest.document_prompt + text for text in texts])

    def pack(self) -> None:
        """Prepare for many questions: halves the time of each, and takes as long as ten of them.

        From then on messages are embedded in one thread, in parallel with questions.
        """
        self._threads = 1
        with suppress(Exception):  # if the file is gone, keep the present session
            self._session = _session(self._model, packed=True)

    def passages(self, text: str) -> list[Span]:
        return cut(text, pieces(self._tokenizer, text), self._manifest.passage_pieces)

    def knows(self, word: str) -> bool:
        return len(pieces(self._tokenizer, word)) == 1

    def _encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        tokenized = [
            np.array(encoding.ids, np.int64)
            for start in range(0, len(texts), _TEXTS_AT_ONCE)
            for encoding in self._tokenizer.encode_batch(
                list(texts[start : start + _TEXTS_AT_ONCE])
            )
        ]
        vectors = np.empty((len(texts), self.dimensions), np.float32)

        def embed(batch: list[int]) -> None:
            vectors[batch] = self._run_model([tokenized[index] for index in batch])

        _run_batches(embed, batches([len(ids) for ids in tokenized]), self._threads)
        return vectors

    def _run_model(self, texts: Sequence["NDArray[np.int64]"]) -> "NDArray[np.float32]":
        import numpy as np

        width = max(len(text) for text in texts)
        ids = np.full((len(texts), width), self._manifest.pad_id, np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(texts):
            start = width - len(text) if self._manifest.pads_left else 0
            ids[row, start : start + len(text)] = text
            mask[row, start : start + len(text)] = 1
        features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (vectors,) = self._session.run(None, {name: features[name] for name in self._inputs})
        return np.asarray(vectors, np.float32)


def save_tokenizer(tokenizer: "Tokenizer", folder: Path) -> int:
    """Save a tokenizer, if possible with its word pieces as lines, which load in half the time.

    :returns: how many word pieces are in ``VOCABULARY``.
    """
    from tokenizers.models import WordPiece

    tokenizer.save(str(folder / TOKENIZER), pretty=False)
    if not isinstance(tokenizer.model, WordPiece):
        return 0
    numbers = tokenizer.get_vocab(with_added_tokens=False)
    lines = "".join(f"{piece}\n" for piece in sorted(numbers, key=numbers.__getitem__))
    (folder / VOCABULARY).write_text(lines, encoding="utf-8", newline="\n")
    stored = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    named = {token["content"] for token in stored["added_tokens"]} | {tokenizer.model.unk_token}
    listed = WordPiece.read_file(str(folder / VOCABULARY))
    if listed != numbers or not named <= numbers.keys():  # gaps, blanks, or tokens beyond the list
        (folder / VOCABULARY).unlink()
        return 0
    stored["model"]["vocab"] = {piece: numbers[piece] for piece in named}
    (folder / TOKENIZER).write_text(json.dumps(stored), encoding="utf-8")
    return len(numbers)


def _load_tokenizer(folder: Path, vocabulary: int) -> "Tokenizer":
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    if vocabulary:
        model = tokenizer.model
        tokenizer.model = WordPiece.from_file(
            str(folder / VOCABULARY),
            unk_token=model.unk_token,
            max_input_chars_per_word=model.max_input_chars_per_word,
            continuing_subword_prefix=model.continuing_subword_prefix,
        )
        if tokenizer.get_vocab_size(with_added_tokens=False) != vocabulary:
            raise ValueError("word pieces are missing")
    return tokenizer


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group texts of similar length into batches, the longest first, to keep padding small.

    :returns: batches of indexes; a batch has at most ``BATCH_PIECES`` padded pieces, or one text.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > BATCH_PIECES:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _run_batches(
    work: Callable[[list[int]], None], pending: Iterator[list[int]], threads: int
) -> None:
    leading = list(islice(pending, 2))
    if threads == 1 or len(leading) < 2:
        for batch in chain(leading, pending):
            work(batch)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, [*leading, *pending]):
            pass


def _threads() -> int:
    processors = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    return min(processors or 1, _MOST_THREADS)


class _Opening(Thread):
    """Opens a model in parallel with loading its tokenizer: the runtime releases Python's lock."""

    def __init__(self, model: Path) -> None:
        super().__init__()
        self._model = model
        self._error: Exception | None = None
        self._session: Any = None
        import onnxruntime  # noqa: F401 - imported here, since imports block each other

        self.start()

    def run(self) -> None:
        """Open the model."""
        try:
            self._session = _session(self._model)
        except Exception as error:
            self._error = error

    def result(self) -> Any:
        """Return the session, or raise the error that occurred."""
        self.join()
        if self._error:
            raise self._error
        return self._session


def _session(model: Path, *, packed: bool = False) -> Any:
    """Open an optimised model; its weights are mapped into memory.

    :param packed: reorder the weights in memory for many single questions. These are computed in
        two threads if there are more than two processors; with two, messages that are embedded
        in the meantime would be left without one.
    """
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "0" if packed else "1")
    options.intra_op_num_threads = 2 if packed and _threads() > 2 else 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    # The runtime would keep up to 40 MB for later runs, and plan memory for each shape of a batch.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
