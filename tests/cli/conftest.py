"""Homes of users at a shell, with and without a model."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest
from command_line import Cli


@pytest.fixture(scope="session")
def new_cli():
    """Return a function that makes a home in a folder."""
    return Cli


@pytest.fixture
def cli(tmp_path):
    """Return a home with an empty store and no embedding model."""
    return Cli(tmp_path / "home")


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory, sample_store, compiled_models):
    """Build a home with the samples and their embeddings, for copying."""
    home = tmp_path_factory.mktemp("samples") / "home"
    shutil.copy(sample_store, _with_model(home, compiled_models).db)
    return home


@pytest.fixture
def cli_with_model(tmp_path, compiled_models):
    """Return a home with an empty store and the compiled embedding model."""
    return _with_model(tmp_path / "home", compiled_models)


def _with_model(home, compiled_models):
    (home / "cache").mkdir(parents=True)
    (home / "cache" / "models").symlink_to(compiled_models)
    return Cli(home, model=True)


@pytest.fixture
def samples(sample_home, tmp_path):
    """Return a home with the samples, their embeddings, and the embedding model."""
    home = tmp_path / "home"
    shutil.copytree(sample_home, home, symlinks=True)
    return Cli(home, model=True)


@pytest.fixture
def locked(cli):
    """Hold the write lock of the store while the test runs."""
    cli.say("said before")
    connection = sqlite3.connect(cli.db, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield cli
    connection.close()


@pytest.fixture
def impatient(tmp_path):
    """Return an environment in which SQLite waits only briefly for a lock instead of 30 s."""
    folder = tmp_path / "impatient"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sqlite3\n"
        "connect = sqlite3.connect\n"
        "sqlite3.connect = lambda *a, **k: connect(*a, **{**k, 'timeout': 0.2})\n"
    )
    return {"PYTHONPATH": str(folder)}


@pytest.fixture
def as_owner():
    """Return a command prefix that makes file modes hold for root, too."""
    if os.geteuid() != 0:
        return ()
    prefix = (
        "setpriv",
        "--bounding-set=-dac_override,-dac_read_search",
        "--inh-caps=-dac_override,-dac_read_search",
    )
    if shutil.which("setpriv") is None:
        pytest.skip("root without setpriv passes over file modes")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o500)
        tried = subprocess.run(
            [*prefix, "touch", f"{folder}/x"], capture_output=True, check=False
        ).returncode
        passes = Path(folder, "x").exists()
        Path(folder).chmod(0o700)
    if passes or tried == 0:
        pytest.skip("setpriv cannot take root's rights away here")
    return prefix
