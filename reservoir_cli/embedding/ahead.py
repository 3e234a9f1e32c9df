"""A question's vector, made by a process of its own while a server is reached.

Loading the driver of a server takes as long as loading the model, and both keep Python busy, so
that threads would only take turns. A forked process does one of them on another processor. It
can only help: whatever goes wrong in it, the model is loaded as it always is.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn, Self

from reservoir_cli.embedding import Embedder, Engine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Load = Callable[[], Embedder]


class QuestionAhead:
    """A process that gives one question its vector, if the model is compiled and ready."""

    def __init__(self, name: str, question: str, process: int, answer: int) -> None:
        """Take charge of a process; see :meth:`begin`.

        :param process: its number.
        :param answer: the end of a pipe from which its answer is read.
        """
        self._name = name
        self._question = question
        self._process = process
        self._answer = answer

    @classmethod
    def begin(cls, name: str, question: str) -> Self | None:
        """Start the process.

        :param name: of the model, as in setting ``embedding_model``.
        :returns: ``None`` where none may be started: only Linux's libraries bear a fork, and
            those not beside other threads.
        """
        if sys.platform != "linux" or threading.active_count() > 1:
            return None
        try:
            answer, told = os.pipe()
        except OSError:
            return None
        try:
            process = os.fork()
        except OSError:
            os.close(answer)
            os.close(told)
            return None
        if not process:
            _work(name, question, told)
        os.close(told)
        return cls(name, question, process, answer)

    def embedder(self, load: Load) -> Embedder | None:
        """The model, as far as the question goes; ``None`` if the process found no answer.

        :param load: loads it for whatever else is asked of it.
        """
        with os.fdopen(self._answer, "rb") as pipe:
            self._answer = -1
            said = pipe.read()
        self.close()
        try:
            found = json.loads(said)
        except ValueError:
            return None
        return _Answered(self._name, self._question, found, load)

    def close(self) -> None:
        """End the process, if it still runs."""
        if self._answer >= 0:
            os.close(self._answer)
            self._answer = -1
        if self._process:
            with suppress(OSError):
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
            self._process = 0


class _Answered:
    """An :class:`~reservoir_cli.embedding.Embedder` that knows one vector, and loads the rest."""

    def __init__(self, name: str, question: str, found: dict[str, Any], load: Load) -> None:
        self.name = name
        self.model_id: str = found["model_id"]
        self.engine = Engine(**found["engine"])
        self.dimensions = len(found["vector"])
        self._question = question
        self._vector: list[float] = found["vector"]
        self._load = load
        self._loaded: Embedder | None = None

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        import numpy as np

        if text == self._question:
            return np.array(self._vector, np.float32)
        return self._model().encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._model().encode_documents(texts)

    def passages(self, text: str) -> Sequence[tuple[int, int]]:
        """See :class:`~reservoir_cli.embedding.Embedder`."""
        return self._model().passages(text)

    def _model(self) -> Embedder:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded


def _work(name: str, question: str, told: int) -> NoReturn:
    """What the process does; it says nothing but its answer, and never returns."""
    try:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # who reads the program's output waits for nobody else
            os.dup2(nothing, stream)
        from reservoir_cli.embedding.load import opened

        if embedder := opened(name):
            found = {
                "model_id": embedder.model_id,
                "engine": asdict(embedder.engine),
                "vector": embedder.encode_query(question).tolist(),
            }
            with os.fdopen(told, "wb") as pipe:
                pipe.write(json.dumps(found).encode())
    finally:
        os._exit(0)
