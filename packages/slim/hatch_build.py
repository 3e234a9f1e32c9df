"""Take the metadata of ``reservoir-cli-slim`` from the project in the root of the checkout."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_SAME = ("requires-python", "authors", "keywords", "classifiers", "scripts", "entry-points")
_EXTRAS = ("mcp", "postgres", "serve", "tiktoken", "zed")


class Slim(MetadataHookInterface):
    """Copy the project's metadata without the dependencies that are only for compiling models."""

    def update(self, metadata: dict[str, Any]) -> None:
        """See :class:`MetadataHookInterface`."""
        file = Path(self.root).parents[1] / "pyproject.toml"
        pyproject = tomllib.loads(file.read_text(encoding="utf-8"))
        project, slim = pyproject["project"], pyproject["tool"]["reservoir"]["slim"]
        metadata.update({field: project[field] for field in _SAME})
        metadata["dependencies"] = [
            dependency
            for dependency in project["dependencies"]
            if re.split(r"[^\w.-]", dependency)[0] not in slim["without"]
        ]
        extras = project["optional-dependencies"]
        metadata["optional-dependencies"] = {
            "bundled-model": [slim["model"]],
            **{name: extras[name] for name in _EXTRAS},
        }
