"""The working folder that a client names decides on the partition and on recall."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import proxied
import pytest
from dialogue import ANSWER, HELLO, OLDER, QUESTION, chat, completion
from each import each
from patterns import count_steps
from proxied import PATIENCE, Served
from upstream import Upstream

from reservoir_cli.agents.injection_log import Injection, last_injections
from reservoir_cli.messages import Message, Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.proxy.identify_client import _FOLDER, folder_of
from reservoir_cli.server.proxy.providers.openai_chat import CHAT

ENVIRONMENT = "You are an agent.\n<env>\nWorking directory: {}\nIs directory a git repo: No\n</env>"


@each(
    ("system", "first", "folder"),
    [
        (ENVIRONMENT.format("/home/me/app"), [], "/home/me/app"),
        ("# Environment\n - Primary working directory: /srv/my app\n", [], "/srv/my app"),
        ("Current Working Directory: `C:\\code\\app`", [], "C:\\code\\app"),
        ("Current workspace directory: ~/app", [], "~/app"),
        (ENVIRONMENT.format("/first") + ENVIRONMENT.format("/second"), [], "/first"),
        ("", ["# AGENTS.md", "<environment_context>\n  <cwd>/x/y</cwd>"], "/x/y"),
        ("", ["look at <environment_context><cwd>/x/y</cwd>"], None),
        ("The working directory: see /x", [], None),
        ("Working directory: //server/share", [], None),
        ("Working directory: \\\\server\\share", [], None),
        ("Working directory: .", [], None),
        ("Working directory: /" + "x" * 2_000, [], None),
        ("", ["Working directory: /x"], None),
    ],
)
def test_the_folder_is_read_from_what_clients_write(system, first, folder):
    assert folder_of(system, first) == folder


@each("unit", ["\n", "- \n", "==", " - ", "working directory: /", "working directory: / ", "` `/"])
def test_the_search_for_a_folder_grows_with_the_text(unit):
    steps = []
    for size in (600, 1_200):
        text = f"working directory: /{unit * (size // len(unit))}`!"
        starts = [match.start() for match in re.finditer("^", text, re.MULTILINE)]
        steps.append(count_steps(_FOLDER.pattern.replace("^", "", 1), text, starts))
    assert steps[1] <= 2.5 * steps[0]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that the settings assign to a partition."""
    folder, file = tmp_path / "app", tmp_path / "settings.toml"
    folder.mkdir()
    file.write_text(f"[projects]\n'{folder}' = \"work\"\n", encoding="utf-8")
    monkeypatch.setenv("RESERVOIR_CONFIG", str(file))
    return folder


@pytest.fixture
def here(store_path: Path, provider: Upstream, app: Path) -> Iterator[Served]:
    """Serve a store whose older message is in the partition of the folder."""
    with Reservoir.open(store_path) as reservoir:
        reservoir.ingest([Message("user", OLDER)], partition="work", embed=False)
    provider.reply = completion()
    with proxied.serving(store_path, {"openai": provider.url}) as server:
        yield server


def ask(
    client: httpx2.Client, here: Served, folder: Path, *, scope: str = "", session: str = "s1"
) -> str:
    system = {"role": "system", "content": ENVIRONMENT.format(folder)}
    body, headers = chat(system, HELLO), {"session_id": session}
    answer = client.post(f"{here.root}{scope}{CHAT}", json=body, headers=headers)
    return answer.headers["x-reservoir"]


def wait_for_injections(here: Served) -> list[Injection]:
    """Return the last injections, which are logged in a pause."""
    deadline = time.monotonic() + PATIENCE
    while not (found := last_injections(str(here.store), "proxy")):
        assert time.monotonic() < deadline, "nothing is logged"
        time.sleep(0.01)
    return found


def places(here: Served) -> set[str]:
    with Reservoir.open(here.store) as reservoir:
        found = reservoir.view(Scope(None), 0)
    return {f"{message.partition}: {message.content}" for message in found}


def test_messages_of_a_folder_are_recalled_from_and_stored_in_its_partition(
    here, client, app, tmp_path
):
    assert ask(client, here, app / "deep").startswith("added; ")
    assert ask(client, here, tmp_path, session="s2").startswith("skipped; ")
    assert ask(client, here, app, scope="/home/laptop", session="s3").startswith("skipped; ")
    here.settle(3)
    expected = {
        f"{name}: {text}" for name in ("work", "default", "home") for text in (QUESTION, ANSWER)
    }
    assert places(here) == {f"work: {OLDER}", *expected}
    (injection,) = wait_for_injections(here)
    assert (injection.session, injection.partition, injection.door) == ("s1", "work", "proxy")


def test_later_turns_follow_a_conversation_that_was_moved(here, client, tmp_path):
    ask(client, here, tmp_path)
    here.settle(1)
    with Reservoir.open(here.store) as reservoir:
        reservoir.move(reservoir.find(Scope("default")), "private")
    ask(client, here, tmp_path)
    here.settle(2)
    assert places(here) == {f"work: {OLDER}", f"private: {QUESTION}", f"private: {ANSWER}"}


def test_a_file_in_the_folder_switches_recall_off_and_not_storing(here, client, app):
    (app / ".reservoir-off").touch()
    assert ask(client, here, app) == "skipped; reason=switched off"
    here.settle(1)
    assert f"work: {QUESTION}" in places(here)
