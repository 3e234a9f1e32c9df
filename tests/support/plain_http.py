"""HTTP without loading the CA certificates for each client, which takes half of its time."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx2
import pytest


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


@contextmanager
def without_certificates() -> Iterator[None]:
    """Let servers that start meanwhile create clients without loading CA certificates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", os.devnull)
        yield
