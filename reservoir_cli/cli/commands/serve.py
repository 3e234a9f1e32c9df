"""``reservoir serve``: run the memory proxy and the web page."""

from functools import partial
from importlib.util import find_spec
from typing import Annotated

import typer

from reservoir_cli.agents import hooks
from reservoir_cli.cli import console, open_store, options
from reservoir_cli.cli.global_options import globals_of
from reservoir_cli.cli.options import flag, option
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.server import running_servers
from reservoir_cli.server.state import ServerState
from reservoir_cli.util.installation import install_hint

_PORT = 3017
#: Packages of the extra serve.
_PARTS = ("starlette", "uvicorn", "httpx2", "jinja2", "mcp_types", "markdown_it", "nh3")


def serve(
    ctx: typer.Context,
    host: Annotated[str, option("ADDRESS", "Address to listen on.", "--host")] = "127.0.0.1",
    port: Annotated[
        int, option("N", "Port to listen on; 0 picks a free one.", "--port", min=0, max=65_535)
    ] = _PORT,
    upstream: Annotated[
        list[str] | None, option("NAME=URL", "Base URL of a provider; repeatable.", "--upstream")
    ] = None,
    open_proxy: Annotated[
        bool, flag("--open-proxy", "Accept requests to models without the token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, option("NAME", "Also accept this host name; repeatable.", "--allow-host")
    ] = None,
    stop: Annotated[bool, flag("--stop", "Stop the running servers.")] = False,
    as_json: Annotated[
        bool, flag("--json", "Print one line of JSON when the server is ready.")
    ] = False,
) -> None:
    """Run a proxy that adds memory to any model.

    Clients use the base URL it prints, which contains a secret token. Each request is extended
    with what earlier conversations say about its question; the answer passes unchanged, and both
    are stored. Needs the extra serve.
    """
    if stop:
        _stop_servers()
        return
    if any(find_spec(part) is None for part in _PARTS):
        raise UsageError(
            "reservoir serve needs more packages",
            hint=f'{install_hint("serve")}, in a checkout: pip install -e ".[serve]"',
        )
    config, flags = options.load_config(ctx), globals_of(ctx)
    from reservoir_cli.server import process, security

    def ready(state: ServerState) -> None:
        running_servers.announce(state.base_url)
        if as_json:
            ready = {"schema_version": 1, "base_url": state.base_url, "page": state.page}
            console.lines([ready])
        else:
            console.write(f"{state.base_url}\n")
            console.note("use the line above as the client's base URL; Ctrl-C stops the server")
        if access := security.describe_access(host, open_proxy=open_proxy):
            console.warn(access)

    process.serve(
        config,
        open_store.opener(ctx, config),
        host=host,
        port=port,
        typed_upstreams=dict(map(_parse_upstream, upstream or ())),
        open_proxy=open_proxy,
        allowed_hosts=allow_host or (),
        ready=ready,
        start_sync=partial(hooks.start_sync, flags.config, flags.db),
        log=console.aside,
    )


def _stop_servers() -> None:
    servers = running_servers.read_servers()
    running = [server for server in servers if server.can_be_stopped()]
    for server in servers:
        if server not in running:
            running_servers.forget(server.pid)
        elif server.stop():
            console.note(f"stopped the server at {server.page}")
        else:
            raise ReservoirError(
                f"the server at {server.page} does not stop",
                hint="it may be sending an answer; try again",
            )
    if not running:
        console.note("no server is running")


def _parse_upstream(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not equals or not name or not url:
        raise UsageError(
            f"--upstream {text!r} is not NAME=URL", hint="openai=http://localhost:8080/v1"
        )
    return name, url
