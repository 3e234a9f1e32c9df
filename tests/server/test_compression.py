"""Compressed requests are read, enriched, and sent on without compression."""

import gzip
import json
import zlib
from typing import Any

import pytest
from dialogue import ANSWER, HELLO, OLDER, QUESTION, chat, completion, texts
from each import each

from reservoir_cli.server.limits import MAX_BODY
from reservoir_cli.server.proxy.compression import Decoder, Undecodable
from reservoir_cli.server.proxy.providers.openai_chat import CHAT
from reservoir_cli.transfer.reading.decompressed_file import NoLibrary, load_zstd

BODY = json.dumps(chat(HELLO)).encode()


def zstd(data: bytes) -> bytes:
    try:
        compressed: bytes = load_zstd().compress(data)
    except NoLibrary:
        pytest.skip("no zstd library is installed")
    return compressed


def raw_deflate(data: bytes) -> bytes:
    compress = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compress.compress(data) + compress.flush()


FORMS: dict[str, tuple[str, Any]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "two members": ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without a header": ("deflate", raw_deflate),
    "zstd": ("zstd", zstd),
    "two frames": ("zstd", lambda data: zstd(data[:9]) + zstd(data[9:])),
}


@each("name", FORMS)
def test_a_compressed_request_is_enriched_stored_and_sent_on_without_compression(
    served, provider, client, new_partition, name
):
    provider.reply = completion()
    encoding, compress = FORMS[name]
    partition, headers = new_partition(), {"Content-Encoding": encoding}
    url = f"{served.root}/{partition}/proxy{CHAT}"
    answer = client.post(url, content=compress(BODY), headers=headers)
    assert answer.headers["x-reservoir"].startswith("added; ")
    request = provider.requests[-1]
    assert request.header("content-encoding") is None
    assert request.header("content-length") == str(len(request.body))
    assert OLDER in json.loads(request.body)["messages"][0]["content"]
    stored = texts(served, len(provider.requests), partition=partition)
    assert stored == [f"user: {QUESTION}", f"assistant: {ANSWER}"]


@each(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(BODY)[:-9]),
        ("gzip", b"\x1f\x8b" + b"x" * 50),
        ("gzip", BODY),
        ("gzip", gzip.compress(bytes(MAX_BODY + 1))),
        ("deflate", b"\x78\x9c" + b"x" * 50),
        ("zstd", b"\x28\xb5\x2f\xfd" + b"x" * 50),
        ("gzip, gzip", gzip.compress(gzip.compress(BODY))),
        ("br", b"x"),
    ],
)
def test_what_cannot_be_decompressed_within_the_limit_is_sent_on_as_it_came(
    served, provider, client, encoding, body
):
    headers = {"Content-Encoding": encoding}
    answer = client.post(served.root + CHAT, content=body, headers=headers)
    assert answer.headers["x-reservoir"] == "skipped; reason=encoding"
    request = provider.requests.pop()
    assert provider.requests == []
    assert request.body == body
    assert request.header("content-encoding") == encoding


def test_a_request_that_is_not_read_keeps_its_compression(served, provider, client):
    body = gzip.compress(b"{}")
    client.post(f"{served.root}/v1/files", content=body, headers={"Content-Encoding": "gzip"})
    assert provider.requests[0].body == body


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_no_more_is_decompressed_than_the_limit(encoding):
    compress = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd}[encoding]
    bomb = compress(bytes(50_000_000))
    for most in (0, 1, 1_000):
        assert len(Decoder(encoding, most)._inflate(bomb)) == most + 1
        with pytest.raises(Undecodable):
            Decoder(encoding, most).decode(bomb)
    exact = Decoder(encoding, 1_000)
    assert exact.decode(compress(bytes(1_000))) == bytes(1_000)
    assert exact.is_whole
