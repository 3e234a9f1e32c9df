"""Samples of every format, and files that combine pieces of them."""

import io
import zipfile
from pathlib import Path
from random import Random

_SAMPLES = Path(__file__).parents[1] / "unit" / "transfer" / "formats" / "samples"
_ODD = (
    b"9" * 5000,
    b"1e400",
    b"-1e400",
    b"NaN",
    b"null",
    b'"\\ud800"',
    b'"\\u0000"',
    b"\xff",
    b"\0",
    b"[" * 2000,
    b'{"a":' * 990,
    b'"99999-01-01T00:00:00Z"',
    b"-62135596800.5",
    b"253402300799.9999",
    b'"x": 1, "x": 2,',
    b"\x1b]0;owned\x07",
    b"PK\x03\x04",
    b"SQLite format 3\0",
)
SEEDS: list[bytes] = [file.read_bytes() for file in sorted(_SAMPLES.iterdir())]


def spliced(random: Random) -> bytes:
    """Cut or repeat pieces of a sample, or replace them with those of others or with odd values."""
    data = random.choice(SEEDS)
    for _ in range(random.choice((1, 1, 2, 4))):
        start, end = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
        end = min(end, start + random.choice((1, 8, 64, 1024)))
        other = random.choice(SEEDS)
        place = random.randrange(len(other))
        piece = random.choice(
            (b"", data[start:end] * 2, random.choice(_ODD), other[place : place + 64])
        )
        data = data[:start] + piece + data[end:]
    return data


def damaged_zip(random: Random) -> bytes:
    """Return a zip of samples with some bytes changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", SEEDS[0])
        archive.writestr("b/../c.jsonl", SEEDS[-1])
    damaged = bytearray(buffer.getvalue())
    for _ in range(random.choice((1, 2, 8))):
        damaged[random.randrange(4, len(damaged))] = random.randrange(256)
    return bytes(damaged)
