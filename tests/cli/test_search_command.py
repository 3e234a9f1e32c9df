import base64
import json
import os
import re
import sys

import pytest
from each import each

from reservoir_cli import Reservoir
from reservoir_cli.cli import clipboard
from reservoir_cli.messages import Conversation, Scope

FIELDS = ["rank", "score", "similarity", "cosine", "bm25", "linked"]
JOBS, BAKERY = "the job queue lost messages", "the queue at the bakery is long"
THEORY, OTHER = "queueing theory and its jobs", "a job queue of somebody else"


@pytest.fixture
def notes(cli):
    cli.store(
        {"content": JOBS, "trace_id": "t-1"},
        {"content": "then use a table", "role": "assistant", "trace_id": "t-1"},
        {"content": BAKERY},
        {"content": THEORY, "instance": "papers"},
        {"content": OTHER, "partition": "other", "instance": "other"},
    )
    return cli


def test_hits_are_numbered_role_and_content(notes):
    result = notes("search", "--keyword", "job queue lost")
    assert (result.out, result.err) == ("#1 2026-05-09 user: the job queue lost messages\n", "")
    assert notes("search", "--keyword", "job queue lost", "--full").out == (
        "1. user: the job queue lost messages\n"
    )


def test_unquoted_words_are_one_question_of_a_context(notes):
    assert JOBS in notes("context", "what", "lost", "messages?").out


def test_one_conversation_is_searched_by_the_beginning_of_its_id(cli):
    cli.store(
        {"content": "the queue at work", "conversation_id": "c0ffee-1"},
        {"content": "the queue at the bakery", "conversation_id": "bad-2"},
    )
    hits = cli("search", "--keyword", "queue", "--conversation", "c0f").out
    assert re.fullmatch(r"#\d+ 2026-05-09 user: the queue at work\n", hits)
    nothing = cli("search", "--keyword", "queue", "--conversation", "unknown")
    assert (nothing.out, "unknown" in nothing.err) == ("", True)
    cli("search", "queue", "--conversation", "", code=2)


@each(
    ("words", "expected"),
    [
        (["queue long"], {BAKERY}),  # all words are tried first, then any
        (["bakery theory"], {BAKERY, THEORY}),
        (['"queue lost"'], {JOBS}),  # a phrase keeps its order
        (['"lost queue"'], set()),
        (["bak*"], {BAKERY}),  # a star matches a prefix
        (["bak"], set()),
        (["job", "queue", "lost"], {JOBS}),  # unquoted words are one query
        (["queue*"], {JOBS, BAKERY, THEORY}),  # the whole partition
        (["queue*", "-i", "default"], {JOBS, BAKERY}),
        (["queue*", "--all-partitions"], {JOBS, BAKERY, THEORY, OTHER}),
        (["queue AND ("], {THEORY}),
        *(  # other operators are words
            ([typed], {JOBS, BAKERY, THEORY})
            for typed in ('"unclosed queue', "queue OR OR", "queue^", "{queue}")
        ),
        *(  # unknown terms find nothing and are no error
            (["--", typed], set())
            for typed in ("*", '"', "---", "()", '""', "'", "text:zeppelin", "NEAR(zeppelin")
        ),
    ],
)
def test_words_phrases_and_prefixes_are_found(notes, words, expected):
    result = notes("search", "--keyword", "--full", *words)
    assert {line.partition(": ")[2] for line in result.out.splitlines()} == expected
    assert result.out.count("\n") == len(expected)
    assert result.err.startswith("note: ") or words != ["bakery theory"]


def test_an_empty_result_is_zero_bytes_and_not_an_error(notes):
    result = notes("search", "--keyword", "zeppelin")
    assert result.out == ""
    assert result.err.startswith("note: nothing in default contains these words (")
    assert notes("search", "--keyword", "zeppelin", "--jsonl").out == ""
    assert notes("search", "--keyword", "zeppelin", "--json").document["hits"] == []


def test_an_empty_scope_says_where_messages_are(notes):
    result = notes("search", "--keyword", "queue", "-i", "nowhere")
    assert result.out == ""
    assert result.err == (
        "note: nothing in default/nowhere; 3 messages in default/default (-i default), "
        "4 in default (without -i)\n"
    )


def test_limit_is_the_maximum_number_of_hits(notes):
    assert notes("search", "--keyword", "queue", "-n", "1").out.count("\n") == 1


def test_json_rows_add_the_scores_to_the_message(notes):
    document = notes("search", "--keyword", "queue", "--json").document
    assert document["schema_version"] == 1
    stored = {row["id"]: row for row in notes.rows()}
    scores = [hit["score"] for hit in document["hits"]]
    assert scores == sorted(scores, reverse=True)
    for rank, hit in enumerate(document["hits"], 1):
        assert list(hit)[-len(FIELDS) :] == FIELDS
        assert hit["rank"] == rank
        assert hit["score"] == hit["bm25"]
        assert {key: hit[key] for key in stored[hit["id"]]} == stored[hit["id"]]


def test_jsonl_has_one_hit_per_line(notes):
    lines = notes("search", "--keyword", "queue", "--jsonl").out.splitlines()
    assert [json.loads(line)["rank"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(lines) > 1


def test_link_adds_the_reply_below_its_hit_and_does_not_count_it(notes):
    shown = notes("search", "--keyword", "lost", "-n", "1", "--link").out.splitlines()
    assert shown[0] == "#1 2026-05-09 user: the job queue lost messages"
    assert shown[1].strip() == "assistant: then use a table"
    hit = notes("search", "--keyword", "lost", "--link", "--json").document["hits"][0]
    assert [row["content"] for row in hit["linked"]] == ["then use a table"]


def test_deduplicate_keeps_the_best_of_equal_contents(cli):
    cli.store({"content": "same words"}, {"content": " same words "}, {"content": "other words"})
    assert cli("search", "--keyword", "words").out.count("\n") == 3
    assert cli("search", "--keyword", "words", "--deduplicate").out.count("\n") == 2


def test_words_of_scripts_without_spaces_are_found(cli):
    cli.say("来年の春に京都へ行きます")
    cli.say("ภาษาไทยไม่มีวรรค")
    assert "京都" in cli("search", "--keyword", "京都").out
    assert "ภาษาไทย" in cli("search", "--keyword", "ไทย").out


def test_a_message_is_found_by_the_last_word_of_its_five_megabytes(cli):
    cli.say("lorem ipsum " * 430_000 + "needle")
    assert cli("search", "--keyword", "needle", "--json").document["hits"][0]["id"] == 1


@pytest.mark.model
def test_hybrid_hits_are_ordered_by_similarity_and_carry_every_score(samples):
    hits = samples("search", "why did we drop Redis?", "-p", "work", "--json").document["hits"]
    assert len(hits) == 10
    assert [hit["score"] for hit in hits] == [hit["similarity"] for hit in hits]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert all(0 <= hit["similarity"] <= 1 and -1 <= hit["cosine"] <= 1 for hit in hits)
    assert all(hit["partition"] == "work" for hit in hits)
    assert any("Redis" in hit["content"] for hit in hits[:3])


@pytest.mark.model
def test_a_search_without_words_explains_its_ranking(samples):
    note = "note: the term contains no words; ranked by embedding similarity only\n"
    for term in ("*", "…"):
        result = samples("search", term, "--all-partitions", "-n", "1")
        assert result.out.startswith("#")
        assert result.err == note
    assert note not in samples("search", "Redis", "--all-partitions", "-n", "1").err


@pytest.mark.model
def test_words_that_no_message_contains_are_reported(samples):
    note = "note: none of these contains any of the words; they are the nearest in meaning\n"
    for options in ((), ("-p", "work"), ("--role", "user")):
        result = samples("search", "qqzzxxwv", *options, "-n", "2")
        assert result.err == (note if result.out else result.err)
    assert note in samples("search", "qqzzxxwv", "--all-partitions").err
    for typed in ("qqzzxxwv Redis", "Redis"):
        assert note not in samples("search", typed, "--all-partitions").err
    assert note not in samples("search", "--semantic", "qqzzxxwv", "--all-partitions").err


def test_hits_can_be_printed_on_one_line_with_times_or_as_passages(cli):
    cli.store({"content": "needle\n  in hay" + "\nhay stack" * 100, "trace_id": "12345678-90"})
    line = cli("search", "needle", "--oneline", "--timestamps").out
    assert line.startswith("#1 2026-05-09T14:00:00+00:00 [12345678] user: needle\\n  in hay\\n")
    assert line.count("\n") == 1
    passage = cli("search", "needle", "--snippets").out
    assert passage.startswith("#1 2026-05-09 user: needle in hay hay stack hay")
    assert passage.endswith("…\n")
    assert len(passage) < 320


@pytest.mark.parametrize("mode", [[], ["--keyword"]], ids=["hybrid", "keyword"])
def test_filters_remove_hits_without_changing_scores(cli, mode):
    conversation = {"title": None, "source": "codex", "model": None, "project": "app"}
    cli.store(
        {"content": "amber in the fjord", "source": "codex"},
        {"content": "amber, amber", "role": "assistant"},
        {"content": "amber again and again", "conversation_id": "c", "conversation": conversation},
    )
    all_hits = cli("search", "amber", *mode, "--json").document["hits"]
    scores = {hit["id"]: hit["score"] for hit in all_hits}
    assert len(scores) == 3
    for option, value, expected in (
        ("--role", "assistant", [2]),
        ("--source", "codex", [1]),
        ("--project", "app", [3]),
        ("--since", "2026-05-09T14:00:02Z", [3]),
        ("--until", "2026-05-09T14:00:00Z", [1]),
    ):
        hits = cli("search", "amber", *mode, option, value, "--json").document["hits"]
        assert [(hit["id"], hit["score"]) for hit in hits] == [(n, scores[n]) for n in expected]
    for command in ("view", "export"):
        document = cli(command, "--source", "codex", "--json").document
        assert [row["id"] for row in document["messages"]] == [1]
        stderr = cli(command, "--source", "nowhere").err
        assert stderr == "note: no message in default matches --source; sources: codex, test\n"
    stderr = cli("search", "amber", *mode, "--source", "nowhere").err
    assert stderr.endswith("note: no message in default matches --source; sources: codex, test\n")
    stderr = cli("search", "amber", *mode, "--project", "ap").err
    assert stderr.endswith("note: no message in default matches --project; did you mean app?\n")
    stderr = cli("conversations", "--project", "nowhere").err
    assert stderr == "note: no conversation in default matches --project; projects: app\n"


def test_the_best_hits_are_printed_by_time_the_newest_first(cli):
    cli.store(
        {"content": "amber, amber, amber"},
        {"content": "a long walk along the fjord with a piece of amber in it"},
        {"content": "amber and amber"},
    )
    best = cli("search", "amber", "--keyword", "-n", "2", "--json").document["hits"]
    hits = cli("search", "amber", "--keyword", "-n", "2", "--sort", "time", "--json").document
    assert [hit["id"] for hit in best] == [1, 3]
    assert hits["hits"] == sorted(best, key=lambda hit: -hit["id"])
    shown = cli("search", "amber", "--keyword", "--sort", "time").out
    assert [line[:2] for line in shown.splitlines()] == ["#3", "#2", "#1"]
    errors = cli("search", "amber", "--sort", "age", code=2).err
    assert errors == "error: cannot sort by 'age'\nhint: choose score or time\n"


def test_filters_of_a_context_restrict_its_history_too(cli):
    cli.store(
        {"content": "why amber?", "trace_id": "t"},
        {"content": "because of the fjord", "role": "assistant", "trace_id": "t"},
        {"content": "and birch?", "trace_id": "u"},
        {"content": "because of the hill", "role": "assistant", "trace_id": "u"},
    )
    shown = cli("context", "amber or birch, which?", "--role", "assistant").out
    assert "why amber?" not in shown
    assert "and birch?" not in shown
    assert "assistant: because of the fjord\n…\nassistant: because of the hill\n" in shown
    stderr = cli("context", "x", "--role", "tool").err
    assert "note: no message in default matches --role\n" in stderr


def test_conversations_of_all_partitions_name_theirs(cli):
    cli.store({"content": "one", "conversation_id": "c0ffee-1"})
    cli.store({"content": "two", "conversation_id": "bad-2", "partition": "work"})
    everywhere = cli("conversations", "--all-partitions").out.splitlines()
    assert sorted(line.split("\t")[-1] for line in everywhere) == ["default", "work"]
    [line] = cli("conversations").out.splitlines()
    assert len(line.split("\t")) == 7


def test_conversations_are_filtered_by_text_project_and_time(cli):
    def about(title, project):
        return {"title": title, "source": "codex", "model": None, "project": project}

    cli.store(
        {"content": "about amber", "conversation_id": "c1", "conversation": about("One", "app")},
        {"content": "birch", "conversation_id": "c2", "conversation": about("Two", "web")},
    )
    for options, expected in (
        (["--match", "AMBER"], ["c1"]),
        (["--match", "two"], ["c2"]),
        (["--project", "web"], ["c2"]),
        (["--since", "2026-05-09T14:00:01Z"], ["c2"]),
    ):
        conversations = cli("conversations", *options, "--json").document["conversations"]
        assert [row["id"] for row in conversations] == expected
    stderr = cli("conversations", "--project", "none").err
    assert stderr == "note: no conversation in default matches --project; projects: app, web\n"


def test_a_context_is_copied_by_the_terminal_or_a_platform_command(cli, tmp_path):
    cli.say("hello")
    shown = cli.on_terminal("context", "what?", "--copy", streams=("stderr",))
    (encoded,) = re.findall(r"\x1b\]52;c;([^\a]*)\a", shown.err)
    assert base64.b64decode(encoded).decode() == shown.out
    assert "copied" in shown.err
    tool = tmp_path / "bin" / "xclip"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ncat > {tmp_path}/copied\n")
    tool.chmod(0o755)
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin", "DISPLAY": ":9"}
    printed = cli("context", "what?", "--copy", env=env).out
    assert (tmp_path / "copied").read_text() == printed
    assert "found no clipboard" in cli("context", "what?", "--copy", code=1).err


@pytest.mark.skipif(os.name != "posix", reason="clip.exe is on every PATH")
@pytest.mark.parametrize("remote", [False, True])
def test_a_local_context_is_copied_by_a_command_since_terminals_may_ignore_the_sequence(
    tmp_path, monkeypatch, capsys, remote
):
    for name in ("xclip", "pbcopy"):
        (tmp_path / name).write_text(f"#!/bin/sh\n/bin/cat > {tmp_path}/copied\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": str(tmp_path), "DISPLAY": ":9"} | (
        {"SSH_CONNECTION": "x"} if remote else {}
    )
    for name in ("SSH_CONNECTION", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    clipboard.copy("the context")
    assert ("\x1b]52;c;" in capsys.readouterr().err) == remote
    assert (tmp_path / "copied").exists() == (not remote)


def test_a_misspelt_word_is_replaced_by_the_nearest_one_with_a_note(cli):
    cli.say("Kubernetes restarted it.")
    for command in ("search", "context", "recall"):
        result = cli(command, "kuberntes")
        assert "Kubernetes restarted it." in result.out
        assert 'note: nothing has "kuberntes"; searched for Kubernetes\n' in result.err
        assert "searched for" not in cli(command, "kubernetes").err
    assert cli("search", "--keyword", "kuberntes").out == ""


def test_a_hit_in_a_pipe_names_the_title_of_its_conversation(cli):
    cli.store({"content": "Restart the standby first.", "conversation_id": "c"})
    with Reservoir.open(cli.db) as reservoir:
        place = Scope("default", "default")
        reservoir.store.add_conversations(place, [Conversation("c", "After the\nfailover")])
    hits = cli("search", "--keyword", "standby").out
    assert hits == "#1 2026-05-09 After the failover: user: Restart the standby first.\n"


@pytest.mark.parametrize(
    ("term", "note"),
    [
        ("wo ist der Schlüssel vom garden gate", True),
        ("where is the key of the garden gate", False),
        ("garden gate", False),
    ],
)
def test_a_question_in_another_language_than_its_hits_is_noted(cli, term, note):
    cli.store({"content": "The key of the garden gate is under the pot that we have on it."})
    assert ("the question is in German" in cli("search", "--keyword", term).err) is note
