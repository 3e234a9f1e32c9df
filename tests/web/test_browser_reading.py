"""What people see, hear and reach with keys on the page, in a real browser."""

import pytest
from browser_page import press, text, until
from page_server import message

from reservoir_cli.server.web.read_conversations import CONVERSATIONS

pytest.importorskip("selenium")
from selenium.webdriver import Keys

pytestmark = pytest.mark.browser


def test_escape_leaves_the_search_as_it_is(page, server):
    page.get(f"{server.origin}/ui/?q=redis")
    press(page, "/", Keys.ESCAPE)
    field = "document.querySelector('[name=q]')"
    assert page.execute_script(f"return document.activeElement !== {field}")
    assert page.execute_script(f"return {field}.value") == "redis"


def test_the_instances_are_those_of_the_chosen_partition(page, server, memory):
    for instance in ("chat", "phone"):
        one = [message("user", f"hello from {instance}", 300)]
        memory.ingest(one, partition="home", instance=instance, embed=False)

    def choose(field: str, name: str) -> None:
        page.execute_script(f"document.querySelector('[name={field}]').focus()")
        press(page, name)

    options = "return [...document.querySelectorAll('[name=i] option')].map((one) => one.text)"
    page.get(f"{server.origin}/ui/?p=work")
    assert page.execute_script(options) == []
    choose("p", "home")
    until(page, lambda: page.execute_script(options) == ["all", "chat", "cli", "phone"])
    choose("i", "phone")
    until(page, lambda: "i=phone" in page.current_url)
    choose("p", "work")
    until(page, lambda: "Where jobs should live" in text(page, "#list"))
    until(page, lambda: "i=phone" not in page.current_url)
    assert page.execute_script(options) == []


def test_a_list_loads_more_after_a_search(page, server, memory):
    for number in range(2 * CONVERSATIONS):
        one = [message("user", f"turn {number}", number, f"thread-{number}")]
        memory.ingest(one, partition="many", instance="cli", embed=False)
    rows = "return document.querySelectorAll('.row').length"
    page.get(f"{server.origin}/ui/?p=many&q=turn&role=user")
    press(page, "/", Keys.DELETE)
    until(page, lambda: "conversations" in text(page, ".count"))
    page.execute_script("scrollTo(0, document.documentElement.scrollHeight)")
    until(page, lambda: page.execute_script(rows) == 2 * CONVERSATIONS)


@pytest.mark.parametrize(
    ("address", "said"), [("/ui/", "The best "), ("/ui/context?p=work", " of 4,000 tokens")]
)
def test_results_and_problems_are_announced(page, server, address, said):
    page.get(server.origin + address)
    # Screen readers miss the text of an element that was not there before.
    page.execute_script("window.watched = document.querySelector('main [role=status]')")
    press(page, "/", "redis")
    until(page, lambda: said in page.execute_script("return window.watched.textContent"))
    assert page.execute_script("return window.watched.isConnected")
    page.execute_cdp_cmd("Network.enable", {})
    page.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*"]})
    press(page, "!")
    until(
        page, lambda: "does not answer" in page.execute_script("return window.watched.textContent")
    )
    page.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})


def test_the_focus_stays_in_results_that_a_link_replaces(page, server):
    focused = "return document.activeElement.textContent"
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    press(page, "j", Keys.ENTER)
    page.execute_script("document.querySelector('.weigh [data-without]').focus()")
    press(page, Keys.ENTER)
    until(page, lambda: page.execute_script(focused) == "Put it back")
    press(page, Keys.ENTER)
    until(page, lambda: not page.execute_script("return document.querySelector('.notice a')"))
    assert page.execute_script("return document.activeElement.matches('[data-row]')")


def test_controls_and_messages_have_names(page, server):
    def named(role: str) -> list[str]:
        nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [one["name"]["value"] for one in nodes if one["role"]["value"] == role]

    # The tree of names follows the page.
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    until(page, lambda: "budget in tokens" in named("textbox"))
    shown = "return document.querySelector('[data-budget]').getAttribute('aria-valuetext')"
    assert page.execute_script(shown) == "300 tokens"
    page.get(f"{server.origin}/ui/conversation?p=work&i=chat&c=queue&page=1")
    until(page, lambda: named("article")[:1] == ["user 2026-01-05 09:00"])


def test_the_words_of_a_table_stay_whole_and_code_is_left_to_right(page, server, memory):
    table = "| name | what |\n|---|---|\n| a | " + "text that wraps " * 20 + "|"
    texts = [table, "مرحبا\n\n```sh\napt install x\n```"]
    messages = [message("user", one, 400 + at, "shown") for at, one in enumerate(texts)]
    memory.ingest(messages, partition="work", instance="chat", embed=False)
    page.get(f"{server.origin}/ui/conversation?p=work&i=chat&c=shown&page=1")
    lines, align, direction = page.execute_script(
        """
        const style = (selector) => getComputedStyle(document.querySelector(selector));
        const words = document.createRange();
        words.selectNodeContents(document.querySelector(".text th"));
        return [words.getClientRects().length, style(".text td").textAlign,
            style(".text pre").direction];
        """
    )
    assert (lines, align, direction) == (1, "start", "ltr")
