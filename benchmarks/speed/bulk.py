"""Measure how fast many messages are embedded, compared with sentence-transformers.

    python benchmarks/speed/bulk.py [--rounds N] [--json FILE]

Two sets of texts are cut from the samples: short ones of about 30 tokens, and mixed ones of up to
1,500. Every measurement runs in a separate process, and the engines take turns; the best round of
each counts, since other load on the machine only ever adds time.

sentence-transformers   ``encode_document`` in fp32, with the best of several batch sizes
reservoir, engine       ``encode_documents`` of the same passages
reservoir, embed        ``Reservoir.embed`` of the messages: passages, vectors and store
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[2] / "samples"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
BATCH_SIZES = (8, 16, 32, 64)
SETS = {"short": 600, "mixed": 60}
ENGINES = ("sentence-transformers", "reservoir, engine", "reservoir, embed")


def texts_of(kind: str) -> list[str]:
    """Return random sequences of words from the samples, the same in every run."""
    words = [
        word
        for file in sorted(SAMPLES.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
        for word in str(json.loads(line).get("content") or "").split()
    ]
    rng = random.Random(3)
    texts = []
    for _ in range(SETS[kind]):
        low, high = (9, 22) if kind == "short" else (4, 1_100)
        length = round(math.exp(rng.uniform(math.log(low), math.log(high))))
        start = rng.randrange(len(words) - length)
        texts.append(" ".join(words[start : start + length]))
    return texts


def passages_of(texts: list[str]) -> list[str]:
    """Return the passages of the texts, which both engines embed."""
    from reservoir_cli.embedding.load_model import load_embedder

    embedder = load_embedder(MODEL, offline=True, progress=lambda *_: None)
    return [text[start:end] for text in texts for start, end in embedder.passages(text)]


def time_reference(passages: list[str], vectors: Path) -> dict[str, Any]:
    """Time sentence-transformers with its best batch size, and save the vectors."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from reservoir_cli.embedding.find_model import locate

    folder = locate(MODEL, offline=True, progress=lambda *_: None).folder
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.encode_document(passages[:64])
    best: dict[str, Any] = {"seconds": math.inf}
    for size in BATCH_SIZES:
        started = time.perf_counter()
        matrix = model.encode_document(passages, batch_size=size, normalize_embeddings=True)
        seconds = time.perf_counter() - started
        if seconds < best["seconds"]:
            best = {"seconds": seconds, "batch size": size}
    np.save(vectors, matrix)
    tokens = sum(map(len, model.tokenizer(passages, truncation=True)["input_ids"]))
    return {**best, "tokens": tokens}


def time_engine(passages: list[str], vectors: Path) -> dict[str, Any]:
    """Time ``encode_documents``, and save the vectors."""
    import numpy as np

    from reservoir_cli.embedding.load_model import load_embedder

    embedder = load_embedder(MODEL, offline=True, progress=lambda *_: None)
    embedder.encode_documents(passages[:64])
    started = time.perf_counter()
    matrix = embedder.encode_documents(passages)
    seconds = time.perf_counter() - started
    np.save(vectors, matrix)
    return {"seconds": seconds, "engine": embedder.engine.kind}


def time_embed(texts: list[str]) -> dict[str, Any]:
    """Time ``Reservoir.embed`` of messages that are already stored."""
    from reservoir_cli import Message, Reservoir

    with (
        tempfile.TemporaryDirectory() as folder,
        Reservoir.open(Path(folder) / "bulk.db", offline=True) as reservoir,
    ):
        reservoir.ingest([Message("user", text) for text in texts[:64]])
        reservoir.ingest([Message("user", text) for text in texts], embed=False)
        started = time.perf_counter()
        reservoir.embed()
        return {"seconds": time.perf_counter() - started}


def child(engine: str, work: Path) -> None:
    """Measure one engine in this process, and print its figures as JSON."""
    inputs = json.loads(work.read_text(encoding="utf-8"))
    vectors = work.with_name(f"{engine}.npy")
    if engine == "sentence-transformers":
        figures = time_reference(inputs["passages"], vectors)
    elif engine == "reservoir, engine":
        figures = time_engine(inputs["passages"], vectors)
    else:
        figures = time_embed(inputs["texts"])
    print(json.dumps(figures))


def measure(kind: str, rounds: int) -> dict[str, Any]:
    """Return the best round of each engine on a set of texts, and how well their vectors agree."""
    import numpy as np

    texts = texts_of(kind)
    passages = passages_of(texts)
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "HF_HUB_OFFLINE": "1"}
    best: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.json"
        work.write_text(json.dumps({"texts": texts, "passages": passages}), encoding="utf-8")
        for engine in ENGINES * rounds:
            command = [sys.executable, "-W", "ignore", __file__, "--child", engine, str(work)]
            process = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            figures = json.loads(process.stdout)
            if engine not in best or figures["seconds"] < best[engine]["seconds"]:
                best[engine] = figures
        theirs, ours = (np.load(work.with_name(f"{engine}.npy")) for engine in ENGINES[:2])
    tokens = best[ENGINES[0]]["tokens"]
    for figures in best.values():
        figures["messages/s"] = len(texts) / figures["seconds"]
        figures["tokens/s"] = tokens / figures["seconds"]
        figures["times"] = best[ENGINES[0]]["seconds"] / figures["seconds"]
    return {
        "messages": len(texts),
        "passages": len(passages),
        "tokens": tokens,
        "worst cosine": float(np.sum(theirs * ours, axis=1).min()),
        "engines": best,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--child", nargs=2, metavar=("ENGINE", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], Path(arguments.child[1]))
        return
    results = {kind: measure(kind, arguments.rounds) for kind in SETS}
    for kind, result in results.items():
        print(
            f"{kind}: {result['messages']} messages, {result['passages']} passages, "
            f"{result['tokens']:,} tokens, worst cosine {result['worst cosine']:.7f}"
        )
        print(f"{'':24}{'messages/s':>12}{'tokens/s':>12}{'times':>8}")
        for engine, row in result["engines"].items():
            rates = f"{row['messages/s']:12,.0f}{row['tokens/s']:12,.0f}{row['times']:8.2f}"
            print(f"{engine:24}{rates}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
