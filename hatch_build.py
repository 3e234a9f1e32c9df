"""Decide what the wheel of ``reservoir-cli`` holds.

Three wheels are published: ``reservoir-cli-slim`` holds the package, ``reservoir-cli`` asks for it
and adds the libraries that compile models, and ``reservoir-model-minilm`` is a compiled model. An
installation from a checkout has no published ``reservoir-cli-slim`` to go with it, so it holds the
package itself.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The man page and the scripts for completion, and where systems look for them.
SHARED = {
    "docs/reservoir.1": "share/man/man1/reservoir.1",
    "reservoir_cli/cli/completions/reservoir.bash": "share/bash-completion/completions/reservoir",
    "reservoir_cli/cli/completions/_reservoir": "share/zsh/site-functions/_reservoir",
    "reservoir_cli/cli/completions/reservoir.fish": (
        "share/fish/vendor_completions.d/reservoir.fish"
    ),
}


class Contents(BuildHookInterface):
    """Add the package to a wheel from a checkout, and the dependency to one from an sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See :class:`BuildHookInterface`.

        :param version: ``standard`` or ``editable``; an editable wheel refers to the checkout.
        """
        is_published = (Path(self.root) / "PKG-INFO").is_file()
        if version == "editable" or not is_published:
            build_data["shared_data"].update(SHARED)
            if version == "standard":
                build_data["force_include"]["reservoir_cli"] = "reservoir_cli"
            return
        build_data["dependencies"].append(f"reservoir-cli-slim=={self.metadata.version}")
        # The command reservoir and the plugin for llm belong to reservoir-cli-slim: nothing has two
        # owners.
        scripts = self.metadata.core.scripts
        scripts["reservoir-cli"] = scripts.pop("reservoir")
        self.metadata.core.entry_points.pop("llm")
