"""What people see, hear and reach with keys on the page, in a real browser."""

import pytest
from page_server import PageServer, message

pytest.importorskip("selenium")
from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser


def test_the_words_of_a_table_stay_whole_and_code_is_left_to_right(
    page: Chrome, server: PageServer, memory
) -> None:
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
