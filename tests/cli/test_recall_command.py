"""``reservoir recall`` on the command line."""

import re

import pytest

from reservoir_cli.context.recall import BY_WORDS

ANSWER = "We dropped Redis because it lost 214 jobs in a failover."


@pytest.fixture
def filled_cli(cli):
    cli.store({"content": ANSWER, "conversation_id": "c1", "partition": "work"})
    return cli


def test_it_prints_only_the_frame(filled_cli):
    result = filled_cli("recall", "why", "did", "we", "drop", "Redis?", "-p", "work")
    first, *_, last = result.out.splitlines()
    assert (first, last[:11]) == ("[Reservoir context]", "[/Reservoir")
    assert re.search(
        rf"^\[#1\] quoted \d{{4}}-\d\d-\d\d, user: {re.escape(ANSWER)}$", result.out, re.M
    )
    assert BY_WORDS in result.out
    assert "\x1b" not in result.out


def test_the_question_may_come_from_stdin(filled_cli):
    typed = filled_cli("recall", "why did we drop Redis?", "-p", "work").out
    assert filled_cli("recall", "-p", "work", stdin="why did we drop Redis?\n").out == typed
    assert filled_cli("recall", "-", "-p", "work", stdin="why did we drop Redis?").out == typed


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ok"], "there is no question to search for"),
        (["/compact"], "there is no question to search for"),
        (["what is the capital of Mongolia?"], "nothing about this was found"),
        (["why did we drop Redis?", "--budget", "30"], "nothing that was found fits the budget"),
        (["why did we drop Redis?", "--since", "2027-01-01"], "there are no messages to search"),
        (["why Redis?", "--exclude-conversation", "c1"], "there are no messages to search"),
    ],
)
def test_an_empty_result_is_zero_bytes_with_the_reason_on_stderr(filled_cli, arguments, reason):
    result = filled_cli("recall", *arguments, "-p", "work")
    assert result.out == ""
    assert f"note: nothing recalled: {reason}\n" in result.err
    assert "note:" not in filled_cli("-q", "recall", *arguments, "-p", "work").err


def test_a_budget_below_the_frame_says_that_nothing_is_printed(filled_cli):
    result = filled_cli("recall", "why did we drop Redis?", "-p", "work", "--budget", "5")
    assert result.out == ""
    assert "note: the frame of recalled messages alone needs " in result.err
    assert " tokens, more than the 5 available; nothing is printed\n" in result.err
    assert "printed whole" not in result.err


def test_a_conversation_id_may_be_invalid_utf8(filled_cli):
    result = filled_cli("recall", "Redis?", "-p", "work", "--exclude-conversation", "\udcff\udcfe")
    assert "Redis" in result.out


def test_the_id_of_an_excluded_conversation_may_be_shortened(cli):
    ids = ("7c6f-one", "7c6f-one/agent-1", "7d00-two", "7d00-two/agent-1")
    rows = [{"content": f"{ANSWER} Said in {name}.", "conversation_id": name} for name in ids]
    cli.store(*({**row, "partition": "work"} for row in rows))

    def recalled(typed, code=0):
        question = ("recall", "why did we drop Redis?", "-p", "work")
        return cli(*question, "--exclude-conversation", typed, code=code)

    for typed in ("7c6f", "7c6f-one"):
        assert "7c6f" not in recalled(typed).out
        assert "7d00-two" in recalled(typed).out
    for unknown in ("9abc", "c6f", "7d00-two-and-more", ""):
        result = recalled(unknown)
        assert "7c6f" in result.out
        assert "7d00" in result.out
        assert "--exclude-conversation" not in result.err
    assert "agent-1" not in recalled("7d00-two").out.replace("7c6f-one/agent-1", "")
    failed = recalled("7", code=2)
    assert "error: --exclude-conversation 7 is not unique: 7c6f-one, 7d00-two\n" in failed.err


def test_json_is_a_document_with_or_without_results(filled_cli):
    document = filled_cli("recall", "why did we drop Redis?", "-p", "work", "--json").document
    assert list(document) == [
        *("schema_version", "question", "skipped", "text", "tokens", "messages")
    ]
    assert (document["schema_version"], document["skipped"]) == (1, None)
    assert document["text"] == filled_cli("recall", "why did we drop Redis?", "-p", "work").out
    assert document["messages"][0]["content"] == ANSWER
    skipped = filled_cli("recall", "ok", "-p", "work", "--json").document
    assert list(skipped) == list(document)
    assert (skipped["skipped"], skipped["text"], skipped["messages"]) == ("no question", "", [])


def test_an_empty_scope_says_where_messages_are(filled_cli):
    result = filled_cli("recall", "why did we drop Redis?")
    assert result.out == ""
    assert "note: nothing in default; 1 message in work (-p work)" in result.err


def test_without_a_store_no_file_is_created(cli):
    assert cli("recall", "why did we drop Redis?").out == ""
    assert not cli.db.exists()


def test_wrong_usage_is_refused(cli):
    cli("recall", "why?", "--budget", "0", code=2)
    cli("recall", "why?", "--since", "soonish", code=2)
    result = cli.on_terminal("recall", streams=("stdin", "stdout"))
    assert result.code == 2


def test_stats_count_recalls_separately(filled_cli):
    filled_cli("recall", "why did we drop Redis?", "-p", "work")
    filled_cli("recall", "ok", "-p", "work")
    stats = filled_cli("stats", "--json").document
    assert (stats["recalls"]["runs"], stats["recalls"]["skipped"], stats["runs"]) == (2, 1, 0)
    assert "2, 1 of them empty" in filled_cli("stats").out
