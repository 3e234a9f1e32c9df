"""Summaries: creation, renewal, deletion, and use in contexts."""

import fcntl
import shlex
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from builders import NOW, FakeEmbedder

from reservoir_cli.embedding import Embedder
from reservoir_cli.errors import StoreLockedError, UsageError
from reservoir_cli.maintenance.summarize import LONGEST, CannotRunError, Outcome
from reservoir_cli.messages import Conversation, Filter, Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.storage.copying.copy_store import copy
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.tables.summaries import Summaries

pytestmark = pytest.mark.both_stores

HERE = Scope("p", "i")
TALK = [
    "The job queue moved from Redis to Postgres in spring.",
    "Postgres made the backups of the queue much simpler.",
    "```\nqueue = connect()\n```",
    "ok",
    "The workers of the queue now poll Postgres twice a second.",
]


@pytest.fixture
def reservoir(location: str, fake_embedder: Embedder) -> Iterator[Reservoir]:
    with Reservoir.open(location, embedder=fake_embedder, settings={"partition": "p"}) as opened:
        for number, name in enumerate(("one", "two")):
            opened.store.add_conversations(HERE, [Conversation(name, title=f"talk {name}")])
            add_conversation(opened, name, [said_in(name, text) for text in TALK], number)
        yield opened


def said_in(name: str, text: str) -> str:
    return text.replace(" queue", f" {name} queue")


def add_conversation(reservoir: Reservoir, name: str, texts: list[str], day: int = 0) -> None:
    messages = [
        Message(
            "user",
            text,
            conversation_id=name,
            created_at=NOW - timedelta(days=9 - day, minutes=-number),
        )
        for number, text in enumerate(texts)
    ]
    reservoir.ingest(messages, partition="p", instance="i")


def texts(reservoir: Reservoir) -> dict[str, str]:
    summaries = Summaries(reservoir.store).read(Scope("p"))
    return {summary.conversation_id: summary.text for summary in summaries}


def program(tmp_path: Path, script: str) -> str:
    path = tmp_path / "write it.py"
    path.write_text(script, encoding="utf-8")
    return shlex.join([sys.executable, str(path)])


def run(reservoir: Reservoir, command: str | None = None) -> list[Outcome]:
    return list(reservoir.summarize("p", command=command))


def test_a_summary_has_sentences_of_the_conversation_in_order(reservoir):
    assert len(run(reservoir)) == 2
    for name, text in texts(reservoir).items():
        positions = [text.find(said_in(name, sentence)) for sentence in TALK]
        present = [position for position in positions if position >= 0]
        assert present
        assert present == sorted(present)
        assert "connect" not in text


def test_it_is_renewed_only_when_the_conversation_has_grown(reservoir):
    assert len(list(reservoir.summarize("p", dry_run=True))) == 2
    assert texts(reservoir) == {}
    run(reservoir)
    assert run(reservoir) == []
    add_conversation(reservoir, "two", ["The queue then got a second consumer for long jobs."], 2)
    assert [outcome.conversation.conversation.id for outcome in run(reservoir)] == ["two"]


def test_it_is_forgotten_with_any_of_its_messages(reservoir):
    run(reservoir)
    first = reservoir.view(HERE, 0)[0]
    reservoir.forget([first.id], Scope("p"))
    assert list(texts(reservoir)) == ["two"]


def test_it_moves_with_its_partition_and_is_copied(reservoir, tmp_path):
    run(reservoir)
    before = texts(reservoir)
    with closing(open_store(str(tmp_path / "copy.db"))) as target:
        copy(reservoir.store, target, lambda *_: None)
        summaries = Summaries(target).read(Scope("p"))
        assert {summary.conversation_id: summary.text for summary in summaries} == before
        target.move_partition("p", "q")
        assert len(Summaries(target).read(Scope("q"))) == 2
        assert Summaries(target).read(Scope("p")) == []
    reservoir.store.move_partition("p", "q")
    assert len(Summaries(reservoir.store).read(Scope("q", "i"))) == 2


def test_a_command_reads_the_conversation_and_writes_the_summary(reservoir, tmp_path):
    notes: list[str] = []
    reservoir._notify = notes.append
    command = program(
        tmp_path, "import sys; print('about', 'one' if 'one queue' in sys.stdin.read() else 'two')"
    )
    run(reservoir, command)
    assert {name: text.split()[1] for name, text in texts(reservoir).items()} == {
        "one": "one",
        "two": "two",
    }
    assert [line for line in notes if "write it.py" in line] == [f"conversations go to: {command}"]


def test_an_extract_replaces_a_commands_summary_only_if_the_conversation_has_grown(
    reservoir, tmp_path
):
    run(reservoir)
    assert len(run(reservoir, program(tmp_path, "print('by hand')"))) == 2
    assert list(reservoir.summarize("p", dry_run=True)) == []
    assert run(reservoir) == []
    assert set(texts(reservoir).values()) == {"by hand"}
    add_conversation(reservoir, "two", ["The queue then got a second consumer for long jobs."], 2)
    assert [outcome.conversation.conversation.id for outcome in run(reservoir)] == ["two"]
    assert texts(reservoir)["two"] != texts(reservoir)["one"] == "by hand"


def test_another_argument_of_the_same_program_renews_summaries(reservoir, tmp_path):
    command = program(tmp_path, "import sys; print(sys.argv[1])")
    assert len(run(reservoir, f"{command} brief")) == 2
    assert run(reservoir, f"{command} brief") == run(reservoir) == []
    assert len(run(reservoir, f"{command} long")) == 2
    assert set(texts(reservoir).values()) == {"long"}


def test_a_change_of_the_model_embeds_summaries_again(location, reservoir):
    run(reservoir)
    before = Summaries(reservoir.store).read(Scope("p"))
    other = FakeEmbedder(model_id="another")
    settings = {"partition": "p"}
    with Reservoir.open(location, embedder=other, settings=settings) as changed:
        changed.indexer.rebuild()
        after = Summaries(changed.store).read(Scope("p"))
        assert {summary.model_id for summary in after} == {"another"}
        assert [summary.text for summary in after] == [summary.text for summary in before]
        assert run(changed) == []


def test_a_summary_is_not_brought_back_by_its_new_vector(reservoir, fake_embedder):
    run(reservoir)
    summaries = Summaries(reservoir.store)
    first, second = summaries.read(Scope("p"))
    reservoir.forget(reservoir.find(Scope("p"), Filter(conversation_id="one")))
    summaries.put(second._replace(text="newer"))
    for summary in (first, second):
        summaries.set_vector(summary, "another", fake_embedder.encode_query("x"))
    (left,) = summaries.read(Scope("p"))
    assert (left.text, left.model_id) == ("newer", fake_embedder.model_id)


def test_a_text_that_is_edited_meanwhile_is_not_in_the_summary(reservoir, tmp_path):
    key = reservoir.view(HERE, 0)[0].key
    reservoir._notify = lambda _: reservoir.edit(key, "Nothing to see.")
    outcomes = run(reservoir, program(tmp_path, "import sys; print(sys.stdin.read()[:200])"))
    assert [outcome.reason for outcome in outcomes] == ["it changed in the meantime", None]
    assert list(texts(reservoir)) == ["two"]


@pytest.mark.parametrize(
    ("script", "reason"),
    {
        "raise SystemExit(3)": "ended with code 3",
        "": "printed nothing",
        f"print('x' * {LONGEST + 1})": "more than 2,000 characters",
        "import os\nwhile os.write(1, bytes(1 << 16)): pass": "more than 2,000 characters",
    }.items(),
)
def test_a_failing_command_skips_the_conversation(reservoir, tmp_path, script, reason):
    outcomes = run(reservoir, program(tmp_path, script))
    assert all(reason in str(outcome.reason) for outcome in outcomes)
    assert len(outcomes) == 2
    assert texts(reservoir) == {}


def test_a_program_that_a_command_leaves_running_is_not_waited_for(reservoir, tmp_path):
    lock = tmp_path / "lock"
    left_running = f"import fcntl; fcntl.flock(open({str(lock)!r}), fcntl.LOCK_EX)"
    script = f"""if True:
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", {left_running!r}])
        print("ok")
    """
    with lock.open("w") as held:  # so the program does not end before this block
        fcntl.flock(held, fcntl.LOCK_EX)
        outcomes = run(reservoir, program(tmp_path, script))
    assert [outcome.reason for outcome in outcomes] == [None, None]
    assert set(texts(reservoir).values()) == {"ok"}


def test_no_text_goes_to_a_command_if_the_store_is_locked(
    location, reservoir, fake_embedder, tmp_path
):
    if "://" in location:
        pytest.skip("writers of a server wait only for the same rows")
    marker = tmp_path / "mark"
    command = program(tmp_path, f"open({str(marker)!r}, 'w'); print('ok')")
    settings = {"partition": "p"}
    with (
        Reservoir.open(
            location, embedder=fake_embedder, settings=settings, patience=0.1
        ) as waiting,
        reservoir.store.write(),
    ):
        add_conversation(reservoir, "three", ["It is being imported."])
        with pytest.raises(StoreLockedError):
            run(waiting, command)
    assert not marker.exists()


def test_a_command_that_cannot_be_started_ends_the_run(reservoir, tmp_path):
    with pytest.raises(CannotRunError, match=r"cannot run .*absent: No such file") as caught:
        run(reservoir, str(tmp_path / "absent"))
    assert caught.value.exit_code == 1
    assert texts(reservoir) == {}


def test_the_command_is_run_without_a_shell(reservoir, tmp_path):
    marker = tmp_path / "mark"
    outcomes = run(reservoir, f"echo hello; touch {shlex.quote(str(marker))}")
    assert not marker.exists()
    assert set(texts(reservoir).values()) == {f"hello; touch {marker}"} or outcomes[0].reason
    with pytest.raises(UsageError):
        run(reservoir, "'open")
    with pytest.raises(UsageError):
        run(reservoir, " ")


def test_a_context_shows_summaries_of_conversations_that_it_does_not_print(
    location, fake_embedder, reservoir
):
    names = ("three", "four", "five", "six", "seven", "eight")
    for day, name in enumerate(names, 2):
        add_conversation(reservoir, name, [said_in(name, text) for text in TALK], day)
    run(reservoir)
    assert "[Summaries]" not in str(reservoir.context("what moved?", budget=160).to())
    with Reservoir.open(
        location, embedder=fake_embedder, settings={"partition": "p", "episodes": "auto"}
    ) as with_episodes:
        shown_count = 0
        for budget in (120, 160, 240, 280, 320, 360, 400, 4_000):
            window = with_episodes.context("what moved?", budget=budget, format="text")
            printed = {
                candidate.message.conversation_id
                for candidate in (*window.selection.recalled, *window.selection.history)
            }
            assert window.used <= budget or not printed
            summaries = [piece.text for piece in window.request.summaries]
            for name in filter(None, printed):
                assert not any(f"{name} queue" in text for text in summaries), budget
            assert ("[Summaries]" in str(window.to())) == bool(summaries)
            assert all(text in str(window.to()) for text in summaries)
            rows = [message.content for message in window.messages if message.section == "episode"]
            assert rows == (["\n".join(["[Summaries]", *summaries])] if summaries else [])
            markdown = str(window.to("markdown"))
            assert ("## Summaries\n\n" in markdown) == bool(summaries)
            assert ("## Recalled Messages\n\n" in markdown) == bool(window.selection.recalled)
            assert "[Summaries]" not in markdown
            assert "[Recalled" not in markdown
            if budget == 4_000:
                assert printed == {"one", "two", *names}
                assert not summaries
            shown_count += len(summaries)
        assert shown_count


def test_a_filtered_context_shows_no_summary_of_what_it_leaves_out(
    location, fake_embedder, reservoir
):
    days = {name: day for day, name in enumerate(("three", "four", "five", "six", "seven"), 2)}
    for name, day in days.items():
        add_conversation(reservoir, name, [said_in(name, text) for text in TALK], day)
    run(reservoir)
    settings = {"partition": "p", "episodes": "auto"}
    with Reservoir.open(location, embedder=fake_embedder, settings=settings) as with_episodes:

        def shown(where: Filter) -> str:
            windows = [
                with_episodes.context("what moved?", budget=budget, where=where)
                for budget in (120, 160, 240, 280, 320, 360, 400)
            ]
            return "\n".join(piece.text for window in windows for piece in window.request.summaries)

        everything = shown(Filter())
        name = next(name for name in days if f"{name} queue" in everything)
        assert shown(Filter(role="user")) == everything
        assert not shown(Filter(role="assistant"))
        assert not shown(Filter(source="chatgpt"))
        later = NOW - timedelta(days=9 - days[name], seconds=-1)
        assert f"{name} queue" not in shown(Filter(since=later))


def test_a_context_shows_no_summary_far_from_the_question(location, fake_embedder, reservoir):
    for day, name in enumerate(("three", "four", "five", "six"), 2):
        add_conversation(reservoir, name, [said_in(name, text) for text in TALK], day)
    add_conversation(reservoir, "birds", ["Pelicans sleep near brackish lagoons."] * 3)
    run(reservoir)
    question, settings = "Which queue moved to Postgres?", {"partition": "p", "episodes": "auto"}
    vector = fake_embedder.encode_query(question)
    vectors = {row.conversation_id: row.vector for row in Summaries(reservoir.store).read(HERE)}
    cosine = float(vectors["birds"] @ vector)
    assert cosine > 0.1
    for floor, expected in ((1.4 * cosine, True), (1.46 * cosine, False)):
        with Reservoir.open(
            location, embedder=fake_embedder, settings={**settings, "recall_floor": floor}
        ) as with_episodes:
            window = with_episodes.context(question, budget=200)
            assert not window.nothing_found
            summaries = [piece.text for piece in window.request.summaries]
            assert any("Pelicans" in text for text in summaries) == expected
