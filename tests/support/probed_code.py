"""The package's code with slipcover's probes, put in once for all processes of a run.

Slipcover takes seconds to put probes into every module, which each of a run's processes would
repeat. Here their code is stored. In a process each probe adds its line or branch to a set: an
object for each probe would be a page of memory that every forked command copies.
"""

import ast
import hashlib
import marshal
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import slipcover
from slipcover import Slipcover
from slipcover.branch import preinstrument

#: Newer Pythons report lines to slipcover without probes in the code.
PROBES_IN_CODE = sys.version_info < (3, 12)
if PROBES_IN_CODE:
    from slipcover import probe
    from slipcover.bytecode import Editor

#: Stands for the function that probes call, in stored code.
_SIGNAL = "slipcover signal"
_OWN_SOURCE = Path(__file__).read_bytes()


class ProbedCode:
    """The stored code of a package.

    :param probes: records what a process runs.
    :param folder: where the code is stored.
    """

    def __init__(self, probes: Slipcover, package: Path, folder: Path) -> None:
        self.package = package
        self._probes = probes
        self._folder = folder

    def store_all(self) -> None:
        """Store the code of every module that has none yet."""
        self._folder.mkdir(parents=True, exist_ok=True)
        missing = [file for file in self.package.rglob("*.py") if not self._stored(file).exists()]
        with ProcessPoolExecutor() as pool:
            list(pool.map(_store, map(self._stored, missing), missing, chunksize=8))

    def remove_others(self) -> None:
        """Remove the code of older versions."""
        for path in {*self._folder.glob("*")} - {*map(self._stored, self.package.rglob("*.py"))}:
            path.unlink()

    def load(self, file: Path) -> CodeType:
        """Return the code of a module, whose lines and branches count from now on."""
        if not PROBES_IN_CODE:
            return self._probes.instrument(_compiled(file))
        path = self._stored(file)
        if not path.exists():
            self.store_all()
        code, lines, branches = marshal.loads(path.read_bytes())
        self._probes.code_lines[str(file)].update(lines)
        self._probes.code_branches[str(file)].update(branches)
        return self._with_probes(code)

    def _stored(self, file: Path) -> Path:
        parts = (slipcover.__version__, sys.version, str(file))
        sources = _OWN_SOURCE + file.read_bytes()
        digest = hashlib.sha256("\0".join(parts).encode() + sources).hexdigest()
        return self._folder / f"{file.stem}-{digest[:32]}"

    def _with_probes(self, code: CodeType) -> CodeType:
        add = self._probes.newly_seen[code.co_filename].add
        constants = (
            self._with_probes(constant)
            if isinstance(constant, CodeType)
            else (add if constant == _SIGNAL else constant)
            for constant in code.co_consts
        )
        return code.replace(co_consts=tuple(constants))


def _compiled(file: Path) -> CodeType:
    """Compile a module with marks where branches begin."""
    return compile(preinstrument(ast.parse(file.read_bytes())), str(file), "exec")


def _store(path: Path, file: Path) -> None:
    """Put probes into the code of a module, and store it."""
    probes = Slipcover(branch=True)
    code = probes.instrument(_compiled(file))
    lines, branches = probes.code_lines[str(file)], probes.code_branches[str(file)]
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(marshal.dumps((_without_probes(probes, code), lines, branches)))
    unfinished.replace(path)


def _without_probes(probes: Slipcover, code: CodeType) -> CodeType:
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(_without_probes(probes, constant))
        else:
            constants.append(_SIGNAL if constant is probe.signal else constant)
    inserted = Editor(code)
    for offset, line_or_branch in probes.code2index[code]:
        _, argument = inserted.get_inserted_function(offset)
        constants[argument] = line_or_branch
    return code.replace(co_consts=tuple(constants))


class _Loader(SourceFileLoader):
    stored: ProbedCode

    def get_code(self, _name: str) -> CodeType:
        return self.stored.load(Path(self.path))


class Finder:
    """Finds modules of the package for ``import``, and loads their stored code."""

    def __init__(self, stored: ProbedCode) -> None:
        self._stored = stored

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != self._stored.package.name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.origin and Path(spec.origin).is_relative_to(self._stored.package):
            spec.loader = _Loader(name, spec.origin)
            spec.loader.stored = self._stored
        return spec
