"""Use and measure the page in a browser."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webdriver import WebDriver

#: Seconds that a loaded machine may take.
PATIENCE = 300
#: Seconds between two looks at a page.
POLL = 0.03


def until(browser: "WebDriver", holds: Callable[[], object]) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, PATIENCE, POLL).until(lambda _: holds())


def text(browser: "WebDriver", selector: str) -> str:
    return str(browser.execute_script(f"return document.querySelector({selector!r}).textContent"))


def resize(browser: "Chrome", width: int, height: int = 900) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def cut_pixels(browser: "WebDriver", selector: str) -> list[int]:
    """Return by how much the content of each element is wider than the element."""
    elements = f"[...document.querySelectorAll({selector!r})]"
    script = f"return {elements}.map((one) => one.scrollWidth - one.clientWidth)"
    return list(browser.execute_script(script))


def watch_requests(browser: "WebDriver") -> None:
    """Count from now on how often the page asks the server."""
    browser.execute_script(
        """
        const ask = window.fetch;
        window.asked = 0;
        window.fetch = (...what) => { window.asked += 1; return ask(...what); };
        """
    )


def asked(browser: "WebDriver", milliseconds: int = 0) -> int:
    """Return how often the page has asked the server when this time has passed for it."""
    script = "setTimeout(() => arguments[1](window.asked), arguments[0])"
    return int(browser.execute_async_script(script, milliseconds))


def press(browser: "WebDriver", *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)
