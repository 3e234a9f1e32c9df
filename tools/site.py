"""Hooks of MkDocs that add pages outside ``docs`` to the site, with the README as the first page.

MkDocs calls these functions by name.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: Files outside of ``docs``, and their names on the site.
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "reservoir.toml.example": "reservoir.toml.example",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/results-2026-11.md": "results-2026-11.md",
    "benchmarks/quality/README.md": "quality.md",
    "benchmarks/ranking.png": "ranking.png",
    "benchmarks/performance.png": "performance.png",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside ``docs``."""
    for source, name in BESIDE.items():
        path = ROOT / source
        if path.suffix == ".png":
            files.append(File.generated(config, name, content=path.read_bytes()))
        else:
            text = rewrite_links(path.read_text(encoding="utf-8"), posixpath.dirname(source))
            files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of the pages in ``docs`` to pages outside of it."""
    outside = page.file.src_uri in BESIDE.values()
    return markdown if outside else rewrite_links(markdown, "docs")


def rewrite_links(text: str, folder: str) -> str:
    """Replace links to files of the repository by their names on the site.

    :param folder: the folder of the page, relative to the repository.
    """

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        return f"]({BESIDE.get(target, target.removeprefix('docs/'))}{link[2]})"

    return re.sub(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*|)\)", on_site, text)
