"""Measure how recalled messages affect a provider's prefix cache, on a real model server.

    python benchmarks/speed/proxy_cache.py URL

URL is a llama.cpp server, which reports how many tokens of a prompt came from its cache. A
conversation of three questions is asked four times: unchanged, with recalled messages in the system
prompt, with them after the newest question, and through ``reservoir serve``, which adds them after
the newest question and replays its earlier additions.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from processes import RESERVOIR, machine

from reservoir_cli.context.recall import Recall
from reservoir_cli.messages import Message
from reservoir_cli.reservoir import Reservoir

#: Questions and replies of earlier conversations.
EARLIER = (
    ("Which queue do we use for the nightly invoices?", "Redis, since the winter release."),
    ("Redis lost the invoice jobs again last night.", "Postgres keeps its jobs over a restart."),
    ("Let us move the invoice queue to Postgres in May.", "Noted: the move is on 4 May."),
    ("How large is the invoice table by now?", "The invoice table has 41 million rows."),
    ("Who signs off the move of the queue?", "Maren signs it off, and Tariq runs it."),
    ("What did the backup of the invoice table cost?", "The backup takes 35 minutes a night."),
    ("Which train do we take to Lyon?", "The 7:14 from platform 3, with a change in Basel."),
    ("Did Ana book the hotel in Lyon?", "Yes, the one by the river, for three nights."),
    ("My bike makes a noise when I brake.", "The pads are worn; new ones cost 12 euros."),
    ("Where did we buy the bike?", "At Holm's, in the summer of 2023, with a warranty."),
)
SYSTEM = "You are a careful engineer. Answer in one short sentence and name dates where you can."
QUESTIONS = (
    "Why did we move the invoice queue away from Redis?",
    "And which train do we take to Lyon, and where do we stay?",
    "What did you say about the brakes of my bike?",
)
ANSWERS = (
    "Because Redis lost jobs of the nightly run whenever it was restarted.",
    "The 7:14, and we stay at the hotel by the river.",
)
Request = list[dict[str, str]]
Send = Callable[[Request], dict[str, Any]]


def fill(store: Path) -> None:
    """Store the earlier conversations."""
    begin = datetime(2026, 3, 5, 9, tzinfo=UTC)
    messages = [
        Message(role, text, created_at=begin + timedelta(days=day, minutes=minute))
        for day, exchange in enumerate(EARLIER)
        for minute, (role, text) in enumerate(zip(("user", "assistant"), exchange, strict=True))
    ]
    with Reservoir.open(store) as reservoir:
        reservoir.ingest(messages)


def recall(store: Path, question: str) -> str:
    """Return the text recalled for a question."""
    with Reservoir.open(store) as reservoir:
        outcome = reservoir.recall(question, budget=1_000)
    return outcome.text.strip() if isinstance(outcome, Recall) else ""


def sender(base_url: str, headers: dict[str, str] | None = None) -> Send:
    """Return a function that sends a request to a server."""

    def send(messages: Request) -> dict[str, Any]:
        body = {"model": "m", "messages": messages, "max_tokens": 2, "cache_prompt": True}
        request = urllib.request.Request(
            f"{base_url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )
        with urllib.request.urlopen(request) as answer:
            reply: dict[str, Any] = json.load(answer)
        return reply

    return send


def conversation(name: str, turn: int) -> Request:
    """Return a client's messages in a turn: its own history and the question."""
    # The first words differ, so that no measurement uses the cache of another.
    messages = [{"role": "system", "content": f"{name.title()}. {SYSTEM}"}]
    for question, answer in zip(QUESTIONS[:turn], ANSWERS[:turn], strict=True):
        messages += [{"role": "user", "content": question}]
        messages += [{"role": "assistant", "content": answer}]
    return [*messages, {"role": "user", "content": QUESTIONS[turn]}]


def measure(name: str, ask: Send) -> None:
    """Ask three questions, and print how many tokens came from the cache."""
    counts = [ask(conversation(name, turn))["timings"] for turn in range(len(QUESTIONS))]
    reused = "  ".join(
        f"{count['cache_n']:5} of {count['cache_n'] + count['prompt_n']:5}" for count in counts
    )
    print(f"{name:28} {reused}")


def main() -> None:
    """Print a table of the tokens reused in turns 1, 2 and 3."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    url = parser.parse_args().url.rstrip("/") + "/v1"
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "reservoir.db"
        os.environ["RESERVOIR_ENOUGH"] = "true"  # otherwise so small a store is quoted whole
        fill(store)
        direct = sender(url)

        def in_system(messages: Request) -> dict[str, Any]:
            text = f"{messages[0]['content']}\n\n{recall(store, messages[-1]['content'])}"
            return direct([{"role": "system", "content": text}, *messages[1:]])

        def at_the_end(messages: Request) -> dict[str, Any]:
            question = messages[-1]["content"]
            text = f"{question}\n\n{recall(store, question)}"
            return direct([*messages[:-1], {"role": "user", "content": text}])

        measure("nothing added", direct)
        measure("in the system prompt", in_system)
        measure("at the end, no ledger", at_the_end)
        server = subprocess.Popen(
            [RESERVOIR, "--db", str(store), "serve", "--port", "0", "--upstream", f"openai={url}"],
            stdout=subprocess.PIPE,
            stderr=sys.stderr if "-v" in sys.argv else subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout
            proxied = sender(server.stdout.readline().strip(), {"x-reservoir-store": "no"})
            measure("reservoir serve", proxied)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
