"""Access to the page."""

import time
from dataclasses import replace

import page_server
import plain_http
from page_server import TOKEN, csrf_of

from reservoir_cli.server.handshake import ServerIdentity
from reservoir_cli.server.limits import CODE_LIFETIME, SESSION_LIFETIME
from reservoir_cli.server.web.access import BrowserSessions

VIEWS = (
    "/ui/",
    "/ui/?q=redis",
    "/ui/?q=redis&part=1",
    "/ui/conversation?p=work&i=chat&c=queue",
    "/ui/message?p=work&id=1",
    "/ui/delete?p=work&id=1",
    "/ui/context?q=redis&p=work",
    "/ui/usage",
)


FOREIGN = (
    {"Host": "evil.example"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


def test_no_view_is_shown_without_a_session(server):
    with plain_http.client(base_url=server.origin) as client:
        for address in VIEWS:
            for cookie in ("", "reservoir_session=x"):
                answer = client.get(address, headers={"Cookie": cookie})
                assert answer.status_code == 401, address
                assert "Redis" not in answer.text
                assert "queue" not in answer.text


def test_keys_are_named_only_where_they_do_something(server, client):
    for address in ("/ui/", "/ui/conversation?p=work&i=chat&c=queue", "/ui/context"):
        assert 'aria-label="Keys"' in client.get(address).text
    for address in ("/ui/delete?p=work&id=3", "/ui/usage", "/ui/?since=x"):
        assert 'aria-label="Keys"' not in client.get(address).text
    for path in ("/ui/", "/ui/enter?code=x"):
        assert 'aria-label="Keys"' not in plain_http.get(server.origin + path).text


def test_the_address_of_the_page_may_lack_its_slash(server, client):
    assert client.get("/ui").url.path == "/ui/"
    answer = plain_http.get(f"{server.origin}/ui", follow_redirects=True)
    assert answer.status_code == 401
    assert "reservoir open" in answer.text


def test_requests_of_other_sites_are_refused_even_with_a_session(client):
    for address in (*VIEWS, "/ui/enter", "/ui/static/page.js"):
        for headers in FOREIGN:
            assert client.get(address, headers=headers).status_code == 403, (address, headers)


def test_a_session_is_valid_for_one_host_name(server, client):
    port = server.origin.rpartition(":")[2]
    headers = {"Host": f"localhost:{port}"}
    assert client.get("/ui/").status_code == 200
    assert client.get("/ui/", headers=headers).status_code == 401


def test_every_answer_has_the_policy_and_is_not_cached(client):
    for address in (*VIEWS, "/ui/enter", "/ui/message?p=work&id=77", "/ui/?role=x"):
        headers = client.get(address).headers
        assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_session_cookie_is_for_the_page_only(server):
    answer = plain_http.post(f"{server.origin}/ui/enter", data={"code": server.code()})
    assert answer.status_code == 303
    cookie = answer.headers["Set-Cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/ui"))


def test_a_code_works_once_and_only_in_a_form(server):
    code = server.code()
    shown = plain_http.get(f"{server.origin}/ui/enter", params={"code": code})
    assert "Set-Cookie" not in shown.headers
    send = {"url": f"{server.origin}/ui/enter", "data": {"code": code}}
    assert [plain_http.post(**send).status_code for _ in range(2)] == [303, 401]


def test_only_a_program_that_knows_the_token_can_make_a_code(server):
    known = server.app.state.server.identity
    for identity in (
        replace(known, token="another-token-0123456789"),
        replace(known, origin="http://127.0.0.1:1"),
        replace(known, pid=known.pid + 1),
        replace(known, started="before"),
    ):
        code = identity.make_code("n" * 16, int(time.monotonic()))
        answer = plain_http.post(f"{server.origin}/ui/enter", data={"code": code})
        assert answer.status_code == 401, identity
    code = known.make_code("n" * 16, int(time.monotonic()))
    assert plain_http.post(f"{server.origin}/ui/enter", data={"code": code}).status_code == 303


def test_a_proof_is_for_one_nonce_and_no_code(server):
    known = server.app.state.server.identity
    nonce = "n" * 16
    answer = plain_http.get(f"{server.origin}/ui/proof", params={"nonce": nonce})
    assert known.check_proof(nonce, answer.text) is not None
    for wrong in ("m" * 16, ""):
        assert known.check_proof(wrong, answer.text) is None
    assert known.check_proof(nonce, answer.text[:-1] + "g") is None
    assert known.check_code(".".join((answer.text.split()[0], nonce, answer.text[-64:]))) is None
    for invalid in ("", "short", "n" * 65, "ö" * 16, '"' * 16):
        answer = plain_http.get(f"{server.origin}/ui/proof", params={"nonce": invalid})
        assert answer.status_code == 400, invalid
    evil = {"Origin": "http://evil.example"}
    assert plain_http.get(f"{server.origin}/ui/proof", headers=evil).status_code == 403


def test_codes_and_sessions_expire():
    now = 1_000.0
    server = ServerIdentity(TOKEN, "http://127.0.0.1:3017", 2, "")
    sessions = BrowserSessions(server, lambda: now)
    late, timely = (server.make_code(name * 16, int(now)) for name in "ab")
    early = server.make_code("c" * 16, int(now) + 1)
    assert sessions.redeem(early, "here") is None
    assert (name := sessions.redeem(timely, "here"))
    assert sessions.redeem(timely, "here") is None
    assert sessions.find(name, "here")
    assert sessions.find(name, "elsewhere") is None
    now += CODE_LIFETIME + 1
    assert sessions.redeem(late, "here") is None
    now += SESSION_LIFETIME + 1
    assert sessions.find(name, "here") is None
    names = [
        sessions.redeem(server.make_code(f"{number:016}", int(now)), "here")
        for number in range(100)
    ]
    assert sessions.find(str(names[0]), "here") is None
    assert sessions.find(str(names[-1]), "here")


def test_a_form_without_the_token_of_the_session_changes_nothing(client, memory):
    for data in ({"x": "y"}, {"csrf": ""}, {"csrf": "wrong"}):
        assert client.post("/ui/delete?p=work&id=1", data=data).status_code == 403
        assert client.post("/ui/leave", data=data).status_code == 403
    body = csrf_of(client.get("/ui/").text)
    assert client.post("/ui/delete?p=work&id=1", json={"csrf": body}).status_code == 403
    assert memory.messages([1])


def test_the_form_token_of_another_session_is_refused(server, client, memory):
    with server.client() as other:
        csrf = csrf_of(other.get("/ui/").text)
    assert client.post("/ui/delete?p=work&id=1", data={"csrf": csrf}).status_code == 403
    assert memory.messages([1])


def test_signing_out_ends_the_session(client):
    cookies = dict(client.cookies)
    csrf = csrf_of(client.get("/ui/").text)
    assert client.post("/ui/leave", data={"csrf": csrf}).status_code == 401
    client.cookies.update(cookies)
    assert client.get("/ui/").status_code == 401


def test_queries_in_addresses_are_not_logged(server, client):
    client.get("/ui/?q=sesame")
    assert server.log
    assert not any("sesame" in line or "code=" in line for line in server.log)


def test_policy_reports_are_counted(server):
    answer = plain_http.post(f"{server.origin}/ui/csp", content=b"{}")
    assert answer.status_code == 204
    assert server.violations == 1


def test_an_overlong_form_is_refused(client):
    data = {"csrf": csrf_of(client.get("/ui/").text), "x": "y" * 70_000}
    assert client.post("/ui/leave", data=data).status_code == 403


def test_the_server_serves_its_own_files(server):
    for name in ("page.css", "page.js", "icon.svg"):
        assert plain_http.get(f"{server.origin}/ui/static/{name}").status_code == 200
    for name in ("../access.py", "%2e%2e/access.py", "..%2faccess.py"):
        assert plain_http.get(f"{server.origin}/ui/static/{name}").is_error


MISSING = ("/ui/nope", "/ui/nope/more", "/ui//", "/ui/static/nope.css", "/ui/static/", "/ui/%ff")


def test_an_address_that_the_page_does_not_have_is_answered_like_its_views(server, client):
    for method, address in (*(("GET", path) for path in MISSING), ("DELETE", "/ui/usage")):
        answer = client.request(method, address)
        assert answer.status_code == 404, address
        assert "There is no such page." in answer.text
        assert 'href="/ui/context"' in answer.text
        assert answer.headers["Content-Security-Policy"]
        with plain_http.client() as stranger:
            locked = stranger.request(method, server.origin + address)
        assert locked.status_code == 401, address
        assert "reservoir open" in locked.text


def test_a_browser_finds_the_icon_where_it_looks_for_one(server):
    for path in ("/favicon.ico", "/ui/favicon.ico"):
        answer = plain_http.get(server.origin + path, follow_redirects=True)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("image/svg+xml")


def test_a_wrong_time_keeps_the_form_with_what_was_typed(client):
    answer = client.get("/ui/?q=redis&since=2026-13-45&until=x%22y&p=work")
    assert answer.status_code == 400
    assert "That did not work: &#39;2026-13-45&#39; is not a time" in answer.text
    for kept in ('value="redis"', 'value="2026-13-45"', 'value="x&#34;y"', "<option selected>work"):
        assert kept in answer.text, kept
    assert 'href="/ui/context"' in answer.text


def test_two_servers_do_not_share_sessions(server, client, tmp_path):
    with page_server.serving(str(tmp_path / "other.db")) as other:
        cookies = dict(client.cookies)
        assert plain_http.get(f"{other.origin}/ui/", cookies=cookies).status_code == 401
