"""Homes of users at a shell."""

import os
import shutil
from pathlib import Path

import damaging
import pytest
from trials import Home


@pytest.fixture
def person(tmp_path: Path) -> Home:
    """Return a home without an embedding model."""
    return Home(tmp_path / "person")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with a store with embeddings on many pages."""
    return damaging.build(tmp_path_factory.mktemp("sound"), 120)


@pytest.fixture
def person_with_model(tmp_path: Path, compiled_models: Path) -> Home:
    """Return a home with its own compiled model, whose large files are hard links."""
    home = tmp_path / "person"
    for folder in compiled_models.glob("[!.]*"):
        copy = home / "cache" / "models" / folder.name
        copy.mkdir(parents=True)
        for path in folder.iterdir():
            os.link(path, copy / path.name)
    for path in (home / "cache", home / "cache" / "models", *(home / "cache" / "models").iterdir()):
        path.chmod(0o700)
    return Home(home, RESERVOIR_EMBEDDING_MODEL="sentence-transformers/all-MiniLM-L6-v2")


@pytest.fixture
def without_rights() -> tuple[str, ...]:
    """Return a command prefix that makes file modes hold for root, too."""
    if os.name != "posix":
        pytest.skip("the modes of POSIX files")
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root passes over file modes, and setpriv is not here")
    return (
        "setpriv",
        "--bounding-set=-dac_override,-dac_read_search,-fowner",
        "--inh-caps=-dac_override,-dac_read_search,-fowner",
    )
