"""``make`` uses the index of PyTorch without CUDA only if it should, and never waits for it."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import torch_index


class Index(BaseHTTPRequestHandler):
    """A package index that has PyTorch."""

    def do_HEAD(self) -> None:
        self.send_response(200 if self.path == "/whl/cpu/torch/" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def index() -> Iterator[str]:
    """Return the URL of an index that answers."""
    server = HTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/whl/cpu"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_without_an_nvidia_device_the_index_is_used(index, tmp_path):
    options, note = torch_index.choose("linux", {}, index, tmp_path)
    assert options == f"--extra-index-url {index}"
    assert "PyTorch for CPUs" in note
    assert "GB to download" in note


def test_an_unreachable_index_is_not_used(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    options, note = torch_index.choose("linux", {}, url, tmp_path)
    assert options == ""
    assert f"{url} does not answer" in note


def test_an_index_that_never_answers_is_not_waited_for(silent):
    assert not torch_index.answers(silent, seconds=0.1)


def test_an_index_without_pytorch_is_not_used(index):
    assert torch_index.answers(index)
    assert not torch_index.answers(f"{index}/other")


@pytest.mark.parametrize("device", ["dev/nvidia0", "proc/driver/nvidia/version"])
def test_with_an_nvidia_device_the_index_is_not_used(index, tmp_path, device):
    (tmp_path / device).parent.mkdir(parents=True)
    (tmp_path / device).touch()
    options, note = torch_index.choose("linux", {}, index, tmp_path)
    assert options == ""
    assert "CUDA" in note


@pytest.mark.parametrize(
    ("platform", "environment"), [("darwin", {}), ("win32", {}), ("linux", {"PIP_NO_INDEX": "1"})]
)
def test_the_index_is_not_used_where_it_is_not_needed(index, tmp_path, platform, environment):
    assert torch_index.choose(platform, environment, index, tmp_path)[0] == ""
