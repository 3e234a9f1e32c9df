"""Return freed memory to the system."""

import sys


def release() -> None:
    """Return freed memory to the system: glibc keeps most of it. Elsewhere do nothing.

    This takes some milliseconds, and memory that is used again has to be mapped again.
    """
    if sys.platform == "linux":
        import ctypes

        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # musl has none
            trim(0)
