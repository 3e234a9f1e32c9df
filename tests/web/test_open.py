"""``reservoir open``: find a running server, or start one."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import forked
import plain_http
import pytest

from reservoir_cli.cli.commands import open as open_command
from reservoir_cli.errors import ReservoirError

RESERVOIR = str(Path(sys.executable).with_name("reservoir"))
PATIENCE = 300


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run without a display and without a model."""
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)


@pytest.fixture
def ended(home: Path) -> Iterator[None]:
    """End the server that was started in the background."""
    yield
    run("serve", "--stop")


def run(*words: str) -> forked.Answer:
    """Run a command, which starts a server in a new process."""
    return forked.run(*words, env=os.environ, folder=Path.cwd())


def run_program(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the program itself, which Python starts in the working directory."""
    return subprocess.run(
        [RESERVOIR, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.usefixtures("ended")
def test_it_starts_a_server_and_finds_it_again():
    addresses = []
    for _ in range(2):
        ran = run("open", "--print", "--port", "0")
        assert ran.code == 0, ran.err
        addresses.append(ran.out.decode().strip())
        assert "works once" in ran.err
    (page, _, first), (second_page, _, second) = (
        address.partition("enter?code=") for address in addresses
    )
    assert page == second_page
    assert first != second
    with plain_http.client(follow_redirects=True, timeout=PATIENCE) as client:
        answer = client.post(f"{page}enter", data={"code": second})
    assert "conversations, the newest first" in answer.text


@pytest.mark.usefixtures("ended")
def test_no_module_of_the_working_directory_is_imported(tmp_path, monkeypatch):
    """The working directory may hold hostile files, which would run with the user's rights."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for name in ("mcp", "reservoir_cli", "json"):
        witness = str(tmp_path / f"ran {name}")
        Path(f"{name}.py").write_text(f"open({witness!r}, 'w')", encoding="utf-8")
    ran = run_program("open", "--print", "--port", "0")
    assert not [*tmp_path.glob("ran *")]
    assert ran.returncode == 0


def test_no_server_is_started_if_it_could_not_be_found(home, monkeypatch):
    monkeypatch.setattr(open_command, "start_in_background", pytest.fail)
    (home / "serve.json").mkdir(parents=True)
    with pytest.raises(ReservoirError, match=r"cannot write .*serve\.json: not a") as caught:
        open_command._start(["reservoir", "serve"])
    assert caught.value.hint == "name a regular file"


def test_a_server_that_does_not_start_is_an_error_and_the_record_of_a_killed_one_is_ignored(home):
    home.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = taken.getsockname()[1]
    record = {"base_url": f"http://127.0.0.1:{ended}/k/x/v1", "page": "http://x/ui/", "pid": 1}
    (home / "serve.json").write_text(json.dumps([record]), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("open", "--print", "--port", str(port))
    assert (ran.code, ran.out) == (1, b"")
    assert f"error: the server does not start: cannot listen at 127.0.0.1:{port}" in ran.err
    assert "--port N selects another port" in ran.err


def test_the_hint_of_a_missing_extra_is_passed_on(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvicorn' else real(name, *a)\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ran = run_program("open", "--print", "--port", "0")
    assert ran.returncode == 1
    assert "error: the server does not start: reservoir serve needs more packages" in ran.stderr
    assert '[serve]"' in ran.stderr.partition('hint: pip install "reservoir-cli')[2]
