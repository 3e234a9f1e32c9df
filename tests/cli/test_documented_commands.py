"""Run every block of commands in README, docs and benchmarks as a reader would.

A block is a fence named ``sh``, ``console`` (commands after ``$``, then their output) or
``python``. A block that cannot run here has ``<!-- not run: WHY -->`` on the line above its fence;
the files, targets, extras and options that it names must exist all the same. A block whose output
depends on the machine has ``<!-- output differs: WHY -->`` there.
"""

import ast
import html
import json
import os
import pty
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import forked
import pytest
import typer
from command_line import Cli
from each import each

from reservoir_cli.cli.app import app
from reservoir_cli.cli.command_list import EXAMPLES
from reservoir_cli.cli.mistyped_commands import BEFORE_COMMAND

ROOT = Path(__file__).parents[2]
PATIENCE = 300
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
]
EXPORTS = ROOT / "tests" / "unit" / "transfer" / "formats" / "samples"
#: Stand-ins for other programs of a reader: they read stdin and answer.
PROGRAMS = {
    "llm": """[ "$*" = "logs path" ] && exec echo "$HOME/llm.db"
[ -t 0 ] || cat >/dev/null
echo "It lost 214 jobs in the failover."
""",
    "curl": """python3 -c 'import json, sys; json.load(sys.stdin)["messages"][-1]["role"]'
echo '{"choices": []}'
""",
}


@dataclass(frozen=True)
class Block:
    """A block of commands on a page."""

    page: Path
    line: int
    language: str
    text: str
    mark: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fence = r"(?ms)^(?:<!-- (not run|output differs): [^\n]+ -->\n)?^```(\w*)\n(.*?)^```$"
    return [
        Block(page, text.count("\n", 0, match.start(2)) + 1, match[2], match[3], match[1])
        for match in re.finditer(fence, text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
#: Files for other programs, and of a package that other tests install; some can be checked here.
FILES = ("bash", "ini", "json", "lua", "py", "tmux", "text")
RUN = [block for block in BLOCKS if block.language not in FILES and block.mark != "not run"]
NOT_RUN = [block for block in BLOCKS if block.mark == "not run" and block.language != "sql"]
INLINE = [
    (page.name, span)
    for page in PAGES
    for span in sorted(set(re.findall(r"`(reservoir [^`]+)`", page.read_text(encoding="utf-8"))))
]


@pytest.fixture(scope="module")
def written(sample_home, tmp_path_factory):
    """Write a home with the samples, histories of other tools, and stand-ins for programs."""
    folder = tmp_path_factory.mktemp("reader")
    home = Path(shutil.copytree(sample_home, folder / "home", symlinks=True))
    Cli(home, model=True).say("My card number is 4000 0000.", "-p", "old")
    with zipfile.ZipFile(folder / "chatgpt-export.zip", "w") as export:
        export.write(EXPORTS / "chatgpt.json", "conversations.json")
    for place, name in ((".claude/projects", "claude-code"), (".codex/sessions", "codex")):
        (home / place).mkdir(parents=True)
        shutil.copy(EXPORTS / f"{name}.jsonl", home / place)
    (folder / "notes").mkdir()
    (folder / "notes" / "queue.md").write_text("# Queue\n\nJobs wait in a table.\n")
    (folder / "messages.json").write_text('[{"role": "user", "content": "Hello?"}]')
    (folder / "programs").mkdir()
    for name, script in PROGRAMS.items():
        (folder / "programs" / name).write_text(f"#!/bin/sh\nset -e\n{script}")
        (folder / "programs" / name).chmod(0o700)
    return folder


@pytest.fixture
def reader(written, tmp_path):
    """Return a copy of the written home."""
    shutil.copytree(written, tmp_path, symlinks=True, dirs_exist_ok=True)
    copy = Cli(tmp_path / "home", model=True)
    forking = forked.program_folder(os.getpid())
    copy.env["PATH"] = f"{tmp_path / 'programs'}:{forking}:{copy.env['PATH']}"
    copy.env["OPENAI_API_KEY"] = "none"
    return copy


def typed(reader, script: str, command: tuple[str, ...] = ("bash", "-euo", "pipefail", "-c")):
    """Run a script, answering yes to every question; return its output.

    Reads until the last process has closed its output: bash does not wait for process
    substitutions.
    """
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*command, script],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=reader.env,
        cwd=reader.home.parent,
        text=True,
        encoding="utf-8",
    )
    os.write(master, b"y\n" * 20 + b"\x04")  # the last message ends a server that continues to read
    out, err = process.communicate(timeout=PATIENCE)
    os.close(slave)
    os.close(master)
    assert process.returncode == 0, f"{script}\nended with {process.returncode}: {err}"
    assert not re.search(r"(?m)^(error: |Traceback )|: line \d+: ", err), f"{script}\n{err}"
    return out


@pytest.mark.parametrize("block", RUN, ids=str)
def test_a_block_of_commands_runs(reader, block):
    if "embed --rebuild" in block.text:  # of few messages: all samples would take 13 seconds
        for partition in ("home", "work"):
            reader("partitions", "delete", partition, "--yes")
    if block.language == "sh":
        typed(reader, block.text)
    elif block.language == "python":
        assert typed(reader, block.text, (sys.executable, "-c"))
    else:
        for command, shown in re.findall(r"(?ms)^\$ (.*?)\n((?:(?!\$ ).*?\n)*)", block.text):
            out = typed(reader, command)
            assert not shown or block.mark == "output differs" or out == shown


@each("block", BLOCKS)
def test_every_block_names_its_language(block):
    assert block.language in ("sh", "console", "python", "sql", *FILES)
    if block.language == "text":
        assert not re.search(r"(?m)^(\$ )?(reservoir|make|pip|python) ", block.text)


def bash_reads(text):
    return subprocess.run(["bash", "-n", "-c", text], check=False).returncode == 0


READERS = {
    "py": ast.parse,
    "json": json.loads,
    "ini": ConfigParser().read_string,
    "bash": bash_reads,
}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in READERS], ids=str)
def test_a_file_for_another_program_is_well_formed(block):
    assert READERS[block.language](block.text) is not False


@each(
    "command",
    [
        (str(block), command)
        for block in BLOCKS
        if block.language in FILES
        for command in re.findall(r"(?:bin/|[\s'|:])reservoir (-?[a-z][^|\"'>\n]*)", block.text)
    ],
)
def test_a_command_in_a_file_for_another_program_exists(command):
    assert not unknown_options(command[1].split(" -- ")[0])


def test_searching_in_fzf_finds_a_partition_with_a_space_in_its_name(reader):
    reader.say("The gate is green.", "-p", "my notes")
    fzf = reader.home.parent / "programs" / "fzf"
    fzf.write_text("""#!/bin/sh
for word; do case $word in change:reload:*) command=${word#change:reload:}; esac; done
eval "$(printf %s "$command" | sed 's/{q}/gate/')"
""")
    fzf.chmod(0o700)
    recipe = next(block.text for block in BLOCKS if "rs() {" in block.text)
    assert typed(reader, f"{recipe}\nrs -p 'my notes'").endswith(" user: The gate is green.\n")
    assert typed(reader, f"{recipe}\nrs") == ""


def test_the_preview_in_fzf_shows_a_message_of_any_partition(reader):
    recipes = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    preview = re.search("--preview '(.*?)'", recipes)[1]
    message = reader("view", "1", "-p", "old", "--json").document["messages"][0]
    shown = typed(reader, preview.replace("{2}", message["trace_id"][:8]))
    assert shown == f"user: {message['content']}\n"


@each("block", NOT_RUN)
def test_files_and_options_in_a_block_that_is_not_run_exist(block):
    assert subprocess.run(["bash", "-n", "-c", block.text], check=False).returncode == 0
    commands = re.split(r"\n|(?<= )\|(?= )", block.text)
    lines = [shlex.split(line, comments=True) for line in commands]
    assert [words for words in lines if words]
    for words in filter(None, lines):
        check_words(*(word for word in words if not re.match(r"\w+=", word)))


def check_words(program: str, first: str = "", *others: str) -> None:
    """Check that the files and options of a command exist without running it."""
    if program == "reservoir":
        assert not unknown_options(shlex.join((first, *others)))
    elif program == "make":
        assert re.search(rf"(?m)^{first}:", (ROOT / "Makefile").read_text(encoding="utf-8"))
    elif program == "python":
        script = (ROOT / first).read_text(encoding="utf-8")
        assert not [word for word in others if word.startswith("--") and f'"{word}"' not in script]
    elif program in ("pip", "uv", "pipx"):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        named = re.findall(r"\[([\w,-]+)\]", " ".join(others))
        assert set(",".join(named).split(",")) - {""} <= set(project["optional-dependencies"])
    else:
        assert program in ("mkdir", "cp", "createdb", "pg_dump", "psql"), (
            f"nothing is known of {program}"
        )


@cache
def command_line():
    """Return all commands with their options; building them takes 30 ms."""
    return typer.main.get_command(app)


def unknown_options(words: str) -> set[str]:
    """Return the options of a typed command that the command lacks."""
    options = re.findall(r"(?<![\w-])--?[a-z][\w-]*", re.sub(r'"[^"]*"', "", words))
    command = command_line()
    params = list(command.params)
    for word in words.split():  # a command and its subcommand
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
            params += command.params
    known = {option for param in params for option in (*param.opts, *param.secondary_opts)}
    return set(options) - known - BEFORE_COMMAND.keys() - {"--help"}


@each(("page", "span"), INLINE)
def test_commands_quoted_in_sentences_exist(page, span):
    assert not unknown_options(span.removeprefix("reservoir ").split(" | ")[0])


# serve runs forever, and open leaves a server running: tests/server/test_process.py and
# tests/web/test_open.py run them.
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ("serve", "open")])
def test_the_example_of_a_help_text_runs(reader, name):
    typed(reader, EXAMPLES[name])


def test_the_picture_of_the_readme_is_current(reader):
    """Update it by ``python tools/readme_picture.py``."""
    drawn = (ROOT / "docs" / "explain.svg").read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]*>", "\n", drawn).replace("&#160;", " ")
    command = runpy.run_path(str(ROOT / "tools" / "readme_picture.py"))["COMMAND"]
    assert f"$ reservoir {shlex.join(command)}" in shown.replace("&#x27;", "'")
    head, *rows = reader(*command).err.splitlines()
    for column in head.split():
        assert re.search(rf"(?m)^ *{column} *$", shown), column
    for row in rows[:-3]:
        assert f"\n{row[:15]}" in shown, row


def test_the_recording_of_the_readme_is_current(reader):
    """Update it by ``python tools/readme_recording.py``."""
    drawn = (ROOT / "docs" / "recording.svg").read_text(encoding="utf-8")
    shown = html.unescape(re.sub(r"<[^>]*>", "\n", drawn)).replace("\xa0", " ")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        screens = runpy.run_path(str(ROOT / "tools" / "readme_recording.py"))["SCREENS"]
    for command in (command for screen in screens for command in screen):
        assert f"\n$ {command}" in shown
    for row in reader("conversations", "-p", "work", "--match", "redis").out.splitlines():
        number, title, *_ = row.split("\t")
        assert f"\n{number[:8]}  {title}" in shown
    question = "why did we drop redis"
    context = reader("context", question, "-p", "work", "--budget", "500").out.splitlines()
    shown = " ".join(shown.split())  # a role is a span of its own, and long lines are wrapped
    assert [line for line in context[:6] if " ".join(line.split()) not in shown] == []
