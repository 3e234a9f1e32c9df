"""A small store, a server with its page, and clients that are signed in."""

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import page_server
import pytest
from browser_page import until
from builders import FakeEmbedder
from page_server import START, PageServer, message

from reservoir_cli.messages import Conversation, Message, Scope, ToolCall
from reservoir_cli.reservoir import Reservoir

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

#: Arguments for a browser without a display.
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
#: With fewer processes and no compiler, a page takes 40% less CPU time.
LIGHT = (
    *("--in-process-gpu", "--renderer-process-limit=1", "--js-flags=--jitless"),
    *("--disable-site-isolation-trials", "--disable-features=IsolateOrigins,site-per-process"),
)


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    """Return the path of the store."""
    return str(tmp_path / "reservoir.db")


@pytest.fixture
def memory(store_path: str, empty_file: Path) -> Iterator[Reservoir]:
    """Open a store with a conversation, single messages, and a tool call with its result."""
    shutil.copy(empty_file, store_path)
    with Reservoir.open(store_path, embedder=FakeEmbedder()) as reservoir:
        conversations = [Conversation("queue", "Where jobs should live", "chatgpt")]
        reservoir.store.add_conversations(Scope("work", "chat"), conversations)
        reservoir.ingest(
            [
                message("user", "why did we drop **Redis** for the queue?", 0, "queue"),
                message(
                    "assistant", "It lost jobs in the failover:\n\n```py\nx = 1\n```", 1, "queue"
                ),
                message("user", "and what is the cost?", 2, "queue"),
                Message(
                    "assistant",
                    "I look it up.",
                    START + timedelta(minutes=3),
                    conversation_id="queue",
                    tool_calls=(ToolCall("c1", "prices", '{"of": "redis"}'),),
                ),
                Message(
                    "tool",
                    "29 a month",
                    START + timedelta(minutes=4),
                    conversation_id="queue",
                    tool_call_id="c1",
                ),
            ],
            partition="work",
            instance="chat",
        )
        reservoir.ingest([message("user", "buy flour", 90)], partition="home", instance="cli")
        yield reservoir


@pytest.fixture
def server(memory: Reservoir, store_path: str) -> Iterator[PageServer]:
    with page_server.serving(store_path, FakeEmbedder()) as running:
        yield running


@pytest.fixture
def client(server: PageServer) -> Iterator[httpx2.Client]:
    with server.client() as opened:
        yield opened


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["WebDriver"]:
    """Start a headless Chromium."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver and find_spec("selenium")):
        reason = "needs chromium, chromedriver and selenium: apt install chromium chromium-driver"
        if os.environ.get("RESERVOIR_TEST_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in (*ARGUMENTS, *LIGHT, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    opened = Chrome(options, ChromeService(driver))
    opened.set_page_load_timeout(120)
    opened.set_script_timeout(120)
    yield opened
    opened.quit()


@pytest.fixture
def blank(browser: "WebDriver", server: PageServer) -> Iterator["WebDriver"]:
    """Return a browser at no page, which leaves the server before it ends."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    yield browser
    browser.get("about:blank")
    browser.delete_all_cookies()


@pytest.fixture
def start(blank: "WebDriver", server: PageServer) -> "WebDriver":
    """Return a browser at the first page, where a link with a code has signed it in."""
    blank.get(f"{server.origin}/ui/enter?code={server.code()}")
    until(blank, lambda: blank.title == "Conversations · Reservoir")
    return blank


@pytest.fixture
def page(blank: "WebDriver", server: PageServer, client: httpx2.Client) -> "WebDriver":
    """Return a browser with the session of a client, before its first page."""
    [cookie] = client.cookies.jar
    name = {"name": cookie.name, "value": cookie.value, "url": f"{server.origin}/ui/"}
    blank.execute_cdp_cmd("Network.setCookie", {**name, "path": "/ui", "httpOnly": True})
    return blank
