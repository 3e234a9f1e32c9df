"""Print options for pip that install PyTorch without CUDA on machines that cannot use it.

On Linux, PyPI's PyTorch includes CUDA. Without an NVIDIA device we use PyTorch's index of CPU
builds if it answers in time; otherwise pip uses its configured index. Notes go to stderr.
"""

import os
import sys
import threading
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

INDEX = "https://download.pytorch.org/whl/cpu"
_PATIENCE = 3
_DEVICES = (
    "dev/nvidia0",
    "dev/nvidiactl",
    "proc/driver/nvidia/version",
    "usr/lib/wsl/lib/nvidia-smi",
)
_CPU = "0.4 GB to download, 1.5 GB on disk"
_CUDA = "about 3 GB to download, 6 GB on disk"


def has_nvidia(root: Path = Path("/")) -> bool:
    """Return whether this machine has an NVIDIA device, natively or through WSL."""
    return any((root / device).exists() for device in _DEVICES)


def answers(url: str, seconds: float = _PATIENCE) -> bool:
    """Return whether a server answers in time, name resolution included."""
    answered = threading.Event()

    def ask() -> None:
        with suppress(OSError, ValueError):
            request = urllib.request.Request(f"{url}/torch/", method="HEAD")
            with urllib.request.urlopen(request, timeout=seconds):
                answered.set()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()


def choose(platform: str, environment: Mapping[str, str], url: str, root: Path) -> tuple[str, str]:
    """Return options for pip, and a note for the user."""
    if not platform.startswith("linux"):
        return "", f"PyTorch and the embedding model: {_CPU}"
    if has_nvidia(root):
        return "", f"NVIDIA device: PyTorch with CUDA and the embedding model, {_CUDA}"
    if "PIP_NO_INDEX" not in environment and answers(url):
        return f"--extra-index-url {url}", f"PyTorch for CPUs and the embedding model: {_CPU}"
    note = f"no NVIDIA device, but {url} does not answer: taking the PyTorch that pip is offered; "
    return "", f"{note}{_CPU} for a CPU build, {_CUDA} with CUDA"


def main() -> None:
    """Print the options."""
    options, note = choose(sys.platform, os.environ, INDEX, Path("/"))
    print(note, file=sys.stderr, flush=True)
    print(options, flush=True)
    os._exit(0)  # name resolution cannot be interrupted


if __name__ == "__main__":
    main()
