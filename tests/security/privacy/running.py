"""Run real processes in a temporary home and watch their files."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import forked

RESERVOIR = Path(sys.executable).with_name("reservoir")


@dataclass(frozen=True)
class Result:
    """The exit code and output of a process."""

    code: int
    out: str
    err: str


class Home:
    """Run ``reservoir`` in a folder that holds its home and its temporary files.

    :param model: whether the compiled embedding model may be used.
    """

    def __init__(self, folder: Path, models: Path | None = None) -> None:
        self.folder, self.home, self.temporary = folder, folder / "home", folder / "tmp"
        self.temporary.mkdir(parents=True, mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "RESERVOIR_HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }
        if models:
            (self.home / "cache").mkdir(parents=True, mode=0o700)
            (self.home / "cache" / "models").symlink_to(models)
        else:
            self.env |= {"RESERVOIR_EMBEDDING_MODEL": "nobody/absent-model", "HF_HUB_OFFLINE": "1"}

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        umask: int = -1,
        before: tuple[str, ...] = (),
    ) -> Result:
        """Run a command to its end.

        :param before: a command prefix, such as a shell that sets limits.
        """
        full = {**self.env, **(env or {})}
        if not before and "PYTHONPATH" not in full:
            code, out, err = forked.run_bytes(
                *arguments, stdin=stdin.encode(), env=full, folder=self.folder, umask=umask
            )
            return Result(code, out.decode("utf-8", "replace"), err.decode())
        result = subprocess.run(
            [*before, RESERVOIR, *arguments],
            input=stdin.encode(),
            capture_output=True,
            env=full,
            cwd=self.folder,
            umask=umask,
            timeout=120,
            check=False,
        )
        return Result(
            result.returncode, result.stdout.decode("utf-8", "replace"), result.stderr.decode()
        )
