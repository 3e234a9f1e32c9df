"""Time the page's sliders in a headless Chromium.

    python benchmarks/speed/sliders.py [--messages 10000] [--budgets 1000 4000] [--moves 30]

A move is timed from the slider's input event until the frame after the new rows are in the
document. Needs chromium, chromedriver and selenium.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import synthetic
from processes import RESERVOIR, machine
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
MOVE = """
const [value, done] = arguments;
const slider = document.querySelector('input[type=range][name=recency_weight]');
const results = document.querySelector(document.querySelector('[data-live]').dataset.live);
const started = performance.now();
new MutationObserver((_, observer) => {
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - started)));
}).observe(results, {childList: true});
slider.value = value;
slider.dispatchEvent(new Event('input', {bubbles: true}));
"""


@contextmanager
def page(store: Path, home: str) -> Iterator[Chrome]:
    """Yield a browser that is signed in to the page of a store."""
    command = [RESERVOIR, "-q", "--db", store]
    environment = os.environ | {"RESERVOIR_HOME": home}
    with subprocess.Popen(
        [*command, "serve", "--port=0"], stdout=subprocess.PIPE, env=environment, text=True
    ) as server:
        assert server.stdout
        server.stdout.readline()
        address = subprocess.run(
            [*command, "open", "--print"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ARGUMENTS:
            options.add_argument(argument)
        browser = Chrome(options, ChromeService(shutil.which("chromedriver")))
        try:
            browser.get(address)
            yield browser
        finally:
            browser.quit()
            server.terminate()


def time_moves(browser: Chrome, question: str, budget: int, moves: int) -> list[float]:
    """Move a slider of a question's window; return the milliseconds of each move but the first."""
    origin = browser.current_url.partition("/ui")[0]
    query = urlencode({"q": question, "p": "part-0", "budget": budget})
    browser.get(f"{origin}/ui/context?{query}")
    values = [round(0.2 + 0.6 * (number % 7) / 7, 2) for number in range(moves + 1)]
    return [float(browser.execute_async_script(MOVE, value)) for value in values][1:]


def main() -> None:
    """Print the times of each budget."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1_000, 4_000])
    parser.add_argument("--moves", type=int, default=30)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "scaling")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    store = synthetic.build(options.folder, options.messages)
    print(machine(), f"{options.messages:,} messages")
    with tempfile.TemporaryDirectory() as home, page(store, home) as browser:
        browser.set_script_timeout(60)
        for budget in options.budgets:
            times = [
                taken
                for question in synthetic.QUESTIONS
                for taken in time_moves(browser, question, budget, options.moves)
            ]
            longest = sorted(times)[int(0.95 * (len(times) - 1))]
            print(
                f"{budget:6,} tokens: median {statistics.median(times):.0f} ms, "
                f"95th percentile {longest:.0f} ms, shortest {min(times):.0f} ms"
            )


if __name__ == "__main__":
    main()
