"""What people mistype on their first day gives what they meant, or the exact command."""

import pytest
from forked import run

#: What is typed, the exit code, and words of the answer or of the hint.
MISTAKES = [
    ("help", 0, "Usage: reservoir [OPTIONS] COMMAND"),
    ("help view", 0, "Usage: reservoir view"),
    ("version", 0, "reservoir 0."),
    ("list", 2, "reservoir view lists messages, reservoir conversations lists conversations"),
    ("show 1", 2, "reservoir view --id N"),
    ("get model", 2, "reservoir config get KEY"),
    ("set model=gpt-4o", 2, "reservoir config set KEY=VALUE"),
    ("import chats.json", 2, "reservoir ingest FILE"),
    ("add hello", 2, 'echo "…" | reservoir ingest'),
    ("ask why", 2, 'reservoir context "…"'),
    ("delete 1", 2, "reservoir forget --id N"),
    ("remove 1", 2, "reservoir forget --id N"),
    ("rm 1", 2, "reservoir forget --id N"),
    ("find redis", 2, "reservoir search TERM"),
    ("grep redis", 2, "reservoir search --keyword TERM"),
    ("serach redis", 2, "Did you mean 'search'"),
    ("contxt why", 2, "Did you mean 'context'"),
    ("-p work search redis", 2, "hint: reservoir search redis -p work"),
    ("-p work -i cli view 3", 2, "hint: reservoir view 3 -p work -i cli"),
    ("--partition=work view", 2, "hint: reservoir view --partition=work"),
    ("view --db other.db", 2, "hint: reservoir --db PATH view"),
    ("context --offline why", 2, "hint: reservoir --offline context"),
    ("config model", 0, ""),
    ("config partition", 0, "default"),
    ("config get partition", 0, "default"),
    ("config model gpt-4o", 2, "hint: reservoir config set model=gpt-4o"),
    ("config model=gpt-4o", 2, "hint: reservoir config set model=gpt-4o"),
    ("config set model gpt-4o", 2, "hint: reservoir config set model=gpt-4o"),
    ("config get", 2, "get takes one KEY"),
    ("config --get", 2, "reservoir config --get KEY"),
    ("config get modle", 2, "model"),
    ("config set modle=x", 2, "model"),
    ("config path", 0, "reservoir.toml"),
    ("config list", 0, "partition"),
    ("partitions list", 0, "work"),
    ("partitions rename work=job", 2, "hint: reservoir partitions rename work job"),
    ("partitions --rename work=job --yes", 2, "hint: reservoir partitions rename work job"),
    ("partitions rename work", 2, "rename A B"),
    ("partitions remove work", 2, "partitions cannot remove"),
    ("partitions rename work default --yes", 1, "hint: reservoir partitions merge work default"),
    ("partitions merge work job --yes", 1, "hint: reservoir partitions rename work job"),
    ("partitions delete wrok --yes", 1, "there are default, work"),
    ("search why did we drop redis -p work", 0, "why did we drop Redis?"),
    ("search redis -p wrok", 0, "(-p work)"),
    ("context why did we drop redis -p work", 0, "user: why did we drop redis"),
    ("view work", 2, "not a whole number"),
    ("view #1", 2, "not a whole number"),
    ("view --id #1", 0, "hello"),
    ("view --id one", 2, "use 12 or '#12'"),
    ("view -n 5", 2, "reservoir view --help"),
    ("view --since yesterdya", 2, "hint:"),
    ("forget 1", 2, "reservoir forget --help"),
    ("forget --all", 2, "hint:"),
    ("forget --id 1", 2, "hint: add --yes"),
    ("ingest hello", 1, 'echo "…" | reservoir ingest'),
    ("ingest --role bot", 2, "user, assistant, system"),
    ("context why --budget lots", 2, "positive whole number"),
    (f"context why --budget {'9' * 5_000}", 2, "positive whole number"),
    ("context why --model gpt4o", 2, "gpt-4o"),
    ("context why --format yaml", 2, "text, markdown, json"),
    ("export --format csv", 2, "jsonl"),
    ("stats -p work", 0, "stored messages\t1"),
    ("backup", 2, "reservoir backup --help"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A home with a message in each of two partitions."""
    folder = tmp_path_factory.mktemp("first-day")
    env = {
        "HOME": str(folder),
        "RESERVOIR_HOME": str(folder / "home"),
        "RESERVOIR_EMBEDDING_MODEL": "nobody/absent-model",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    for text, where in (("hello", "default"), ("why did we drop Redis?", "work")):
        run("ingest", "--no-embed", "-p", where, stdin=text.encode(), env=env, folder=folder)
    return folder, env


@pytest.mark.parametrize(
    ("typed", "code", "words"), MISTAKES, ids=[row[0][:60] for row in MISTAKES]
)
def test_a_mistake_gives_what_was_meant_or_the_exact_command(world, typed, code, words):
    folder, env = world
    answer = run(*typed.split(), env=env, folder=folder)
    said = answer.out.decode() + answer.err
    assert answer.code == code, said
    assert words in said
    if code:
        assert len(answer.err.strip().splitlines()) <= 2
