"""The view of a context window, with the same figures as the command."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from builders import FakeEmbedder
from each import each
from page_server import message

from reservoir_cli.context.prepare_request import ContextOptions
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval.recall_floor import floor_property
from reservoir_cli.server.web.window import choose
from reservoir_cli.server.web.window_form import WindowForm, context_command

QUESTION = "why did we drop redis for the queue?"


def build_question(**query: str) -> WindowForm:
    return WindowForm.of({"q": QUESTION, "p": "work", "budget": "300", **query})


@each(
    "query",
    [
        {},
        {"budget": "90"},
        {"format": "openai", "model": "gpt-4", "budget": ""},
        {"recency_weight": "0.9", "similarity_weight": "0.1"},
        {"excerpts": "off", "recall_floor": "0"},
        {"recall_floor": "2"},
    ],
)
def test_the_figures_are_those_of_the_json_document(memory, query):
    question = build_question(**query)
    shown = choose(memory, question, memory.location)
    document = memory.context(
        QUESTION,
        partition="work",
        model=question.model,
        budget=question.budget,
        format=question.form,
        options=question.options,
        explain=True,
    ).to("json", explain=True)
    printed = {row["id"]: row for row in document["messages"] if row["id"]}
    assert {row.message.id: row.tokens for row in shown.kept} == {
        number: row["tokens"] for number, row in printed.items()
    }
    explained = {row["id"]: row for row in document["explain"]}
    rows = [*shown.kept, *shown.left_out]
    assert {row.message.id for row in rows} == set(explained)
    for row in rows:
        explanation = explained[row.message.id]
        assert row.kept == (explanation["outcome"] == "kept")
        assert row.priority == explanation["priority"]
        for name in ("similarity", "cosine", "recency", "priority"):
            assert f"{name} {explanation[name]:.3f}" in row.scores
        assert f"BM25 {explanation['bm25']:.2f}" in row.scores
        assert sum(float(part.value) for part in row.parts) == pytest.approx(
            explanation["priority"], abs=0.004
        )
    fixed, budget = (
        document["budget"]["used"] - document["budget"]["history_used"],
        document["budget"],
    )
    assert shown.above == fixed
    running = fixed
    for row in shown.kept:
        running += row.tokens
        assert row.running == running
    assert running + shown.framing == budget["used"]


def test_parts_of_a_similarity_add_up_to_it(memory):
    window = memory.context(QUESTION, partition="work", budget=300, explain=True)
    for row in window.to("json", explain=True)["explain"]:
        assert sum(row["parts"].values()) == pytest.approx(row["similarity"], abs=1e-9)
        assert tuple(row["parts"]) == ("meaning", "words", "question", "surroundings", "date")
    plain = memory.context(QUESTION, partition="work", budget=300).to("json", explain=True)
    assert all(row["parts"] == {} for row in plain["explain"])


def test_messages_that_did_not_fit_come_first_below_the_line(memory):
    rows = choose(memory, build_question(budget="90"), memory.location).left_out
    assert rows
    assert [row.near for row in rows] == sorted((row.near for row in rows), reverse=True)
    near = [row.priority for row in rows if row.near]
    assert near == sorted(near, reverse=True)


def test_excluding_a_message_lets_others_in(memory):
    newcomers = set()
    for budget in map(str, range(90, 200, 10)):
        whole = choose(memory, build_question(budget=budget), memory.location)
        best = max(whole.kept, key=lambda row: row.tokens)
        question = replace(build_question(budget=budget), without=(best.message.id,))
        without = choose(memory, question, "")
        kept = {row.message.id for row in without.kept}
        assert best.message.id not in kept
        assert without.newcomers == kept - {row.message.id for row in whole.kept}
        before = {row.message.id: row.priority for row in (*whole.kept, *whole.left_out)}
        assert all(before[row.message.id] == row.priority for row in without.kept)
        newcomers |= without.newcomers
    assert newcomers


def test_a_question_is_embedded_once(monkeypatch, store_path):
    from builders import FakeEmbedder

    class Counting(FakeEmbedder):
        encoded = 0

        def encode_query(self, text):
            Counting.encoded += 1
            return super().encode_query(text)

    monkeypatch.setattr(
        "reservoir_cli.embedding.load_model.load_embedder", lambda *_, **__: Counting()
    )
    with Reservoir.open(store_path) as reservoir:
        embedder = reservoir.indexer.embedder()
    for _ in range(3):
        embedder.encode_query("why?")
    assert Counting.encoded == 1
    for number in range(100):
        embedder.encode_query(str(number))
    embedder.encode_query("why?")
    assert Counting.encoded == 102


def test_the_view_has_rows_budget_and_the_printed_form(client):
    html = client.get("/ui/context", params={"q": QUESTION, "p": "work", "budget": "300"}).text
    assert "budget 300" in html
    assert html.count('class="weigh in"') >= 2
    assert "[Reservoir context]" in html
    for form in ("markdown", "json", "openai", "azure", "ollama", "anthropic"):
        query = {"q": QUESTION, "p": "work", "budget": "300", "format": form, "part": "1"}
        part = client.get("/ui/context", params=query).text
        assert f"Printed as {form}" in part
        assert "<html" not in part
        printed = unescape(re.findall(r'<pre id="printed"[^>]*>(.*?)</pre>', part, re.DOTALL)[0])
        assert form == "markdown" or json.loads(printed)


def test_an_opened_row_explains_its_priority_in_few_elements(client, memory):
    """A row with an element for each figure takes browsers longer to show."""
    query = {"q": QUESTION, "p": "work", "budget": "300", "part": "1"}
    html = client.get("/ui/context", params=query).text
    shown = choose(memory, build_question(), memory.location)
    best = shown.kept[0]
    document = memory.context(QUESTION, partition="work", budget=300).to("json")
    printed = next(row for row in document["messages"] if row["id"] == best.message.id)
    scores = f"{printed['similarity']:.3f} × {shown.settings.similarity_weight:g} = "
    assert best.scores.startswith(f"similarity {scores}")
    assert best.scores.endswith(f"tier {printed['tier']} · printed in {printed['section']}")
    assert f'<p class="scores">{best.scores}</p>' in html
    assert ' width="0.00"' not in html
    rows = re.findall(r'<li class="weigh .*?</li>', html, re.DOTALL)
    assert max(row.count("<") for row in rows) < 50


def test_the_view_reports_messages_that_are_not_embedded(client, memory):
    query = {"q": QUESTION, "p": "work"}
    assert "not embedded yet" not in client.get("/ui/context", params=query).text
    memory.ingest([message("user", "later", 100)], partition="work", embed=False)
    assert "1 message is not embedded yet" in client.get("/ui/context", params=query).text


def test_unmoved_sliders_set_nothing():
    query = {"recency_weight": "0.3", "was-recency_weight": "0.3", "excerpts": "auto"}
    query |= {"was-excerpts": "auto", "excerpt_over": "200", "was-excerpt_over": "200"}
    assert WindowForm.of({"q": "x", **query}).options == ContextOptions()
    moved = WindowForm.of({"q": "x", **query, "recency_weight": "0.5"}).options
    assert moved == ContextOptions(recency_weight=0.5)


def floor_slider(html: str) -> tuple[str, str]:
    """Return the value and the default of the slider of the floor."""
    [slider] = re.findall(r'<input type="range" name="recall_floor"[^>]*>', html)
    value, was = re.findall(r'(?: value|data-was)="([^"]*)"', slider)
    assert f'name="was-recall_floor" value="{was}"' in html
    return value, was


def test_the_slider_of_the_floor_shows_the_effective_floor(client, memory):
    assert floor_slider(client.get("/ui/context?p=work").text) == ("0", "0")
    memory.store.set_property(floor_property(FakeEmbedder().model_id), "0.36")
    for query in ({}, {"p": "work"}, {"p": "work", "q": QUESTION}, {"p": "work", "q": ""}):
        assert floor_slider(client.get("/ui/context", params=query).text) == ("0.36", "0.36")
    moved = {"p": "work", "q": QUESTION, "recall_floor": "0"}
    for query in (moved, {**moved, "was-recall_floor": "0.36"}):
        html = client.get("/ui/context", params=query).text
        assert floor_slider(html) == ("0", "0.36")
        assert "--floor 0.0" in html
    part = client.get("/ui/context", params={"p": "work", "q": QUESTION, "part": "1"}).text
    assert '<data hidden data-usual="recall_floor" value="0.36">' in part


def test_invalid_numbers_are_reported(client):
    for query in (
        "budget=many",
        "budget=-3",
        "recency_weight=2",
        "recall_floor=nan",
        "excerpt_over=0",
        "format=xml",
        "model=nobody-knows-it",
        "excerpts=maybe",
        "without=x",
    ):
        answer = client.get(f"/ui/context?q=x&p=work&{query}")
        assert answer.status_code == 400, query


@each(
    ("query", "kept"),
    [
        ("budget=1.5&model=gpt-4", ['value="1.5"', 'value="gpt-4"']),
        ("budget=900&model=nob%22ody", ['value="900"', 'value="nob&#34;ody"']),
        ("format=xml&budget=900", ['value="900"']),
        ("recency_weight=2&similarity_weight=0.5", ['step="0.01" value="0.5"']),
    ],
)
def test_a_bad_value_keeps_the_form_with_what_was_typed(client, query, kept):
    answer = client.get(f"/ui/context?q=why+redis&p=work&{query}")
    assert answer.status_code == 400
    assert '<p class="notice" role="alert">That did not work: ' in answer.text
    for text in ('value="why redis"', "<option selected>work", *kept):
        assert text in answer.text, text
    part = client.get(f"/ui/context?q=why+redis&p=work&part=1&{query}")
    assert part.status_code == 400
    assert 'class="card narrow" role="alert"' in part.text


def test_a_budget_must_be_a_whole_number(client):
    for budget in ("1.5", "0", "00", "-1", "many"):
        html = client.get(f"/ui/context?q=x&p=work&budget={budget}").text
        assert "That did not work: budget is not a whole number above 0." in html
    for budget in ("9" * 19, "9" * 40, "9" * 5000):
        html = client.get(f"/ui/context?q=x&p=work&budget={budget}").text
        assert "That did not work: budget is too large." in html


def test_the_field_of_the_budget_shows_the_one_that_applies_when_it_is_empty(client):
    def placeholder(query: str) -> str:
        html = client.get(f"/ui/context?p=work{query}").text
        return re.findall(r'name="budget" [^>]*placeholder="([^"]*)"', html)[0]

    assert placeholder("") == placeholder("&q=redis") == "4,000"
    html = client.get("/ui/context?p=work&q=redis&model=gpt-4").text
    [available] = re.findall(r"<span>budget ([\d,]+)</span>", html)
    assert placeholder("&q=redis&model=gpt-4") == available != "4,000"


def test_the_view_works_with_an_empty_store(client):
    assert client.get("/ui/context?q=x&p=nowhere").status_code == 200
    assert client.get("/ui/context?q=&p=work").status_code == 200


def test_a_partition_without_messages_stays_selected(client):
    for address in ("/ui/context?q=redis&p=nowhere", "/ui/?p=nowhere"):
        assert "<option selected>nowhere</option>" in client.get(address).text


def test_a_command_that_cannot_leave_out_a_message_says_so(client):
    query = {"q": QUESTION, "p": "work", "budget": "300"}
    assert "has no option" not in client.get("/ui/context", params=query).text
    html = client.get("/ui/context", params={**query, "without": "1"}).text
    assert "This command does not leave out #1: it has no option for that." in html


def test_the_links_of_an_empty_question_exclude_a_message_and_put_it_back(client):
    pattern = r'href="(/ui/context[^"]*)">{}'
    html = client.get("/ui/context?q=&p=work&budget=300").text
    exclude = re.findall(pattern.format("what would come in without it"), html)[0]
    without = client.get(unescape(exclude)).text
    assert "Without #" in without
    [put_back] = re.findall(pattern.format("Put it back"), without)
    whole = client.get(unescape(put_back)).text
    assert 'class="printed"' in whole
    assert "Without #" not in whole


def test_the_shown_command_prints_the_same_context(memory, store_path, monkeypatch):
    question = build_question(
        q='it\'s $HOME; `date` "quoted"?', recency_weight="0.9", recall_floor="0", excerpts="off"
    )
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    memory.store.give_up_model()
    with Reservoir.open(store_path) as without_model:
        shown = choose(without_model, replace(question, form="json"), "elsewhere")
    words = shlex.split(shown.command)
    assert words[:1] == ["RESERVOIR_RECENCY_WEIGHT=0.9"]
    assert words[1:4] == ["reservoir", "--db", store_path]
    settings = dict(word.split("=", 1) for word in words[:1])
    ran = subprocess.run(
        [sys.executable, "-m", "reservoir_cli", *words[2:]],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    document = json.loads(ran.stdout)
    assert document["query"] == question.text
    kept = {row["id"]: row["tokens"] for row in document["messages"] if row["id"]}
    assert kept == {row.message.id: row.tokens for row in shown.kept} != {}


def test_a_command_is_safe_in_a_shell():
    evil = "-rf'; rm -rf ~ #\n$(x)"
    question = WindowForm(evil, True, None, None, None, 5, "text", ContextOptions(), ())
    command = context_command(question, "-p '$x")
    assert shlex.split(command) == [
        "reservoir",
        "context",
        "--partition=-p '$x",
        "--budget",
        "5",
        "--",
        evil,
    ]


def test_messages_without_a_row_are_counted(memory):
    memory.ingest(
        [message("user", f"redis lost job {n}", 200 + n, f"c{n % 9}") for n in range(300)],
        partition="work",
        instance="chat",
    )
    shown = choose(memory, build_question(budget="2000"), memory.location)
    rows = {row.message.id for row in (*shown.kept, *shown.left_out)}
    stored = len(memory.find(Scope("work")))
    assert shown.unlisted > 0
    assert len(rows) + shown.unlisted == stored
