"""Time the page's search field in a headless Chromium.

    python benchmarks/speed/keystrokes.py [--messages 30000] [--typed "why did we drop Redis"]

A keystroke is timed from the key event until the frame after the new rows are in the document.
Needs chromium, chromedriver and selenium.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import synthetic
from processes import machine
from sliders import page

WATCH = """
window.took = null;
const results = document.querySelector(document.querySelector('[data-live]').dataset.live);
addEventListener('keydown', (event) => {
  const started = event.timeStamp;
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.took = performance.now() - started; }));
  }).observe(results, {childList: true});
}, {capture: true});
document.querySelector('[data-search]').focus();
"""
TOOK = """
const done = arguments[0];
const look = () => {
  if (window.took === null) { setTimeout(look, 5); return; }
  done(window.took);
  window.took = null;
};
look();
"""


def time_keys(browser: Any, typed: str) -> list[float]:
    """Type a text, one letter when the last one is shown; return the milliseconds of each."""
    browser.execute_script(WATCH)
    times = []
    for letter in typed:
        browser.switch_to.active_element.send_keys(letter)
        times.append(float(browser.execute_async_script(TOOK)))
    return times


def main() -> None:
    """Print the time of each keystroke, and the median and the longest."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--typed", default="why did we drop Redis")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "scaling")
    parser.add_argument("--store", type=Path, help="a store of your own")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    store = options.store or synthetic.build(options.folder, options.messages)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0
    print(machine(), f"{options.messages:,} messages, load {load:.1f}")
    with tempfile.TemporaryDirectory() as home, page(store, home) as browser:
        browser.set_script_timeout(60)
        browser.get(browser.current_url.partition("/ui")[0] + "/ui/")
        for name in ("cold", "warm"):
            browser.get(browser.current_url.partition("?")[0])
            times = time_keys(browser, options.typed)
            print(name, *(f"{took:.0f}" for took in times))
            print(f"  median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms")


if __name__ == "__main__":
    main()
