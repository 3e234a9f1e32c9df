"""``reservoir serve`` as a process: start, end, and recovery after a kill."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import forked
import httpx2
import plain_http
import pytest
from forked_session import ForkedProcess
from upstream import HOLD, Reply

from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server import process, running_servers
from reservoir_cli.server.running_servers import RunningServer
from reservoir_cli.util.programs import process_start_time

RESERVOIR = str(Path(sys.executable).with_name("reservoir"))
PATIENCE = 300
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"It lost jobs."}}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


@contextmanager
def started(store_path: Path, *words: str) -> Iterator[tuple[ForkedProcess, Any]]:
    """Fork a server; yield the process and the document that it prints when it is ready."""
    command = ("--db", str(store_path), "serve", "--port", "0", "--json", *words)
    process = ForkedProcess(*command, env=os.environ, folder=store_path.parent)
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        process.stdin.close()
        document = process.stdout.readline()
        watchdog.cancel()
        yield process, json.loads(document)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate(PATIENCE)


def ask(ready: Any, *messages: dict[str, str]) -> bytes:
    body = {"messages": [*messages], "stream": True}
    url = f"{ready['base_url']}/chat/completions"
    return plain_http.post(url, json=body, timeout=PATIENCE).content


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_new_store_in_a_synced_folder_is_reported_once(tmp_path, home):
    (tmp_path / "OneDrive").mkdir()
    for reports in (1, 0):
        with started(tmp_path / "OneDrive" / "r.db") as (process, _):
            process.terminate()
            _, log = process.communicate(PATIENCE)
            assert log.count(b"warning: the store is in a folder that OneDrive syncs") == reports


def test_it_prints_its_address_and_ends_on_a_signal(store_path, home):
    with started(store_path) as (process, ready):
        root, _, token = ready["base_url"].removesuffix("/v1").partition("/k/")
        assert ready == {
            "schema_version": 1,
            "base_url": f"{root}/k/{token}/v1",
            "page": f"{root}/ui/",
        }
        assert token == (home / "serve.token").read_text(encoding="utf-8").strip()
        started_at = process_start_time(process.pid)
        assert started_at
        server = RunningServer(ready["base_url"], process.pid, started_at)
        assert running_servers.read_servers() == [server]
        assert server.page == ready["page"]
        process.terminate()
        _, log = process.communicate(PATIENCE)
        if os.name == "posix":
            assert process.returncode == 143
            assert running_servers.read_servers() == []
        assert b"Traceback" not in log


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_the_announced_address_is_one_at_which_it_listens(host):
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with process.listen(host, 0) as listener:
        url = urlsplit(f"http://{process._url_host(host)}:{listener.getsockname()[1]}")
        socket.create_connection((str(url.hostname), url.port or 0), timeout=60).close()


def has_ipv6() -> bool:
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ([], ""),
        (
            ["--host", "0.0.0.0"],
            "everyone on your network who has the token can use the server and its page",
        ),
        (
            ["--open-proxy"],
            "every program and user of this machine can ask models without the token, "
            "and so read what they recall",
        ),
        (
            ["--open-proxy", "--host", "0.0.0.0"],
            "everyone on your network can ask models without the token, "
            "and so read what they recall",
        ),
    ],
    ids=["neither", "network", "open", "both"],
)
def test_what_others_can_do_is_a_warning(store_path, home, words, warning):
    with started(store_path, *words) as (process, _):
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(PATIENCE)
    assert err.decode() == f"warning: {warning}\n" * bool(warning)


def test_ending_a_server_keeps_the_record_of_another(store_path):
    with started(store_path) as (_, first), started(store_path) as (second, _):
        second.terminate()
        second.communicate(PATIENCE)
        pages = [server.page for server in running_servers.read_servers() if server.make_code()]
    assert pages == [first["page"]]


def test_servers_are_ended_by_a_command(store_path):
    with started(store_path) as (first, _), started(store_path) as (second, _):
        second.kill()
        second.communicate(PATIENCE)
        code, stderr = failed(store_path, "--stop")
        ended = first.wait(PATIENCE)
        assert ended == 143 or os.name != "posix"
        assert code == 0
        assert stderr.startswith("note: stopped the server at http://127.0.0.1:")
        assert running_servers.read_servers() == []
        assert failed(store_path, "--stop") == (0, "note: no server is running\n")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals for one process")
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGHUP", 143)])
def test_an_answer_in_progress_is_finished_before_the_end(store_path, provider, number, code):
    provider.reply = Reply([CHUNK, HOLD, END])
    with started(store_path, "--upstream", f"openai={provider.url}/v1") as (process, ready):
        url = f"{ready['base_url']}/chat/completions"
        body = {"messages": [user("why?")]}
        with httpx2.stream("POST", url, json=body, timeout=PATIENCE) as answer:
            pieces = answer.iter_raw()
            assert next(pieces) == CHUNK
            process.send_signal(getattr(signal, number))
            provider.going_on.set()
            assert b"".join(pieces) == END
        assert process.wait(PATIENCE) == code
    assert running_servers.read_servers() == []
    with Reservoir.open(store_path) as reservoir:
        rows = reservoir.view(Scope(None), 0)
    assert [row.content for row in rows] == ["why?", "It lost jobs."]


def test_messages_lost_by_a_kill_are_stored_by_the_next_request(store_path, provider):
    provider.reply = Reply([CHUNK, END])
    upstream = ("--upstream", f"openai={provider.url}/v1")
    with started(store_path, *upstream) as (process, ready):
        with Reservoir.open(store_path) as blocking, blocking.store.write():
            # Nothing is stored while another program writes.
            assert ask(ready, user("why?")) == CHUNK + END
            process.kill()
            process.wait(PATIENCE)
    with Reservoir.open(store_path) as reservoir:
        assert reservoir.view(Scope(None), 0) == []
    with started(store_path, *upstream) as (process, ready):
        reply = {"role": "assistant", "content": "It lost jobs."}
        ask(ready, user("why?"), reply, user("and then?"))
        process.terminate()
        process.wait(PATIENCE)
    with Reservoir.open(store_path) as reservoir:
        rows = reservoir.view(Scope(None), 0)
    texts = ["why?", "It lost jobs.", "and then?", "It lost jobs."]
    assert [row.content for row in rows] == (texts if os.name == "posix" else texts[: len(rows)])


def refused(store_path: Path, *words: str) -> tuple[int, str]:
    """Run a server that must fail to start, in a forked process."""
    result = forked.run(
        "--db", str(store_path), "serve", *words, env=os.environ, folder=store_path.parent
    )
    assert result.out == b""
    return result.code, result.err


def failed(store_path: Path, *words: str, **environment: str) -> tuple[int, str]:
    result = subprocess.run(
        [RESERVOIR, "--db", str(store_path), "serve", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env={**os.environ, **environment},
        check=False,
    )
    assert result.stdout == ""
    return result.returncode, result.stderr


def test_answers_are_sent_without_delay():
    with process.listen("127.0.0.1", 0) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_an_error(store_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, stderr = refused(store_path, "--port", port)
    assert code == 1
    assert stderr.startswith(f"error: cannot listen at 127.0.0.1:{port}: ")
    assert "hint: " in stderr


def test_a_port_that_another_server_of_reservoir_uses_says_how_to_stop_it(store_path):
    with started(store_path) as (first, ready):
        port = ready["page"].removesuffix("/ui/").rpartition(":")[2]
        code, stderr = refused(store_path, "--port", port)
        assert code == 1
        assert "hint: Reservoir's server is running there: " in stderr
        assert " serve --stop stops it" in stderr
        first.kill()
        first.communicate(PATIENCE)
        # Its entry stays, but it is not the server that uses the port.
        with socket.create_server(("127.0.0.1", int(port))):
            code, stderr = refused(store_path, "--port", port)
    assert code == 1
    assert "hint: another program is using it" in stderr


@pytest.mark.parametrize("host", ["nosuch.invalid", "192.0.2.1", "a" * 70])
def test_a_host_that_is_not_this_machine_is_an_error_about_the_host(host):
    with pytest.raises(ReservoirError) as raised:
        process.listen(host, 0)
    assert host in raised.value.message
    assert "Unknown error" not in raised.value.message
    assert raised.value.hint == "--host takes an address of this machine, such as 127.0.0.1"


def test_a_port_in_use_is_described_by_the_text_of_windows(monkeypatch):
    def create_server(address: tuple[str, int], **_: object) -> socket.socket:
        text = "Only one usage of each socket address is normally permitted"
        raise OSError(10048, f"{text} (while attempting to bind on address {address!r})")

    monkeypatch.setattr(socket, "create_server", create_server)
    with pytest.raises(ReservoirError) as raised:
        process.listen("127.0.0.1", 3017)
    text = "Only one usage of each socket address is normally permitted"
    assert raised.value.message == f"cannot listen at 127.0.0.1:3017: {text}"


@pytest.mark.parametrize("typed", ["openai", "=http://x", "openai=", "openai=ftp://x", "a=x y"])
def test_an_invalid_upstream_is_wrong_usage(store_path, typed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, stderr = refused(store_path, "--port", port, "--upstream", typed)
    assert code == 2
    assert stderr.startswith("error: --upstream")


def test_without_the_extra_it_says_what_to_install(store_path, tmp_path):
    blocker = tmp_path / "blocked"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvicorn' else real(name, *a)\n",
        encoding="utf-8",
    )
    code, stderr = failed(store_path, PYTHONPATH=str(blocker))
    assert code == 2
    assert 'hint: pip install "reservoir-cli[serve]"' in stderr
