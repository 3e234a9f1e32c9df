"""Common mistakes of new users work as meant, or the hint has the exact command."""

import pytest
from each import each
from forked import run

#: Typed words, exit code, and words of the output or the hint.
MISTAKES = [
    ("help", 0, "Usage: reservoir [OPTIONS] COMMAND"),
    ("help view", 0, "Usage: reservoir view"),
    ("version", 0, "reservoir 0."),
    ("ls", 2, "reservoir view lists messages, reservoir conversations lists conversations"),
    ("reservoir view 3", 2, "hint: reservoir view 3\n"),
    ("work context redis", 2, "hint: reservoir context redis -p work"),
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
    ("config get", 2, "hint: reservoir config get KEY"),
    ("config --get", 2, "reservoir config --get KEY"),
    ("config get modle", 2, "model"),
    ("config set modle=x", 2, "model"),
    ("config edit", 2, "hint: reservoir config path"),
    ("config delete model", 2, "hint: reservoir config unset model"),
    ("config get sources", 2, "reservoir config list"),
    ("config path", 0, "reservoir.toml"),
    ("config list", 0, "partition"),
    ("partitions list", 0, "work"),
    ("partitions rename work=job", 2, "hint: reservoir partitions rename work job"),
    ("partitions --rename work job", 2, "hint: reservoir partitions rename work job"),
    ("--json partitions", 2, "hint: reservoir partitions --json"),
    ("help config set", 0, "Usage: reservoir config set"),
    ("partitions rename work", 2, "hint: reservoir partitions rename work B"),
    ("partitions remove work", 2, "hint: reservoir partitions delete work"),
    (
        "partitions empty work",
        2,
        "error: no such command 'partitions empty'\nhint: reservoir partitions [",
    ),
    (
        "partitions lst",
        2,
        "error: no such command 'partitions lst'\nhint: reservoir partitions list\n",
    ),
    ("partitions renam work job", 2, "hint: reservoir partitions rename work job\n"),
    ("partitions rename work default --yes", 1, "hint: reservoir partitions merge work default"),
    ("partitions merge work job --yes", 1, "hint: reservoir partitions rename work job"),
    ("partitions delete wrok --yes", 1, "partitions are default, work"),
    ("search why did we drop redis -p work", 0, "why did we drop Redis?"),
    ("search redis -p wrok", 0, "(-p work)"),
    ("context why did we drop redis -p work", 0, "user: why did we drop redis"),
    ("view work", 2, "hint: reservoir view -p work"),
    ("view #1", 2, "hint: reservoir view --id 1"),
    ("view 2 work", 2, "hint: reservoir view 2 -p work"),
    ("view -5", 2, "hint: reservoir view 5"),
    ("view --limit 5", 2, "hint: reservoir view 5"),
    ("conversations work", 2, "hint: reservoir conversations -p work"),
    ("stats --since 7 days", 2, "hint: reservoir stats --since '7 days'"),
    ("stats --since 7 days ago -p work", 2, "hint: reservoir stats --since '7 days ago' -p work"),
    ("context why --tokens 500", 2, "hint: reservoir context why --budget 500"),
    ("context why --bugdet 5", 2, "no such option: --bugdet. Did you mean '--budget'?\nhint:"),
    ("context why --xyzzy", 2, "error: no such option: --xyzzy\nhint: reservoir context --help"),
    (
        "context why --json",
        2,
        "error: no such option: --json\nhint: reservoir context why --format json\n",
    ),
    ("edit 1 --text x", 2, "no such option: --text\nhint:"),
    ("recall why --exclude c1", 2, "Did you mean '--exclude-conversation'?"),
    ("context why -n 5", 2, "hint: reservoir context why --recent 5"),
    ("search redis -5", 2, "hint: reservoir search redis --limit 5"),
    ("search", 2, "hint: reservoir search TERM..."),
    ("search -p work", 2, "hint: reservoir search -p work TERM..."),
    ("tag 1", 2, "hint: reservoir tag 1 NAME..."),
    ("tag important 1", 2, "hint: reservoir tag 1 important"),
    ("untag important 1 -p work", 2, "hint: reservoir untag 1 important -p work"),
    ("edit corrected #1", 2, "hint: reservoir edit '#1' corrected"),
    ("edit 1 two words", 2, "hint: reservoir edit 1 'two words'"),
    ("edit 9999 x", 1, "hint: on a terminal, reservoir view and reservoir search show the numbers"),
    ("db index", 2, "hint: reservoir db index -p NAME"),
    ("db", 0, "Usage: reservoir db"),
    ("view --id #1", 0, "hello"),
    ("view --id one", 2, "use 12 or '#12'"),
    ("view -n 5", 2, "hint: reservoir view 5"),
    ("view --ids 5", 2, "reservoir view --help"),
    ("view --since yesterdya", 2, "hint:"),
    ("forget 1 -p work", 2, "hint: reservoir forget --id 1 -p work"),
    ("forget redis", 2, "hint: reservoir forget --match redis"),
    ("forget --conversation lisbon --yes", 0, "reservoir conversations --match lisbon -p default"),
    ("forget --match redis --yes -q", 1, "error: nothing in default; 1 message in work"),
    ("forget --all", 2, "hint:"),
    ("forget --id 1", 2, "hint: add --yes"),
    ("ingest nofile.zip", 1, "hint: check the path"),
    ("ingest notes/", 1, "hint: check the path"),
    ("ingest hello", 1, 'hint: to store a message, pipe it in: echo "…" | reservoir ingest'),
    ("ingest --role bot", 2, "user, assistant, system"),
    ("context why --budget lots", 2, "positive whole number"),
    ("context why --budget 2k", 2, "hint: use --budget 2000"),
    ("recall why --budget 2k", 2, "hint: reservoir recall why --budget 2000"),
    ("context why --format md", 2, "hint: did you mean markdown? formats are text"),
    ("export --format markdwn", 2, "hint: did you mean markdown? formats are jsonl"),
    ("sync nosuch", 2, "hint: reservoir init finds"),
    ("search redis --tag impotant", 0, "note: no message in default has the tag impotant"),
    ("context", 0, "note: there is no question: the newest messages are printed"),
    ("context -q", 0, "user: hello"),
    ("context why --budget 0", 2, "positive whole number"),
    (f"context why --budget {'9' * 5_000}", 2, "error: --budget is at most 1,000,000,000\nhint:"),
    ("config unset recent_context_size", 0, "reservoir.toml: recent_context_size\n"),
    ("connect zed --dry-run -p wrok", 0, "note: nothing in wrok; 1 message in work (-p work)\n"),
    ("config get nosuch", 2, "hint: reservoir config list shows all settings"),
    ("config get floor", 2, "hint: did you mean recall_floor?"),
    ("config get partitons", 2, "hint: did you mean partitions, partition?"),
    ("config set partitons.work.redact=mask", 2, "hint: did you mean partitions.work.redact?"),
    ("config set recnt_size=3", 2, "hint: did you mean recent_context_size?"),
    ("config set semntic=3", 2, "hint: did you mean semantic_context_size?"),
    ("config set Half-Life=3d", 2, "hint: did you mean recency_half_life?"),
    ("config set budget=3000", 2, "hint: did you mean max_context_tokens?"),
    ("config set similarity_threshold=.9", 2, "hint: did you mean similar_cosine?"),
    ("config set synapse_threshold=.9", 2, "hint: did you mean link_cosine?"),
    ("config set partitions.work.budgt=3000", 2, "hint: did you mean max_context_tokens, "),
    ("config set partitions.work.model=m", 2, "hint: a partition may have every setting but "),
    (
        "config set partitions.work.database=d",
        2,
        "a partition may have every setting but partition,",
    ),
    ("config set models.m.redact=off", 2, "hint: a model may have profile, recent_context_size,"),
    ("config set sources.mine.foo=1", 2, "hint: a source may have tool, path, partition, exclude"),
    ("config set upstreams.mine.foo=1", 2, "hint: an upstream may have url, protocol"),
    ("models nosuch", 0, "note: no known model has nosuch in its name; reservoir models lists all"),
    ("view --conversation zz -p work", 0, "note: no conversation in work has the id zz; "),
    ("view --conversation zz", 0, "reservoir conversations -p default lists them"),
    ("context why --model gpt4o", 2, "gpt-4o"),
    ("context why --format yaml", 2, "text, markdown, json"),
    ("export --format csv", 2, "jsonl"),
    ("stats -p work", 0, "stored messages\t1"),
    ("backup", 2, "hint: reservoir backup FILE"),
    ("backup one.db two.db", 2, "reservoir backup --help"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a home with a message in each of two partitions."""
    folder = tmp_path_factory.mktemp("first-day")
    env = {
        "HOME": str(folder),
        "RESERVOIR_HOME": str(folder / "home"),
        "RESERVOIR_EMBEDDING_MODEL": "nobody/absent-model",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    for text, partition in (("hello", "default"), ("why did we drop Redis?", "work")):
        run("ingest", "--no-embed", "-p", partition, stdin=text.encode(), env=env, folder=folder)
    return folder, env


@each(("typed", "code", "words"), MISTAKES)
def test_a_mistake_works_as_meant_or_its_hint_has_the_exact_command(world, typed, code, words):
    folder, env = world
    answer = run(*typed.split(), env=env, folder=folder)
    output = answer.out.decode() + answer.err
    assert answer.code == code, output
    assert words in output
    if code:
        assert len(answer.err.strip().splitlines()) <= 2


def test_an_empty_default_partition_is_reported(cli):
    assert cli("config", "set", "partition=work").err == ""  # nothing is stored anywhere
    cli.say("hello")
    result = cli("config", "set", "partition=wrok")
    assert result.err == "note: nothing in wrok; 1 message in work (-p work)\n"
    assert cli("config", "set", "partition=work").err == ""


def test_without_histories_it_lists_the_searched_paths_and_the_next_step(cli, tmp_path):
    cli.env["HOME"] = str(tmp_path)
    assert cli("init").err.startswith("found no history on this machine")
    result = cli.talk("init", answers=[])
    assert result.code == 0
    for place in ("~/.claude/projects", "~/.codex/sessions", "~/.config/io.datasette.llm/logs.db"):
        assert f"  {place} (" in result.out
    aider = "~/.aider.chat.history.md (aider)"
    assert f"  {aider}, also in the current folder and those above\n" in result.out
    cli.env["AIDER_CHAT_HISTORY_FILE"] = "~/.aider.chat.history.md"
    assert f"  {aider}\n" in cli.talk("init", answers=[]).out
    assert "reservoir ingest export.zip" in result.out
    assert not cli.home.exists()
