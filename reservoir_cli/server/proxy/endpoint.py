"""The proxy's endpoint: handle a request until its answer has ended."""

import re
from collections.abc import AsyncIterator
from concurrent import futures
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx2
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reservoir_cli.server import limits
from reservoir_cli.server.proxy import forward, identify_client
from reservoir_cli.server.proxy.add_recalled_messages import Enricher
from reservoir_cli.server.proxy.compression import Decoder, Undecodable
from reservoir_cli.server.proxy.forward import to_upstream
from reservoir_cli.server.proxy.json_spans import OddJSON
from reservoir_cli.server.proxy.parse_request import ParsedRequest, parse
from reservoir_cli.server.proxy.provider_histories import ProviderHistories
from reservoir_cli.server.proxy.providers.registry import Route, protocol_at, route_of
from reservoir_cli.server.proxy.scoped_paths import Target, parse_path
from reservoir_cli.server.proxy.store_in_pauses import ExchangeQueue
from reservoir_cli.server.proxy.tee_answer import Listener
from reservoir_cli.server.request_body import ClientGone, RefusedBody, read_body
from reservoir_cli.server.state import ServerState
from reservoir_cli.settings.upstreams import Upstream

_NO = ("", "0", "no", "false", "off", "never")  # values of headers that switch something off
#: Base URLs with a version, such as ``https://host/v1beta/openai``.
_VERSIONED = re.compile(r"(?<!/)/v\d[^/]*(/|$)")
_VERSION_1 = re.compile(r"/v1$")
#: The version at the beginning of a path, and Azure's base URLs with the beginning of its paths.
_PATH_VERSION = re.compile(r"^/v1(?:alpha|beta)?(?=/)")
_AZURE_BASE = re.compile(r"/openai(?:/v1)?$")
_RUNNING = "Reservoir is running\n"  # the command ``ollama`` sends HEAD / first
_NO_SUCH_PATH = "404: no such path; use /v1/… or /api/…, or /PARTITION/INSTANCE/v1/…\n"


@dataclass(frozen=True, slots=True)
class _Incoming:
    scope: Scope
    receive: Receive
    send: Send
    target: Target
    route: Route
    headers: Headers


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """A request as it is sent to a model.

    :param note: for the answer's header ``x-reservoir``; empty for none.
    :param parsed: ``None`` if its answer is not to be read.
    """

    body: bytes
    note: str = ""
    parsed: ParsedRequest | None = None
    decoded: bool = False


class Proxy:
    """Forward requests to models with recalled messages added, and store the exchanges."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._queue = ExchangeQueue(
            state,
            before=lambda reservoir: self._enricher.write_queued(reservoir),
            on_embedded=lambda: self._enricher.rehearse(),
        )
        self._histories = ProviderHistories()
        self._client: httpx2.AsyncClient
        self._enricher: Enricher

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep connections to models open until the block ends."""
        self._enricher = Enricher(self._state)
        await anyio.to_thread.run_sync(futures.wait, [self._enricher.warmed], limits.WARMING)
        async with forward.new_client() as self._client:
            yield
        self._queue.close()
        self._enricher.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["reservoir_path"]
        target = parse_path(path)
        if target is None:
            is_probe = path in ("", "/") and scope["method"] in ("GET", "HEAD")
            text, status = (_RUNNING, 200) if is_probe else (_NO_SUCH_PATH, 404)
            await Response(text, status, media_type="text/plain")(scope, receive, send)
            return
        headers = Headers(scope=scope)
        route = route_of(target.path, headers)
        incoming = _Incoming(scope, receive, send, target, route, headers)
        try:
            if "websocket" in headers.get("upgrade", "").lower():
                # clients then use HTTP
                raise _Refused(426, "websockets are not supported; send a POST request")
            upstream = self._upstream(route, headers.get("x-reservoir-upstream"))
            body = await read_body(scope, receive)
        except ClientGone:
            return
        except (RefusedBody, _Refused) as error:
            await _fail(incoming, error.status, str(error))
            return
        await self._exchange(incoming, upstream, await self._prepare(incoming, body))

    def _upstream(self, route: Route, name: str | None) -> Upstream:
        upstream = self._state.upstreams.get(name or route.upstream)
        if upstream is None and not name:
            setting = f"upstreams.{route.upstream}.url"
            raise _Refused(404, f"this path needs a URL: reservoir config set {setting}=…")
        if upstream is None or upstream.protocol != route.speaks:
            raise _Refused(404, f"no upstream of that name speaks {route.speaks}")
        return upstream

    async def _prepare(self, incoming: _Incoming, body: bytes) -> _Outgoing:
        headers, shape = incoming.headers, incoming.route.shape
        if incoming.scope["method"] != "POST" or shape is None:
            return _Outgoing(body)
        if headers.get("x-reservoir-bypass", "no").strip().lower() not in _NO:
            return _Outgoing(body, "bypassed")
        encoding = ",".join(headers.getlist("content-encoding")).strip().lower()
        if encoding in ("", "identity"):
            return await self._enrich(incoming, shape, body)
        try:
            body = await anyio.to_thread.run_sync(_decode, body, encoding)
        except Undecodable:
            return _Outgoing(body, "skipped; reason=encoding")
        return replace(await self._enrich(incoming, shape, body), decoded=True)

    async def _enrich(self, incoming: _Incoming, shape: str, body: bytes) -> _Outgoing:
        try:
            if len(body) <= limits.PARSED_IN_THREAD:
                parsed = parse(shape, body, incoming.headers)
            else:
                parsed = await anyio.to_thread.run_sync(parse, shape, body, incoming.headers)
        except OddJSON:
            return _Outgoing(body, "skipped; reason=form")
        except Exception as error:  # it must be forwarded all the same
            self._state.log(f"a request could not be read: {type(error).__name__}")
            return _Outgoing(body, "skipped; reason=form")
        if parsed.side:
            return _Outgoing(body, "skipped; reason=side request")
        if parsed.continues and not parsed.named:
            conversation = self._histories.find(self._partition(incoming, parsed), parsed.continues)
            parsed = replace(parsed, conversation=conversation or parsed.conversation)
        client = identify_client.client_of(incoming.headers)
        enriched = await self._enricher.enrich(parsed, *self._scope_of(incoming, parsed), client)
        return _Outgoing(enriched.body, enriched.note, None if parsed.only_counts else parsed)

    def _scope_of(self, incoming: _Incoming, parsed: ParsedRequest) -> tuple[str, str]:
        instance = incoming.target.instance or identify_client.client_of(incoming.headers)
        return self._partition(incoming, parsed), instance

    def _partition(self, incoming: _Incoming, parsed: ParsedRequest) -> str:
        config, named = self._state.config, incoming.target.partition
        assigned = parsed.folder and not named and config.partition_of(parsed.folder)
        return named or assigned or str(config.lookup("partition")[0])

    def _listener(self, incoming: _Incoming, parsed: ParsedRequest | None) -> Listener | None:
        headers, shape = incoming.headers, incoming.route.shape
        if parsed is None or shape is None:
            return None
        if headers.get("x-reservoir-store", "yes").strip().lower() in _NO:
            return None
        storing = identify_client.is_stored(identify_client.client_of(headers), self._state.config)
        return Listener(
            self._state.writer,
            self._queue,
            self._histories,
            protocol_at(shape),
            parsed,
            self._scope_of(incoming, parsed),
            named_scope=incoming.target.partition is not None,
            storing=storing,
        )

    async def _exchange(self, incoming: _Incoming, upstream: Upstream, outgoing: _Outgoing) -> None:
        listener, notes = self._listener(incoming, outgoing.parsed), incoming.scope["reservoir_log"]
        url = url_of(upstream, incoming.target.path, incoming.scope["query_string"])
        notes += [outgoing.note] if outgoing.note else []
        try:
            failure, began = await self._relay(incoming, url, outgoing, listener)
        finally:  # also if the server stops before the answer has ended
            if listener:
                with anyio.CancelScope(shield=True):
                    notes += await listener.finish()
        if failure and began:
            raise failure  # closes the connection, so that the client's answer is cut, too
        if failure:
            name, host = upstream.name, urlsplit(upstream.url).netloc.rpartition("@")[2]
            setting = f"its URL is from upstreams.{name}.url or --upstream"
            problem = f"the upstream {name} at {host} {failure}; {setting}"
            await _fail(incoming, 502, problem)

    async def _relay(
        self, incoming: _Incoming, url: str, outgoing: _Outgoing, listener: Listener | None
    ) -> tuple[forward.UpstreamError | None, bool]:
        """Relay an answer; return why the upstream failed, if it did, and whether it had begun."""
        failure: forward.UpstreamError | None = None
        began, scope = False, incoming.scope
        extra = (
            [(b"x-reservoir", outgoing.note.encode("ascii", "replace"))] if outgoing.note else []
        )
        async with anyio.create_task_group() as tasks:

            async def watch_client() -> None:
                await forward.wait_for_disconnect(incoming.receive)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch_client)
            headers = to_upstream(scope["headers"], decoded=outgoing.decoded)
            try:
                async with forward.open_answer(
                    self._client, scope["method"], url, headers, outgoing.body
                ) as response:
                    began = True
                    await forward.relay(response, extra, incoming.send, listener)
            except forward.UpstreamError as error:
                failure = error
            tasks.cancel_scope.cancel()
        return failure, began


class _Refused(Exception):
    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def _decode(body: bytes, encoding: str) -> bytes:
    decoder = Decoder(encoding, limits.MAX_BODY)
    decoded = decoder.decode(body)
    if not decoder.is_whole:
        raise Undecodable("incomplete")
    return decoded


def url_of(upstream: Upstream, path: str, query: bytes) -> str:
    """Return the URL at an upstream, which may have the beginning of the path, or its version."""
    versioned = _VERSION_1 if upstream.protocol in ("anthropic", "ollama") else _VERSIONED
    azure = _AZURE_BASE.search(upstream.url)
    if azure and path.startswith(f"{azure[0]}/"):
        path = path.removeprefix(azure[0])
    elif versioned.search(upstream.url):
        path = _PATH_VERSION.sub("", path)
    return f"{upstream.url}{path}{'?' if query else ''}{query.decode('ascii', 'replace')}"


async def _fail(incoming: _Incoming, status: int, problem: str) -> None:
    headers = {"Upgrade": "HTTP/1.1", "Connection": "Upgrade"} if status == 426 else None
    body = incoming.route.protocol.error_body(status, problem)
    answer = Response(body, status, headers, media_type="application/json")
    await answer(incoming.scope, incoming.receive, incoming.send)
