"""Compile the bundled weights of the default model into the wheel."""

import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = "reservoir_model_minilm"


class CompiledModel(BuildHookInterface):
    """Run Reservoir's compiler, and add the compiled model to the wheel."""

    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See :class:`BuildHookInterface`."""
        from reservoir_cli.embedding.write_package import write_package

        project = tomllib.loads((Path(self.root) / "pyproject.toml").read_text(encoding="utf-8"))
        self._folder = Path(tempfile.mkdtemp())
        write_package(self._folder, project["project"]["dependencies"])
        build_data["force_include"][str(self._folder)] = _PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """See :class:`BuildHookInterface`."""
        if self._folder:
            shutil.rmtree(self._folder)
