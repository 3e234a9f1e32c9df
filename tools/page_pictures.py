"""Draw the pictures of the web page from the samples, in a headless Chromium.

The store and the server are temporary. Records of contexts, which the view of usage shows, are
spread over two months.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from readme_picture import RESERVOIR, ROOT
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from reservoir_cli.reservoir import Reservoir

PICTURES = ROOT / "docs" / "pictures"
QUESTION = "why+did+we+drop+Redis"
#: Of each picture: address, width, height and colour scheme.
SHOTS = {
    "conversations": ("/ui/", 1280, 760, "light"),
    "context": (f"/ui/context?q={QUESTION}&p=work&budget=600", 1280, 800, "light"),
    "usage": ("/ui/usage", 1280, 620, "light"),
    "narrow": (f"/ui/context?q={QUESTION}&p=work&budget=600", 390, 844, "dark"),
}
#: The last day of the samples.
_LAST = datetime(2026, 8, 30, 12, tzinfo=UTC)
_ASKED = ("why did we drop Redis?", "how long does the dough rest?", "which hotel in Kyoto?")


def main() -> None:
    """Fill a store, start a server, and take the pictures."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"RESERVOIR_HOME": home, "HF_HUB_OFFLINE": "1", "TZ": "UTC"}
        samples = sorted(map(str, (ROOT / "samples").glob("*.jsonl")))
        run("ingest", *samples)
        with Reservoir.open(str(Path(home) / "reservoir.db")) as reservoir:
            record_runs(reservoir)
        # Another server may use the usual port.
        serve = [RESERVOIR, "-q", "serve", "--port", "0"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            server.stdout.readline()  # it is ready
            try:
                take(run("open", "--print").split()[-1])
            finally:
                run("serve", "--stop")


def run(*arguments: str) -> str:
    """Run a command, and return its output."""
    result = subprocess.run([RESERVOIR, *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(result.stderr)
    return result.stdout


def record_runs(reservoir: Reservoir) -> None:
    """Record contexts and recalls of the eight weeks before the samples end."""
    for day in range(0, 56, 2):
        for turn in range(1 + day % 3):
            question = _ASKED[(day + turn) % len(_ASKED)]
            now = _LAST - timedelta(days=day, hours=turn)
            budget = (1_000, 4_000, 8_000)[turn]
            window = reservoir.context(question, partition="work", budget=budget, now=now)
            reservoir.runs.record(window)
            if turn:
                reservoir.runs.record_recall(window.request, window)


def take(address: str) -> None:
    """Sign in at an address, and take all pictures."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory() as profile:
        for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={profile}")
        browser = Chrome(options, ChromeService(shutil.which("chromedriver")))
        try:
            browser.get(address)
            wait_for(browser, "location.pathname == '/ui/'")
            origin = address.partition("/ui/")[0]
            for name, shot in SHOTS.items():
                take_one(browser, origin, PICTURES / f"page-{name}.webp", *shot)
        finally:
            browser.quit()


def take_one(
    browser: Any, origin: str, file: Path, path: str, width: int, height: int, scheme: str
) -> None:
    """Take one picture."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(origin + path)
    wait_for(browser, "document.readyState == 'complete'")
    form = {"format": "webp", "quality": 70}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", form)
    file.write_bytes(b64decode(shot["data"]))


def wait_for(browser: Any, condition: str) -> None:
    """Wait until a condition in JavaScript holds."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(f"return {condition}"))


if __name__ == "__main__":
    main()
