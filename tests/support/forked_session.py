"""A forked command that runs beside the test, with the methods of a ``Popen`` that tests use."""

import os
import select
import signal
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import forked


class ForkedProcess:
    """A command forked from a process that has loaded all servers; it gets pipes as streams."""

    def __init__(self, *arguments: str, env: Mapping[str, str], folder: Path) -> None:
        self.returncode: int | None = None
        child_in, to_child = os.pipe()
        from_child, child_out = os.pipe()
        errors, child_err = os.pipe()
        self._status, child_status = os.pipe()
        streams = (child_in, child_out, child_err, child_status)
        try:
            forked.start_kept(*arguments, streams=streams, env=env, folder=folder)
        finally:
            for stream in streams:
                os.close(stream)
        self.stdin = open(to_child, "wb")
        self.stdout, self.stderr = open(from_child, "rb"), open(errors, "rb")
        self.pid = self._read_number()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                stream.close()
        self.kill()
        self.wait(forked.PATIENCE)

    def _read_number(self) -> int:
        data = os.read(self._status, 4)
        assert len(data) == 4, "the process that keeps the command has ended"
        return int(struct.unpack("i", data)[0])

    def poll(self) -> int | None:
        """Return the exit code if the command has ended."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            return self.wait(0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait until the command ends; return its exit code."""
        if self.returncode is None:
            assert select.select([self._status], [], [], timeout)[0], "the command has not ended"
            self.returncode = os.waitstatus_to_exitcode(self._read_number())
            os.close(self._status)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        """Wait until the command ends; return the rest of its output, which a pipe must hold."""
        if self.stdout.closed:
            return b"", b""
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.wait(timeout)
        with self.stdout, self.stderr:
            return self.stdout.read(), self.stderr.read()

    def send_signal(self, number: int) -> None:
        """Send a signal to the command unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
