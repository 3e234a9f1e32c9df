"""HTTP requests to a local server, without loading the CA certificates for each client."""

import ssl
from functools import cache
from typing import Any

import httpx2


@cache
def _context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def client(**options: Any) -> httpx2.Client:
    """Return a client with its own connections."""
    return httpx2.Client(verify=_context(), **options)


def get(url: str, **options: Any) -> httpx2.Response:
    """Return the answer to a request on a connection of its own."""
    return httpx2.get(url, verify=_context(), **options)


def post(url: str, **options: Any) -> httpx2.Response:
    """Return the answer to a request on a connection of its own."""
    return httpx2.post(url, verify=_context(), **options)
