"""HTTP that waits for a slow machine, and loads no CA certificates, half of a client's time."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx2
import pytest

#: Seconds that an answer may take on a loaded machine; without a number, it would be five.
PATIENCE = 300


@cache
def _context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def client(**options: Any) -> httpx2.Client:
    """Return a client with its own connections."""
    return httpx2.Client(**{"timeout": PATIENCE, **options}, verify=_context())


def get(url: str, **options: Any) -> httpx2.Response:
    """Return the answer to a request on a connection of its own."""
    return httpx2.get(url, **{"timeout": PATIENCE, **options}, verify=_context())


def post(url: str, **options: Any) -> httpx2.Response:
    """Return the answer to a request on a connection of its own."""
    return httpx2.post(url, **{"timeout": PATIENCE, **options}, verify=_context())


@contextmanager
def without_certificates() -> Iterator[None]:
    """Let servers that start meanwhile create clients without loading CA certificates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", os.devnull)
        yield
