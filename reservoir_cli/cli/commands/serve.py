"""``reservoir serve``: a memory proxy in front of models, and a page."""

from importlib.util import find_spec
from typing import Annotated

import typer

from reservoir_cli.cli import console, open_store, options
from reservoir_cli.errors import ReservoirError, UsageError
from reservoir_cli.server import running_servers
from reservoir_cli.server.state import ServerState
from reservoir_cli.util.extras import install_hint

_PORT = 3017
#: What the extra brings, by the names of its packages.
_PARTS = ("starlette", "uvicorn", "httpx2", "jinja2", "mcp_types", "markdown_it", "nh3")


def serve(
    ctx: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65_535, help="Port; 0 takes any that is free."
        ),
    ] = _PORT,
    upstream: Annotated[
        list[str] | None,
        typer.Option("--upstream", metavar="NAME=URL", help="Where a provider is, for this run."),
    ] = None,
    open_proxy: Annotated[
        bool,
        typer.Option("--open-proxy", help="Let programs use the models without the token."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Answer to this host name, too."),
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End the servers that run.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON when it is ready.")
    ] = False,
) -> None:
    """Serve a memory in front of any model: set a client's base URL to the printed one.

    Each request gets what earlier conversations say about its question, the answer passes
    unchanged, and both are stored. The URL holds a secret token. Needs the extra serve.
    """
    if stop:
        _stop_servers()
        return
    if any(find_spec(part) is None for part in _PARTS):
        raise UsageError(
            "reservoir serve needs more packages",
            hint=f"{install_hint('serve')}, in a checkout: pip install -e '.[serve]'",
        )
    config = options.load_config(ctx)
    from reservoir_cli.server import process

    def ready(state: ServerState) -> None:
        process.announce(state)
        if as_json:
            ready = {"schema_version": 1, "base_url": state.base_url, "page": state.page}
            console.lines([ready])
        else:
            console.write(f"{state.base_url}\n")
            console.note("a client's base URL is the line above; Ctrl-C ends the server")

    process.serve(
        config,
        open_store.opener(ctx),
        host=host,
        port=port,
        typed_upstreams=dict(map(_name_and_url, upstream or ())),
        open_proxy=open_proxy,
        allowed_hosts=allow_host or (),
        ready=ready,
        log=console.aside,
    )


def _stop_servers() -> None:
    """End every server of this home that answers, and forget those that were killed."""
    servers = running_servers.read_servers()
    answering = [server for server in servers if server.request_code()]
    for server in servers:
        if server not in answering:
            running_servers.forget(server)
        elif server.stop():
            console.note(f"ended the server at {server.page}")
        else:
            raise ReservoirError(
                f"the server at {server.page} does not end",
                hint="it may be sending an answer; try again",
            )
    if not answering:
        console.note("no server runs")


def _name_and_url(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not equals or not name or not url:
        raise UsageError(
            f"--upstream {text!r} is not NAME=URL", hint="openai=http://localhost:8080/v1"
        )
    return name, url
