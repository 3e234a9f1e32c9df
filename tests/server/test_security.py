"""Access to the server: foreign hosts and origins get 403, and reading needs the token."""

import http.client
import os
import stat
from contextlib import closing

import plain_http
import pytest

from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.server import running_servers, security
from reservoir_cli.settings import paths

ROUTES = ("/v1/models", "/v1/chat/completions", "/api/tags", "/mcp", "/ui/", "/nowhere")
FOREIGN = (
    {"Host": "evil.example"},
    {"Host": "localhost.evil.example"},
    {"Host": "127.0.0.1.evil.example:3017"},
    {"Host": "10.0.0.1"},
    {"Host": "evil.example@127.0.0.1"},
    {"Host": "[::1].evil.example"},
    {"Host": "[::1]evil.example:80"},
    {"Host": "localhost:evil.example"},
    {"Host": "localhost:80:evil.example"},
    {"Host": "127.0.0.1:"},
    {"Host": "127.0.0.1:99999"},
    {"Host": "[127.0.0.1]"},
    {"Host": "[localhost]"},
    {"Host": "::1"},
    {"Host": "localhost,evil.example"},
    {"Origin": "http://127.0.0.1/evil"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "anything"},
)


def test_foreign_hosts_origins_and_sites_are_refused_on_every_route(served, provider):
    origin = served.state.origin
    with plain_http.client(timeout=60) as client:
        for headers in FOREIGN:
            for root in (origin, served.root):
                for path in ROUTES:
                    answer = client.post(root + path, headers=headers)
                    assert answer.status_code == 403, (headers, path)
    assert provider.requests == []


def test_own_host_names_are_accepted(served):
    port = served.state.origin.rpartition(":")[2]
    accepted = (
        {"Host": "localhost"},
        {"Host": f"LOCALHOST:{port}"},
        {"Host": f"[::1]:{port}"},
        {"Origin": served.state.origin},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin"},
    )
    for headers in accepted:
        assert plain_http.get(f"{served.root}/v1/models", headers=headers).status_code == 200


def test_a_request_may_name_a_whole_url_if_its_host_is_known(served):
    origin = served.state.origin
    own, path = origin.removeprefix("http://"), served.root.removeprefix(origin)
    for target, status in (
        (f"http://{own}{path}/v1/models", 200),
        (f"HTTP://localhost{path}/v1/models", 200),
        (f"http://{own}", 401),
        (f"http://evil.example{path}/v1/models", 403),
        (f"http://evil.example@{own}{path}/v1/models", 403),
        (f"http://{path}/v1/models", 403),
        (f"http://[::1].evil.example{path}/v1/models", 403),
        (f"http://localhost:evil.example{path}/v1/models", 403),
    ):
        with closing(http.client.HTTPConnection(own, timeout=60)) as connection:
            connection.request("GET", target)
            assert connection.getresponse().status == status, target


def test_a_host_may_be_allowed_by_name_and_any_address_if_bound_to_all():
    names = security.host_names("0.0.0.0", ["Host.Docker.Internal"])
    for host in ("host.docker.internal:3017", "192.168.1.5:3017", "[fe80::1]:3017", "localhost"):
        assert security.is_known_host(host, names)
    for host in ("evil.example", "", "*", "192.168.1.5.evil.example", "::", "[::1", "a b"):
        assert not security.is_known_host(host, names)


@pytest.mark.parametrize(
    "name", ["http://x/", "x:3017", "10.0.0.1:3017", "[::1]", "user@x", "a b", ""]
)
def test_only_a_host_name_can_be_allowed(name):
    with pytest.raises(UsageError, match="is not a host name"):
        security.host_names("127.0.0.1", [name])


@pytest.mark.parametrize("name", ["Memory.Example", "10.0.0.1", "fe80::1"])
def test_a_name_and_an_address_can_be_allowed(name):
    assert name.lower() in security.host_names("127.0.0.1", [name])


def test_a_tls_proxy_with_an_allowed_name_may_stand_before_the_page():
    hosts = security.host_names("127.0.0.1", ["memory.example"])

    def is_refused(host: str, origin: str) -> bool:
        return security.refusal({"host": host, "origin": origin}, hosts) is not None

    assert not is_refused("memory.example", "https://memory.example")
    assert not is_refused("memory.example:8443", "https://memory.example:8443")
    assert is_refused("memory.example", "https://memory.example:8443")
    assert is_refused("memory.example", "https://evil.example")
    assert is_refused("127.0.0.1:3017", "https://127.0.0.1:3017")
    assert is_refused("127.0.0.1:3017", "http://[::1")


def test_nothing_is_read_without_the_token(served, provider):
    origin, token = served.state.origin, served.state.token
    wrong = ("", "/k", "/k/", "/k/x", f"/k/{token[:-1]}", f"/k/{token}x", f"/k/{token.upper()}")
    with plain_http.client(timeout=60) as client:
        for prefix in wrong:
            for path in ("/v1/models", "/v1/chat/completions", "/api/tags", "/mcp", "/work/x/v1/y"):
                answer = client.post(f"{origin}{prefix}{path}", json={})
                assert answer.status_code == 401, (prefix, path)
                assert token not in answer.text
    assert provider.requests == []


def test_open_proxy_needs_no_token_for_the_proxy_only(store_path, provider):
    import proxied

    with proxied.serving(store_path, {"openai": provider.url}, open_proxy=True) as server:
        origin = server.state.origin
        assert plain_http.get(f"{origin}/v1/models").status_code == 200
        assert plain_http.get(f"{origin}/k/wrong/v1/models").status_code == 401
        assert plain_http.post(f"{origin}/mcp", json={}).status_code == 404
        assert plain_http.get(f"{origin}/v1/models", headers={"Host": "x.y"}).status_code == 403


def test_the_command_ollama_finds_an_open_proxy_running(store_path):
    import proxied

    with proxied.serving(store_path, open_proxy=True) as server, plain_http.client() as client:
        root = server.state.origin
        assert client.head(f"{root}/").status_code == client.head(server.root).status_code == 200
        assert client.get(f"{root}/").text == "Reservoir is running\n"
        assert client.post(f"{root}/", json={}).status_code == 404
    with proxied.serving(store_path) as server:
        assert plain_http.get(f"{server.state.origin}/").status_code == 401


def test_paths_that_lead_elsewhere_are_404(served, provider):
    with plain_http.client(timeout=60) as client:
        for path in ("/v1", "/v2/models", "/work/v1/models", "/mcp/x", "/v1/%2e%2e/admin"):
            assert client.get(served.root + path).status_code == 404, path
            assert "/PARTITION/INSTANCE/v1/" in client.get(served.root + "/home/v1/models").text
    assert provider.requests == []


def test_the_token_is_in_a_private_file_and_does_not_change():
    stored = security.load_token()
    assert security.load_token() == stored
    assert len(stored) >= 32
    if os.name == "posix":
        assert stat.S_IMODE(paths.token_file().stat().st_mode) == 0o600
        paths.token_file().chmod(0o644)
        assert security.load_token() == stored
        assert stat.S_IMODE(paths.token_file().stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "short", "with/slash" * 5, "zwölf" * 9, "\0" * 40])
def test_an_invalid_token_is_replaced(text, home):
    home.mkdir()
    paths.token_file().write_text(text, encoding="utf-8")
    assert security.load_token() != text


def test_the_hint_for_a_token_that_cannot_be_stored_says_why(home, monkeypatch):
    home.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("RESERVOIR_HOME", str(home / "inner"))
    with pytest.raises(ReservoirError, match="cannot store a token in") as caught:
        security.load_token()
    assert caught.value.hint == f"{home / 'inner'} is not a folder: name another"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_special_file_in_place_of_the_token_is_refused(kind, home):
    home.mkdir()
    if kind == "pipe":
        os.mkfifo(paths.token_file())
    elif kind == "device":
        paths.token_file().symlink_to("/dev/zero")
    else:
        paths.token_file().mkdir()
    with pytest.raises(ReservoirError, match="cannot store a token in") as caught:
        security.load_token()
    assert caught.value.exit_code == 1
    assert caught.value.hint == "move it away"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_the_list_of_servers_is_not_read(home):
    home.mkdir()
    os.mkfifo(paths.server_file())
    assert running_servers.read_servers() == []


def test_the_log_has_one_line_per_request_without_token_text_or_key(served):
    body = {"messages": [{"role": "user", "content": "the secret plan"}]}
    url = f"{served.root}/v1/chat/completions?key=sk-abc"
    plain_http.post(url, json=body, headers={"Authorization": "Bearer sk-xyz"})
    for prefix in ("//k/", "/K/", "/"):
        plain_http.get(served.root.replace("/k/", prefix) + "/v1/models")
    served.settle(4)
    line, *mistyped = served.lines
    assert "POST /v1/chat/completions 200" in line
    assert all(" 401 " in other for other in mistyped)
    for secret in (served.state.token, "secret plan", "sk-"):
        assert not any(secret in other for other in served.lines)
