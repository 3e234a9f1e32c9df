"""How fast many messages are embedded, beside sentence-transformers at its best.

    python benchmarks/speed/bulk.py [--rounds N] [--json FILE]

Two sets of texts are cut from the samples: short ones of some 30 tokens, and mixed ones of up to
1,500. Every measurement runs in a process of its own, and the engines take turns; the best round
of each counts, since whatever else the machine does only ever costs time.

sentence-transformers   ``encode_document`` in fp32, the best of several batch sizes
reservoir, engine       ``encode_documents`` of the same passages
reservoir, embed        ``Reservoir.embed`` of the messages: cutting, vectors and store
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
    """Return runs of words of the samples, the same in every run."""
    words = [
        word
        for file in sorted(SAMPLES.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
        for word in str(json.loads(line).get("content") or "").split()
    ]
    chance = random.Random(3)
    texts = []
    for _ in range(SETS[kind]):
        low, high = (9, 22) if kind == "short" else (4, 1_100)
        length = round(math.exp(chance.uniform(math.log(low), math.log(high))))
        start = chance.randrange(len(words) - length)
        texts.append(" ".join(words[start : start + length]))
    return texts


def passages_of(texts: list[str]) -> list[str]:
    """Return the passages of texts, which both engines embed."""
    from reservoir_cli.embedding import load_embedder

    embedder = load_embedder(MODEL, offline=True, progress=lambda *_: None)
    return [text[start:end] for text in texts for start, end in embedder.passages(text)]


def time_reference(passages: list[str], vectors: Path) -> dict[str, Any]:
    """Seconds of the best batch size, and the vectors."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from reservoir_cli.embedding.resolve import locate

    folder = locate(MODEL, offline=True, progress=lambda *_: None).folder
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.encode_document(passages[:64])
    best: dict[str, Any] = {"seconds": math.inf}
    for size in BATCH_SIZES:
        started = time.perf_counter()
        found = model.encode_document(passages, batch_size=size, normalize_embeddings=True)
        seconds = time.perf_counter() - started
        if seconds < best["seconds"]:
            best = {"seconds": seconds, "batch size": size}
    np.save(vectors, found)
    tokens = sum(len(each) for each in model.tokenizer(passages, truncation=True)["input_ids"])
    return {**best, "tokens": tokens}


def time_engine(passages: list[str], vectors: Path) -> dict[str, Any]:
    """Seconds of ``encode_documents``, and the vectors."""
    import numpy as np

    from reservoir_cli.embedding import load_embedder

    embedder = load_embedder(MODEL, offline=True, progress=lambda *_: None)
    embedder.encode_documents(passages[:64])
    started = time.perf_counter()
    found = embedder.encode_documents(passages)
    seconds = time.perf_counter() - started
    np.save(vectors, found)
    return {"seconds": seconds, "engine": embedder.engine.kind}


def time_embed(texts: list[str]) -> dict[str, Any]:
    """Seconds of ``Reservoir.embed`` for messages that are stored already."""
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
    """Measure one engine in this process and print what was found."""
    given = json.loads(work.read_text(encoding="utf-8"))
    vectors = work.with_name(f"{engine}.npy")
    if engine == "sentence-transformers":
        found = time_reference(given["passages"], vectors)
    elif engine == "reservoir, engine":
        found = time_engine(given["passages"], vectors)
    else:
        found = time_embed(given["texts"])
    print(json.dumps(found))


def measure(kind: str, rounds: int) -> dict[str, Any]:
    """Return the best round of each engine on a set of texts, and the agreement of vectors."""
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
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            found = json.loads(done.stdout)
            if engine not in best or found["seconds"] < best[engine]["seconds"]:
                best[engine] = found
        one, two = (np.load(work.with_name(f"{engine}.npy")) for engine in ENGINES[:2])
    tokens = best[ENGINES[0]]["tokens"]
    for each in best.values():
        each["messages/s"] = len(texts) / each["seconds"]
        each["tokens/s"] = tokens / each["seconds"]
        each["times"] = best[ENGINES[0]]["seconds"] / each["seconds"]
    return {
        "messages": len(texts),
        "passages": len(passages),
        "tokens": tokens,
        "worst cosine": float(np.sum(one * two, axis=1).min()),
        "engines": best,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast many messages are embedded.")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--child", nargs=2, metavar=("ENGINE", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], Path(arguments.child[1]))
        return
    results = {kind: measure(kind, arguments.rounds) for kind in SETS}
    for kind, found in results.items():
        print(
            f"{kind}: {found['messages']} messages, {found['passages']} passages, "
            f"{found['tokens']:,} tokens, worst cosine {found['worst cosine']:.7f}"
        )
        print(f"{'':24}{'messages/s':>12}{'tokens/s':>12}{'times':>8}")
        for engine, each in found["engines"].items():
            rates = f"{each['messages/s']:12,.0f}{each['tokens/s']:12,.0f}{each['times']:8.2f}"
            print(f"{engine:24}{rates}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
