"""Freed memory goes back to the system."""

import platform
from pathlib import Path

import pytest

from reservoir_cli.util import freed_memory


def resident() -> int:
    """Return the memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return 1024 * int(line.split()[1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory")
def test_memory_below_a_block_in_use_is_released() -> None:
    blocks = [bytes(4_000) for _ in range(25_000)]
    kept = blocks[::1_000]  # glibc itself releases only what is above all blocks in use
    del blocks
    before = resident()
    freed_memory.release()
    assert resident() < before - 50_000_000
    assert len(kept) == 25
