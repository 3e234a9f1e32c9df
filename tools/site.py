"""What the site has beyond ``docs/*.md``: the README as its first page, and the pages beside it.

MkDocs calls these functions by their names.
"""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: Files of the top folder, and what they are called in the site.
BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "reservoir.toml.example": "reservoir.toml.example",
}
#: What comes first; all other pages follow.
FIRST = ("index", "importing", "context", "keeping", "commands", "durability", "security")
LAST = ("performance", "ranking", "changelog")


def on_config(config: Any) -> Any:
    """Put the pages that are there into an order for readers."""
    beside = {Path(name).stem for each, name in BESIDE.items() if (ROOT / each).exists()}
    there = {each.stem for each in (ROOT / "docs").glob("*.md")} | beside - {"reservoir.toml"}
    between = sorted(there - {*FIRST, *LAST})
    config.nav = [f"{each}.md" for each in (*FIRST, *between, *LAST) if each in there]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside of the docs, with its links changed to the site's places."""
    for source, name in BESIDE.items():
        if (ROOT / source).exists():
            text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
            for each, place in BESIDE.items():
                text = text.replace(f"]({each})", f"]({place})")
            files.append(File.generated(config, name, content=text))
    return files
