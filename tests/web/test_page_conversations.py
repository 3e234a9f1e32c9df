"""The list of conversations, its search, and the view of a conversation."""

import html
import re
from html import unescape as html_of

import pytest
from each import each
from page_server import HOSTILE, csrf_of, message
from sqlite_steps import steps

from reservoir_cli.messages import Conversation, Filter, Message, Scope
from reservoir_cli.server import limits
from reservoir_cli.server.limits import MAX_RENDERED
from reservoir_cli.server.web.markdown import to_html
from reservoir_cli.server.web.read_conversations import CONVERSATIONS, MESSAGES, read_conversation


@each(("text", "never", "shown"), HOSTILE)
def test_messages_are_never_rendered_as_html(text, never, shown):
    html = to_html(text)
    assert never not in html
    assert shown in html


def test_markdown_and_code_are_rendered():
    html = to_html("**bold**\n\n```py\ndef f(): pass\n```\n\n[x](https://e.example)\n\n1. a")
    assert "<strong>bold</strong>" in html
    assert '<span class="k">def</span>' in html
    assert '<a href="https://e.example" rel="noopener noreferrer nofollow">x</a>' in html
    assert "<li>a</li>" in html


def test_a_link_without_a_host_leads_nowhere():
    for target in ("/ui/delete?p=work", "src/app.py", "//e.example", "?q=x", "#at"):
        assert "href" not in to_html(f"[x]({target})")
    for target in ("HTTPS://e.example", "mailto:a@e.example"):
        assert f'href="{target}"' in to_html(f"[x]({target})")


def test_a_list_of_single_messages_counts_no_conversations(client, memory):
    memory.ingest([message("user", "alone", 1)], partition="loose", instance="cli", embed=False)
    count = client.get("/ui/?p=loose").text.partition('class="count">')[2].partition("</p>")[0]
    assert count.strip() == "Single messages"


def test_the_list_has_every_conversation_newest_first(client, memory):
    html = client.get("/ui/").text
    assert memory.stats()["store"]["conversations"] == 1
    assert "1 conversation and single messages, the newest first" in html
    assert "1 conversation, the newest first" in client.get("/ui/?p=work").text
    assert html.index("Single messages of cli") < html.index("Where jobs should live")
    assert "work/chat · chatgpt · 5 messages" in html


def test_rows_have_a_snippet_and_a_month_and_name_the_source_once(client, memory):
    html = client.get("/ui/?p=work").text
    assert '<li class="month" data-month="January 2026"><h2>January 2026</h2></li>' in html
    assert 'class="snippet" dir="auto">why did we drop **Redis** for the queue?<' in html
    for tool in ("codex", "chat"):
        conversations = [Conversation(f"from-{tool}", "Bread", "codex")]
        memory.store.add_conversations(Scope("bread", tool), conversations)
        memory.ingest(
            [
                message("user", "Bread", 9, f"from-{tool}"),
                message("assistant", "Flour.", 50_000, f"from-{tool}"),
            ],
            partition="bread",
            instance=tool,
        )
    html = client.get("/ui/?p=bread").text
    assert "bread/codex · 2 messages" in html
    assert "bread/chat · codex · 2 messages" in html
    assert html.count('class="month"') == 1
    assert html.count(">Flour.<") == 2  # not the question, which the title repeats


def test_documents_stand_under_their_titles(client, memory):
    texts = ("# Rye\n\nflour & water", "---\ntitle: <b>Spelt</b>\n---\nmalt")
    documents = [
        Message("user", text, source="markdown", source_id=str(number))
        for number, text in enumerate(texts)
    ]
    memory.ingest([*documents, message("user", "a single note", 1)], partition="bread")
    html = client.get("/ui/?p=bread").text
    assert "2 documents and single messages, the newest first" in html
    assert "1 message " in html
    for title, snippet in (("Rye", "flour &amp; water"), ("&lt;b&gt;Spelt&lt;/b&gt;", "malt")):
        assert f">{title}</span>" in html
        assert f">{snippet}</span>" in html
    [first, _] = re.findall(r'href="(/ui/document[^"]*)"', html)
    document = client.get(html_of(first))
    assert "Spelt" in document.text
    assert "a single note" not in document.text
    number = re.findall(r"id=(\d+)", first)[0]
    assert client.get(f"/ui/message?p=bread&id={number}").url.path == "/ui/document"
    assert "Spelt" not in client.get("/ui/conversation?p=bread&i=bread").text
    assert "Spelt" in client.get("/ui/?p=bread&q=malt").text
    assert client.get("/ui/document?p=work&id=1").status_code == 404
    confirmation = client.get(f"/ui/delete?p=bread&id={number}").text
    data = {"csrf": csrf_of(confirmation)}
    assert client.post(f"/ui/delete?p=bread&id={number}", data=data).url.path == "/ui/"
    assert "Spelt" not in client.get("/ui/?p=bread").text


def test_the_text_of_a_message_is_as_it_is_stored(client, memory):
    stored = memory.ingest([Message("user", "<b>**a**</b>\u200d\r\nb")], partition="work")
    for number, expected in (
        (stored[0].id, stored[0].content),
        (1, "why did we drop **Redis** for the queue?"),
    ):
        answer = client.get("/ui/message", params={"p": "work", "id": number, "text": 1})
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.content.decode() == expected


def test_the_list_is_filtered(client):
    def listed(query: str) -> str:
        return client.get(f"/ui/?{query}").text

    assert "Where jobs" not in listed("p=home")
    assert "Single messages" not in listed("p=work")
    assert "0 conversations" in listed("p=work&i=other")
    assert "work/chat · chatgpt · 1 message " in listed("role=tool")
    assert "Single messages" not in listed("until=2026-01-05T10:00Z")
    assert "Where jobs" not in listed("since=2026-01-05T10:00Z")
    assert "Nothing here" in listed("p=nowhere")


def test_an_invalid_filter_is_reported(client):
    long = f"page=00000000000000000001{9 * 10**98}"
    for query in (
        "role=king",
        "since=soonish",
        "page=x",
        "page=0",
        "page=99999999999999999999",
        long,
    ):
        answer = client.get(f"/ui/?{query}")
        assert answer.status_code == 400, query
        assert "That did not work" in answer.text


def test_a_search_shows_the_part_with_its_words_marked(client):
    html = client.get("/ui/?q=redis&p=work").text
    assert "<mark>Redis</mark>" in html
    assert 'href="/ui/message?p=work&amp;id=1"' in html
    part = client.get("/ui/?q=redis&p=work&part=1").text
    assert "<mark>Redis</mark>" in part
    assert "<html" not in part


def test_a_search_is_filtered_too(client):
    assert "<mark>" not in client.get("/ui/?q=redis&p=work&role=tool").text
    assert "<mark>" not in client.get("/ui/?q=redis&p=home").text


def test_a_permalink_leads_to_the_message(client):
    answer = client.get("/ui/message?p=work&id=2")
    assert answer.url.path == "/ui/conversation"
    assert answer.url.fragment == "m2"
    assert 'id="m2"' in answer.text
    assert client.get("/ui/message?p=home&id=2").status_code == 404
    assert client.get("/ui/message?p=work").status_code == 400


def test_a_conversation_shows_tool_calls_and_results_unchanged(client):
    html = client.get("/ui/conversation?p=work&i=chat&c=queue").text
    assert "Where jobs should live" in html
    assert "<strong>Redis</strong>" in html
    assert "[call prices {&#34;of&#34;: &#34;redis&#34;}]" in html
    assert "29 a month" in html
    assert client.get("/ui/conversation?p=work&i=chat&c=other").status_code == 404


def test_a_long_message_is_cut_and_can_be_expanded(client, memory):
    memory.ingest([Message("user", "long " * MAX_RENDERED)], partition="home", embed=False)
    number = max(message.id for message in memory.view(memory.scope("home"), 0))
    html = client.get(f"/ui/message?p=home&id={number}").text
    assert f"{4 * MAX_RENDERED:,} more characters" in html
    assert client.get(f"/ui/message?p=home&id={number}&whole=1").text.count("long ") == MAX_RENDERED


def test_messages_are_plain_text_once_rendering_takes_too_long(client, memory, monkeypatch):
    monkeypatch.setattr(limits, "RENDER_TIME", -1.0)
    memory.ingest(
        [message("user", "<b>*bold*</b>\u202e", 400, "queue")], partition="work", instance="chat"
    )
    html = client.get("/ui/conversation?p=work&i=chat&c=queue").text
    assert '<pre class="whole">&lt;b&gt;*bold*&lt;/b&gt;[U+202E]</pre>' in html
    assert "<strong>" not in html
    assert '<details class="result"><summary>29 a month' in html


def test_code_is_highlighted_unless_its_lexer_would_take_long():
    code = "public int size() { return 1; }\n"
    assert "<span" in to_html(f"```java\n{code * 100}```")
    assert "<span" not in to_html("```java\n" + "why did\nit fail " * 100 + "\n```")
    assert "<span" not in to_html("```ts\nlet a = b" + ".c" * 500 + "\n```")


def test_ten_thousand_messages_are_paged(client, memory):
    messages = [message("user", f"turn {n}", 100 + n, "long") for n in range(10_000)]
    memory.ingest(messages, partition="work", instance="chat", embed=False)
    address = "/ui/conversation?p=work&i=chat&c=long"
    last = client.get(address).text
    assert last.count("<article") == MESSAGES
    assert "turn 9999" in last
    assert "9,951–10,000 of 10,000" in last
    first = client.get(f"{address}&page=1").text
    assert 'rel="next"' in first
    middle = memory.view(memory.scope("work", "chat"), 5_000, Filter(conversation_id="long"))[0]
    html = client.get(f"/ui/message?p=work&id={middle.id}").text
    assert f'id="m{middle.id}"' in html
    assert html.count("<article") == MESSAGES


def test_many_conversations_are_paged(client, memory):
    messages = [message("user", f"question {n}", n, f"c{n}") for n in range(CONVERSATIONS + 5)]
    memory.ingest(messages, partition="many", embed=False)
    first = client.get("/ui/?p=many").text
    assert first.count("data-row ") == CONVERSATIONS
    assert "page 1 of 2" in first
    assert client.get("/ui/?p=many&page=2").text.count("data-row ") == 5
    assert client.get("/ui/?p=many&page=9").text.count("data-row ") == 5


@pytest.mark.parametrize("mode", ["mark", "mask"])
def test_secrets_are_masked(memory, monkeypatch, request, mode):
    monkeypatch.setenv("RESERVOIR_REDACT", mode)
    client = request.getfixturevalue("client")  # the server reads the settings when it starts
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    [stored] = memory.ingest([Message("user", f"the key is {key}")], partition="home", embed=False)
    pages = ("/ui/?q=key", "/ui/conversation?p=home&i=home", "/ui/context?q=key&p=home")
    for address in (*pages, f"/ui/message?p=home&id={stored.id}&text=1"):
        html = client.get(address).text
        assert "the key is" in html.replace("<mark>", "").replace("</mark>", "")
        assert (key in html) == (mode == "mark"), address


def test_a_secret_in_the_id_of_a_conversation_is_masked(memory, monkeypatch, request):
    monkeypatch.setenv("RESERVOIR_REDACT", "mask")
    client = request.getfixturevalue("client")  # the server reads the settings when it starts
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    [first, _] = memory.ingest(
        [message("user", "what is new?", 200, key), message("assistant", "much", 201, key)],
        partition="keys",
        instance="chat",
        embed=False,
    )
    listed = client.get("/ui/?p=keys").text
    assert "what is new?" in listed  # its title
    [address] = re.findall(r'href="(/ui/conversation[^"]*)"', listed)
    conversation = client.get(html.unescape(address))
    permalink = client.get(f"/ui/message?p=keys&id={first.id}")
    for answer in (conversation, permalink, client.get(f"/ui/conversation?p=keys&i=chat&c={key}")):
        assert "much" in answer.text
        assert key not in answer.text
    for answer in (conversation, permalink):
        assert key not in str(answer.url)
    [delete] = re.findall(r'href="(/ui/delete[^"]*c=[^"]*)"', conversation.text)
    confirmation = client.get(html.unescape(delete)).text
    result = client.post(html.unescape(delete), data={"csrf": csrf_of(confirmation)})
    assert "Deleted 2 messages." in result.text
    assert key not in listed + confirmation + result.text


def test_a_message_is_pinned_and_unpinned(client, memory):
    shown = client.get("/ui/message?p=work&id=3")
    for pinned in (True, False):
        [address] = re.findall(r'action="(/ui/pin[^"]*id=3[^"]*)"', shown.text)
        assert client.post(html.unescape(address)).status_code == 403
        shown = client.post(html.unescape(address), data={"csrf": csrf_of(shown.text)})
        assert (shown.url.path, shown.url.fragment) == ("/ui/conversation", "m3")
        assert [bool(stored.pinned_at) for stored in memory.messages([3])] == [pinned]
        assert (">pinned<" in shown.text) == pinned
    missing = client.post("/ui/pin?p=work&id=99", data={"csrf": csrf_of(shown.text)})
    assert missing.status_code == 404


def test_deleting_a_message_needs_confirmation(client, memory):
    confirmation = client.get("/ui/delete?p=work&id=3")
    assert "Delete this message?" in confirmation.text
    assert "and what is the cost?" in confirmation.text
    assert memory.messages([3])
    result = client.post("/ui/delete?p=work&id=3", data={"csrf": csrf_of(confirmation.text)})
    assert "Deleted 1 message." in result.text
    assert "and what is the cost?" not in result.text
    assert not memory.messages([3])
    assert client.get("/ui/delete?p=work&id=3").status_code == 404


def test_deleting_a_conversation_deletes_exactly_its_messages(client, memory):
    address = "/ui/delete?p=work&i=chat&c=queue"
    html = client.get(address).text
    assert "Where jobs should live</b>, 5 messages" in html
    assert "Deleted 5 messages." in client.post(address, data={"csrf": csrf_of(html)}).text
    assert [message.content for message in memory.view(count=0, scope=memory.scope("home", "cli"))]
    assert not memory.find(memory.scope("work", "chat"))


def test_the_last_single_message_can_be_deleted(client):
    csrf = csrf_of(client.get("/ui/delete?p=home&id=6").text)
    result = client.post("/ui/delete?p=home&id=6", data={"csrf": csrf})
    assert result.url.path == "/ui/"
    assert "Deleted 1 message." in result.text


def test_opening_a_conversation_does_not_read_the_others(memory):
    thread = ("many", "chat", "c0")

    def store(first: int, count: int) -> None:
        messages = [
            Message("user", f"question {number}", conversation_id=f"c{number}")
            for number in range(first, first + count)
        ]
        memory.ingest(messages, partition="many", instance="chat", embed=False)

    store(0, 50)
    cost = steps(memory.store, lambda: read_conversation(memory, thread, 1))
    store(50, 200)
    assert steps(memory.store, lambda: read_conversation(memory, thread, 1)) <= cost + 2
    assert read_conversation(memory, thread, 1).title == "question 0"
