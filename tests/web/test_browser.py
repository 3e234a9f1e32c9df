"""The page in a real browser."""

import pytest
from browser_page import asked, cut_pixels, press, resize, text, until, watch_requests
from builders import FakeEmbedder
from each import each
from page_server import HOSTILE, message

from reservoir_cli.messages import Conversation, Scope
from reservoir_cli.retrieval.recall_floor import floor_property
from reservoir_cli.server.web.read_conversations import CONVERSATIONS, MESSAGES

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.browser
VIEWS = (
    "/ui/",
    "/ui/?q=redis",
    "/ui/conversation?p=work&i=chat&c=queue&page=1",
    "/ui/context?q=why+did+we+drop+redis&p=work&budget=300",
    "/ui/usage",
)


def test_hostile_messages_run_no_script_and_the_policy_stops_an_injected_one(page, server, memory):
    probes = [probe.replace("alert(1)", "window.ran=1") for probe, _, _ in HOSTILE]
    memory.ingest(
        [message("user", f"redis {probe}", 200 + n, "evil") for n, probe in enumerate(probes)],
        partition="work",
        instance="chat",
    )
    memory.ingest([message("user", probes[0], 300, probes[1])], partition="work", instance="chat")
    evil = "/ui/conversation?p=work&i=chat&c=evil&page=1"
    for address in (*VIEWS, evil, "/ui/context?q=%3Cscript%3Ewindow.ran=1%3C/script%3E&p=work"):
        page.get(server.origin + address)
        until(page, lambda: page.execute_script("return document.readyState") == "complete")
        assert page.execute_script("return window.ran") is None
        assert "49" not in page.title
    assert "{{7*7}}" in page.page_source or page.get(server.origin + evil) is None
    assert "{{7*7}}" in page.page_source
    assert server.violations == 0
    # A browser runs a handler once it is needed, which a click makes certain.
    plant = """document.body.insertAdjacentHTML("beforeend", '<b onclick="window.ran=1">')"""
    page.execute_script(f"{plant}; document.body.lastElementChild.click()")
    until(page, lambda: server.violations)  # a browser may report one twice
    assert page.execute_script("return window.ran") is None


def test_results_appear_while_typing(start, server):
    press(start, "/")
    assert start.execute_script("return document.activeElement.name") == "q"
    press(start, "redis")
    until(start, lambda: "<mark>Redis</mark>" in start.page_source)
    until(start, lambda: start.current_url == f"{server.origin}/ui/?q=redis")


def test_letters_that_are_being_composed_are_not_searched(start, server):
    press(start, "/")
    watch_requests(start)
    composed = {"text": "redi", "selectionStart": 4, "selectionEnd": 4}
    start.execute_cdp_cmd("Input.imeSetComposition", composed)
    assert asked(start, 300) == 0
    assert start.current_url == f"{server.origin}/ui/"
    start.execute_cdp_cmd("Input.insertText", {"text": "redis"})
    until(start, lambda: start.current_url == f"{server.origin}/ui/?q=redis")


def test_keys_move_between_rows_and_open_one(start):
    press(start, "j")
    first = start.switch_to.active_element.get_attribute("href")
    press(start, "j")
    second = start.switch_to.active_element.get_attribute("href")
    assert first != second
    press(start, "k")
    assert start.switch_to.active_element.get_attribute("href") == first
    press(start, Keys.ARROW_DOWN, Keys.ENTER)
    until(start, lambda: start.current_url.split("#")[0] == second)


@each("address", VIEWS)
def test_tab_reaches_every_control(page, server, address):
    page.get(server.origin + address)
    controls = page.execute_script(
        """
        window.reached = new Set();
        addEventListener("focusin", (event) => window.reached.add(event.target));
        window.wanted = [...document.querySelectorAll(
            "a[href], button, input:not([type=hidden]), select, summary, pre[tabindex='0']"
        )].filter((one) => !one.hidden && one.closest("details:not([open])") === null
            || one.matches("summary"));
        return window.wanted.length;
        """
    )
    missing = "return window.wanted.filter((one) => !window.reached.has(one)).length"
    for _ in range(12):
        ActionChains(page).send_keys(Keys.TAB * (controls // 6 + 2)).perform()
        if not page.execute_script(missing):
            break
    assert page.execute_script(missing) == 0


def test_the_text_of_a_message_is_copied_as_it_is_stored(page, server):
    grant = {
        "origin": server.origin,
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
    }
    page.execute_cdp_cmd("Browser.grantPermissions", grant)
    page.get(f"{server.origin}/ui/conversation?p=work&i=chat&c=queue&page=1")
    button = "document.querySelector('article.assistant [data-copy-from]')"
    page.execute_script(f"{button}.focus()")
    page.execute_script(
        f"""
        window.labels = [];
        new MutationObserver(() => window.labels.push({button}.textContent))
            .observe({button}, {{ childList: true }});
        """
    )
    press(page, Keys.ENTER)
    until(page, lambda: page.execute_script("return window.labels.length == 2"))
    assert page.execute_script("return window.labels") == ["copied", "copy the text of message 2"]
    copied = page.execute_async_script(
        "const done = arguments[0]; navigator.clipboard.readText().then(done, done)"
    )
    assert copied == "It lost jobs in the failover:\n\n```py\nx = 1\n```"
    assert server.violations == 0


def test_moving_a_slider_updates_the_selection(page, server):
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    before = text(page, ".legend")
    page.execute_script("document.querySelector('[name=recency_weight]').focus()")
    press(page, Keys.END)
    until(page, lambda: text(page, ".legend") != before)
    assert "+ 1 ×" in text(page, ".legend")
    assert "RESERVOIR_RECENCY_WEIGHT=1.0" in text(page, "#command")
    until(page, lambda: "recency_weight=1" in page.current_url)
    page.execute_script("document.querySelector('[data-reset]').click()")
    until(page, lambda: text(page, ".legend") == before)


def test_the_arrow_keys_move_the_slider_of_the_budget(page, server):
    slider = "document.querySelector('[data-budget]')"
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    before = page.execute_script(f"{slider}.focus(); return Number({slider}.value)")
    page.execute_script("document.querySelector('.count').textContent = 'old'")
    press(page, Keys.ARROW_RIGHT)
    until(page, lambda: text(page, ".count") != "old")
    assert page.execute_script(f"return Number({slider}.value)") == before + 1


def test_a_reset_resets_the_budget_which_an_empty_field_names(page, server):
    placeholder = "return document.querySelector('[name=budget]').placeholder"
    slider = "return document.querySelector('[data-budget]').value"
    page.get(f"{server.origin}/ui/context?q=redis&p=work")
    usual = page.execute_script(slider)
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    assert page.execute_script(slider) != usual
    page.execute_script("document.querySelector('[data-reset]').click()")
    until(page, lambda: text(page, ".line span") == "budget 4,000")
    assert page.execute_script("return document.querySelector('[name=budget]').value") == ""
    assert page.execute_script(placeholder) == "4,000"
    assert page.execute_script(slider) == usual
    page.execute_script("document.querySelector('[name=model]').focus()")
    press(page, "gpt-4", Keys.ENTER)
    until(page, lambda: page.execute_script(placeholder) != "4,000")
    assert text(page, ".line span") == "budget " + page.execute_script(placeholder)


@each("scheme", ["light", "dark"])
def test_the_question_and_recalled_messages_differ_in_the_bar(page, server, scheme):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    recalled, question = page.execute_script(
        """
        return [".key.recalled", ".key.current"].map((key) => getComputedStyle(
            document.querySelector(key)).backgroundColor.match(/\\d+/g).map(Number));
        """
    )
    assert sum(abs(a - b) for a, b in zip(recalled, question, strict=True)) > 100


def test_a_floor_of_0_can_be_set_and_an_unmoved_slider_uses_the_default(page, server, memory):
    floor = "return document.querySelector('[name=recall_floor]').value"
    page.get(f"{server.origin}/ui/context?p=work")
    assert page.execute_script(floor) == "0"
    memory.store.set_property(floor_property(FakeEmbedder().model_id), "0.36")
    page.execute_script("document.querySelector('[name=q]').focus()")
    page.switch_to.active_element.send_keys("redis")
    until(page, lambda: page.execute_script(floor) == "0.36")
    assert "--floor" not in text(page, "#command")
    page.execute_script("document.querySelector('[name=recall_floor]').focus()")
    press(page, Keys.HOME)
    until(page, lambda: "--floor 0.0" in text(page, "#command"))
    assert page.execute_script(floor) == "0"


def test_the_back_button_shows_no_deleted_conversation(page, server):
    page.get(server.origin + "/ui/conversation?p=work&i=chat&c=queue&page=1")
    page.execute_script("document.querySelector('a[href*=delete]').click()")
    until(page, lambda: "/ui/delete" in page.current_url)
    page.execute_script("document.querySelector('main form button').click()")
    until(page, lambda: "gone=5" in page.current_url)
    for _ in range(2):
        page.back()
        until(page, lambda: "gone" not in page.current_url)
        until(page, lambda: "Where jobs should live" not in page.page_source)


@each("what", ["i=chat&c=queue", "id=1"])
def test_a_deletion_begins_at_the_safe_choice(page, server, what):
    page.get(f"{server.origin}/ui/delete?p=work&{what}")
    until(page, lambda: page.switch_to.active_element.text == "Keep it")
    press(page, Keys.ENTER)
    until(page, lambda: "/ui/conversation" in page.current_url)


def test_a_typed_question_stays_when_the_session_has_ended(page, server):
    page.get(server.origin + "/ui/context?q=redis&p=work")
    server.app.state.page._sessions.clear()
    press(page, "/", Keys.END, " and jobs")
    until(page, lambda: "This page is locked" in page.page_source)
    field = "return document.querySelector('[name=q]')?.value"
    assert page.execute_script(field) == "redis and jobs"


def test_earlier_results_are_marked_while_the_server_does_not_answer(page, server):
    page.get(server.origin + "/ui/context?q=redis&p=work")
    page.execute_cdp_cmd("Network.enable", {})
    page.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*"]})
    press(page, "/", Keys.END, " and jobs")
    until(page, lambda: "The server does not answer." in text(page, "#chosen"))
    assert text(page, "#command").endswith("context --partition work --budget 4000 redis")
    page.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    press(page, "!")
    until(page, lambda: "redis and jobs!" in text(page, "#command"))
    assert "The server does not answer." not in text(page, "#chosen")


@each(
    ("address", "field", "typed", "problem", "row"),
    [
        ("/ui/?q=redis", "since", "2026-0", "'2026-0' is not a time", ".row"),
        ("/ui/context?q=redis&p=work", "model", "gp", "unknown model 'gp'", ".weigh"),
        ("/ui/context?q=redis&p=work", "budget", "1.", "budget is not", ".weigh"),
    ],
)
def test_a_half_typed_field_is_not_asked_and_a_wrong_one_keeps_the_results(
    page, server, address, field, typed, problem, row
):
    page.get(server.origin + address)
    watch_requests(page)
    page.execute_script(f"document.querySelector('[name={field}]').select()")
    press(page, *typed)
    assert asked(page, 300) == 0
    press(page, Keys.TAB)
    until(page, lambda: asked(page) == 1)
    until(page, lambda: page.execute_script("return document.querySelector('.stale')"))
    assert text(page, ".stale").startswith("That did not work: ")
    assert problem in text(page, ".stale")
    assert page.execute_script(f"return document.querySelector('{row}')")
    assert page.current_url == server.origin + address
    page.execute_script(f"document.querySelector('[name={field}]').select()")
    press(page, Keys.DELETE, Keys.ENTER)
    until(page, lambda: not page.execute_script("return document.querySelector('.stale')"))


@each("width", [390, 1440])
def test_the_actions_of_a_message_are_evenly_spaced(page, server, width):
    resize(page, width)
    page.get(f"{server.origin}/ui/conversation?p=work&i=chat&c=queue&page=1")
    gaps = page.execute_script(
        """
        const words = [...document.querySelectorAll("article:first-child .tools :is(a, button)")];
        const edges = words.map((word) => {
            const range = document.createRange();
            range.selectNodeContents(word.firstChild);
            return range.getBoundingClientRect();
        });
        return edges.slice(1).map((edge, before) => edge.left - edges[before].right);
        """
    )
    assert len(gaps) == 3
    assert max(gaps) - min(gaps) < 1


def test_a_row_opens_and_stays_open(page, server):
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=300")
    press(page, "j", Keys.ENTER)
    opened = "return document.querySelectorAll('.weigh details[open]').length"
    until(page, lambda: page.execute_script(opened) == 1)
    before = text(page, "#printed-title")
    page.execute_script(
        "const form = document.querySelector('[name=format]'); form.value = 'json';"
        "form.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    until(page, lambda: text(page, "#printed-title") != before)
    assert page.execute_script(opened) == 1


def test_a_thousand_messages_scroll(page, server, memory):
    messages = [message("user", f"turn {n}", 100 + n, "long") for n in range(1_000)]
    memory.ingest(messages, partition="work", instance="chat", embed=False)
    page.get(f"{server.origin}/ui/conversation?p=work&i=chat&c=long&page=1")
    scroll = "scrollTo(0, document.documentElement.scrollHeight); "
    count = "return document.querySelectorAll('article').length"
    for least in (100, 150, 200):
        until(page, lambda least=least: page.execute_script(scroll + count) >= least)
    ids = "return [...document.querySelectorAll('article')].map((one) => one.id)"
    shown = page.execute_script(ids)
    assert len(shown) == len(set(shown))
    hidden = "return document.querySelectorAll('[data-copy-from][hidden]').length"
    assert page.execute_script(hidden) == 0


def test_a_list_goes_on_when_a_busy_browser_reports_late(page, server, memory):
    messages = [message("user", f"turn {n}", 100 + n, "long") for n in range(300)]
    memory.ingest(messages, partition="work", instance="chat", embed=False)
    late = """
        const Observer = IntersectionObserver;
        window.IntersectionObserver = class extends Observer {
            constructor(tell, options) {
                let states = [];
                const wait = () => setTimeout(() => { tell(states); states = []; }, 300);
                super((news) => { if (states.push(...news) === news.length) wait(); }, options);
            }
        };
    """
    added = page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": late})
    try:
        page.get(f"{server.origin}/ui/conversation?p=work&i=chat&c=long&page=1")
        scroll = "scrollTo(0, document.documentElement.scrollHeight); "
        count = "return document.querySelectorAll('article').length"
        until(page, lambda: page.execute_script(scroll + count) == 300)
    finally:
        page.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_twelve_rows_of_a_month_fit_a_screen_and_a_month_has_one_heading(page, server, memory):
    count = CONVERSATIONS + 20
    messages = [message("user", f"question {n} " * 40, n, f"talk {n}") for n in range(count)]
    memory.ingest(messages, partition="many", instance="chat", embed=False)
    resize(page, 1280, 900)
    page.get(f"{server.origin}/ui/?p=many")
    rows = "[...document.querySelectorAll('.row')]"
    whole = f"{rows}.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length"
    assert page.execute_script(f"return {whole}") >= 12
    page.execute_script("scrollTo(0, document.documentElement.scrollHeight)")
    until(page, lambda: page.execute_script(f"return {rows}.length") == count)
    assert page.execute_script("return document.querySelectorAll('.month').length") == 1


@each("width", [320, 390, 1440])
def test_the_reason_of_a_row_is_never_cut(page, server, width):
    resize(page, width)
    page.get(f"{server.origin}/ui/context?q=redis&p=work&budget=60")
    assert set(cut_pixels(page, ".why")) == {0}


def test_the_tables_of_use_fit_a_phone(page, server, memory):
    memory.runs.record(memory.context("redis?", partition="work", budget=300))
    resize(page, 390)
    page.get(f"{server.origin}/ui/usage")
    assert cut_pixels(page, ".scroll") == [0, 0]


def ring_beyond(page, width: int) -> float:
    """Return by how many pixels the ring around the message of the permalink leaves the screen."""
    return page.execute_script(
        """
        const message = document.querySelector(":target");
        message.focus({focusVisible: true});
        const style = getComputedStyle(message), box = message.getBoundingClientRect();
        const ring = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
        return Math.max(ring - box.left, box.right + ring - arguments[0]);
        """,
        width,
    )


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_a_permalink_shows_its_message(page, server, memory, width, height):
    messages = [message("user", f"turn {n}", 100 + n, "long") for n in range(200)]
    stored = memory.ingest(messages, partition="work", instance="chat", embed=False)
    resize(page, width, height)
    for at in (77, 130):
        page.get("about:blank")
        page.get(f"{server.origin}/ui/message?p=work&id={stored[at].id}")
        header, top, bottom, rows = page.execute_async_script(
            """
            const done = arguments[0];
            const edge = (selector) => document.querySelector(selector).getBoundingClientRect();
            let still = 0, before = NaN;
            requestAnimationFrame(function wait() {
                still = scrollY === before ? still + 1 : 0;
                before = scrollY;
                if (still < 15) return requestAnimationFrame(wait);
                done([edge(".top").bottom, edge(":target").top, edge(":target").bottom,
                    document.querySelectorAll("article").length]);
            });
            """
        )
        assert header <= top < bottom <= height
        assert rows == MESSAGES
        assert ring_beyond(page, width) <= 0


@pytest.mark.parametrize("width", [390, 1440])
def test_every_view_fits_its_width(page, server, memory, width):
    # Long words: names, a minified file, and code.
    line = '{"redis":' + ",".join(f'"key{n}":{n}' for n in range(200)) + "}"
    long = [message("user", line, 200, "long"), message("user", f"```\n{line}\n```", 201, "long")]
    memory.ingest(long, partition="work", instance="chat", embed=False)
    memory.ingest([message("user", "x", 202)], partition="p" * 70, instance="i" * 70, embed=False)
    memory.store.add_conversations(Scope("work", "chat"), [Conversation("long", "x" * 300)])
    resize(page, width)
    thread = "p=work&i=chat&c=long"
    for address in (*VIEWS, f"/ui/conversation?{thread}&page=1", f"/ui/delete?{thread}"):
        page.get(server.origin + address)
        for scheme in ("light", "dark"):
            media = [{"name": "prefers-color-scheme", "value": scheme}]
            page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
            # A phone increases innerWidth if content does not fit.
            shown = "return Math.max(document.documentElement.scrollWidth, innerWidth)"
            assert page.execute_script(shown) <= width, address
            ground = "return getComputedStyle(document.documentElement).background"
            assert ("rgb(23, 25, 26)" in page.execute_script(ground)) == (scheme == "dark")
    assert server.violations == 0
