"""Check an installation without PyTorch, and compare it with a full one.

Run by the Python of the full installation, with the folder of the slim one.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: Bytes of the environment, and the least cosine of two vectors.
LARGEST, AGREEMENT = 350e6, 0.9999
WITHOUT = ("torch", "transformers", "sentence_transformers", "onnx", "onnxscript")
FIRST = "The job queue moved from Redis to Postgres, because a failover lost 214 jobs."
QUESTION = "Why did we drop Redis?"
OTHER_MODEL = "BAAI/bge-small-en-v1.5"
_EMBED = """
import json, sys
from reservoir_cli.embedding.load_model import load_embedder
from reservoir_cli.embedding.compiler import SAMPLES
name = "sentence-transformers/all-MiniLM-L6-v2"
loaded = load_embedder(name, offline=True, progress=lambda *_: None)
vectors = [loaded.encode_query(text).tolist() for text in SAMPLES]
engine = [loaded.engine.kind, loaded.engine.origin]
print(json.dumps([engine, loaded.model_id, vectors + loaded.encode_documents(SAMPLES).tolist()]))
"""


class Installation:
    """An environment with Reservoir, and a home that several environments can share."""

    def __init__(self, python: Path, home: Path) -> None:
        self.python = python
        self.env = {
            **{
                name: os.environ[name]
                for name in ("PATH", "LANG", "SYSTEMROOT")
                if name in os.environ
            },
            "HOME": str(home),
            "RESERVOIR_HOME": str(home),
            "RESERVOIR_MODEL_CACHE": str(home / "cache" / "models"),
            "HF_HUB_OFFLINE": "1",
        }

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Run a command; return its output, or its errors if it must fail."""
        command = [str(self.python.with_name("reservoir")), *arguments]
        result = subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=self.env, check=False
        )
        assert result.returncode == code, (command, result)
        return result.stderr if code else result.stdout

    def evaluate(self, script: str) -> str:
        """Run Python code; return its output."""
        command = [str(self.python), "-W", "ignore", "-c", script]
        return subprocess.run(
            command, capture_output=True, text=True, env=self.env, check=True, cwd="/"
        ).stdout


def size(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def check_contents(slim: Installation) -> None:
    """Check that it is small and has none of the large libraries."""
    script = f"from importlib.util import find_spec; print([n for n in {WITHOUT} if find_spec(n)])"
    assert slim.evaluate(script) == "[]\n"
    taken = size(slim.python.parents[1])
    print(f"installed: {taken / 1e6:.0f} MB (at most {LARGEST / 1e6:.0f})")
    assert taken <= LARGEST


def check_first_answer(slim: Installation) -> None:
    """Check the first answer after the first message, and print its time."""
    slim.run("ingest", "-p", "work", stdin=FIRST)
    before, start = _cpu(), time.perf_counter()
    answer = slim.run("context", QUESTION, "-p", "work")
    wall, cpu = time.perf_counter() - start, _cpu() - before
    print(f"first answer: {wall:.2f} s, {cpu:.2f} s of the processor")
    assert "214 jobs" in answer


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_vectors(slim: Installation, full: Installation) -> None:
    """Check that both compute the same embeddings with the same model identity."""
    (kind, packaged), identity, vectors = json.loads(slim.evaluate(_EMBED))
    (_, origin), expected_identity, expected = json.loads(full.evaluate(_EMBED))
    assert (kind, packaged) == ("compiled", "package")
    assert identity == expected_identity
    least = min(
        sum(x * y for x, y in zip(vector, expected_vector, strict=True))
        for vector, expected_vector in zip(vectors, expected, strict=True)
    )
    print(f"least cosine of {len(vectors)} vectors: {least:.7f} (weights here from the {origin})")
    assert least >= AGREEMENT


def check_store(slim: Installation, full: Installation) -> None:
    """Check that both can use one store: each finds what the other embedded."""
    full.run("ingest", "-p", "work", stdin="The cat sleeps on the sofa, and nobody wakes it.")
    for installation in (slim, full):
        for term, word in (("a sleepy pet", "cat"), ("losing work in a crash", "214 jobs")):
            printed = installation.run("search", term, "-p", "work", "--semantic", "--json")
            assert word in json.loads(printed)["hits"][0]["content"]
        checks = json.loads(installation.run("doctor", "--json"))["checks"]
        assert not [check for check in checks if check["status"] == "fault"], checks
        [pending] = [check for check in checks if check["name"] == "vectors"]
        assert pending["status"] == "ok", pending
    print("one store serves both")


def check_other_model(slim: Installation) -> None:
    """Check that another model is an error that names the full package."""
    error = slim.run("embed", "--model", OTHER_MODEL, code=5)
    print(f"another model: {error.strip()}")
    assert error.splitlines() == [
        f"error: the embedding model {OTHER_MODEL} needs the full package",
        "hint: pip install reservoir-cli --find-links dist",
    ]


def installations(folder: Path, home: Path) -> Iterator[Installation]:
    """Return the slim installation, and the full one that runs this script."""
    name = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    yield from (Installation(python, home) for python in (folder / name, Path(sys.executable)))


def main(folder: Path) -> None:
    """Check one environment."""
    with tempfile.TemporaryDirectory() as home:
        slim, full = installations(folder, Path(home))
        check_contents(slim)
        check_first_answer(slim)
        check_vectors(slim, full)
        check_store(slim, full)
        check_other_model(slim)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
