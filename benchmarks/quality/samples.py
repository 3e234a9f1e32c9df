"""How much of the evidence for the sample questions a context holds, by budget.

    make bench

Each question of ``samples/questions.json`` names the messages that answer it. Its recall is the
share of them inside the context; beside it stands the recall of the newest messages alone.
"""

import json
import sys
import tempfile
from pathlib import Path

from reservoir_cli import Reservoir

SAMPLES = Path(__file__).parents[2] / "samples"
BUDGETS = (250, 500, 1000, 2000, 4000)


def recall(reservoir: Reservoir, questions: list[dict], budget: int) -> float:
    """Mean share of the evidence inside a context."""
    shares = []
    for each in questions:
        window = reservoir.context(
            each["question"], partition=each["partition"], instance=each["instance"], budget=budget
        )
        kept = {message.source_id for message in window.messages}
        shares.append(sum(one in kept for one in each["evidence"]) / len(each["evidence"]))
    return sum(shares) / len(shares)


def main() -> None:
    """Measure and print."""
    questions = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))["questions"]
    newest_only = {"similarity_weight": 0.0, "recency_weight": 1.0}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "samples.db"
        with Reservoir.open(store) as reservoir:
            reservoir.import_files(*sorted(SAMPLES.glob("*.jsonl")))
            reservoir.embed()
            found = [recall(reservoir, questions, budget) for budget in BUDGETS]
        with Reservoir.open(store, settings=newest_only) as reservoir:
            newest = [recall(reservoir, questions, budget) for budget in BUDGETS]
    print(f"evidence recall, {len(questions)} questions of the samples")
    print("budget      " + "".join(f"{budget:>8,}" for budget in BUDGETS))
    print("reservoir   " + "".join(f"{share:8.2f}" for share in found))
    print("newest only " + "".join(f"{share:8.2f}" for share in newest))


if __name__ == "__main__":
    sys.exit(main())
