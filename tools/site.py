"""Hooks of MkDocs that add pages outside ``docs`` to the site, with the README as the first page.

MkDocs calls these functions by name.
"""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: Files of the top folder, and their names on the site.
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "reservoir.toml.example": "reservoir.toml.example",
}
#: The first pages in the menu, and the last ones.
FIRST = (
    "index",
    "installing",
    "importing",
    "recipes",
    "context",
    "keeping",
    "commands",
    "durability",
    "security",
)
LAST = ("performance", "ranking", "glossary", "changelog")


def on_config(config: Any) -> Any:
    """Set the order of the pages in the menu."""
    added = {Path(name).stem for source, name in BESIDE.items() if (ROOT / source).exists()}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} | added - {"reservoir.toml"}
    middle = sorted(pages - {*FIRST, *LAST})
    config.nav = [f"{page}.md" for page in (*FIRST, *middle, *LAST) if page in pages]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside ``docs``, with their links rewritten."""
    for source, name in BESIDE.items():
        if (ROOT / source).exists():
            text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
            for target, page in BESIDE.items():
                text = text.replace(f"]({target})", f"]({page})")
            files.append(File.generated(config, name, content=text))
    return files
