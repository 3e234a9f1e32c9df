"""The cache of compiled models: lookup, trust, checks and replacement, without a real model."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reservoir_cli.embedding import compiled_models
from reservoir_cli.embedding.compiled_models import CacheUnusableError, Manifest
from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.settings import paths

MANIFEST = Manifest("identity", "", {"torch": "1"}, dimensions=3, query_prompt="q: ")
FILES = {"model.onnx": b"graph", "model.bin": b"weights", "tokenizer.json": b"{}"}
DAY = 24 * 3_600
posix_only = pytest.mark.skipif(os.name != "posix", reason="the modes of POSIX files")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with the files of a published model."""
    folder = tmp_path / "published"
    (folder / "1_Pooling").mkdir(parents=True)
    for name in ("model.safetensors", "config.json", "tokenizer.json", "1_Pooling/config.json"):
        (folder / name).write_text(f"what is in {name}")
    return folder


def fill(folder: Path, manifest: Manifest = MANIFEST) -> None:
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    compiled_models.write_manifest(folder, manifest)


@pytest.fixture
def entry(source: Path) -> Path:
    """Return a cache entry with a complete compiled model."""
    path = compiled_models.folder_of(source)
    with compiled_models.building(path) as folder:
        fill(folder)
    return path


def test_a_built_model_is_read_again(entry):
    assert compiled_models.read(entry) == MANIFEST
    assert [path.name for path in entry.parent.iterdir()] == [entry.name]


def test_a_missing_model_is_not_read(source):
    assert compiled_models.read(compiled_models.folder_of(source)) is None
    assert not compiled_models.folder_of(source).parent.exists()


@posix_only
def test_the_cache_is_private(entry):
    assert {path.stat().st_mode & 0o777 for path in entry.iterdir()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (entry, entry.parent)} == {0o700}


# Paths


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "a file": lambda folder, _: (folder / "config.json").write_text("other"),
    "a new file": lambda folder, _: (folder / "modules.json").write_text("[]"),
    "a file of a module": lambda folder, _: (folder / "1_Pooling" / "config.json").unlink(),
    "the runtime": lambda _, patch: patch.setattr("onnxruntime.__version__", "0.1"),
    "the tokenizers": lambda _, patch: patch.setattr("tokenizers.__version__", "0.1"),
    "the rule of compilation": lambda _, patch: patch.setattr(compiled_models, "_RULE", "another"),
    "the passages": lambda _, patch: patch.setattr(
        "reservoir_cli.embedding.split_passages.RULE", "?"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_another_origin_has_another_path(source, monkeypatch, change):
    before = compiled_models.folder_of(source)
    assert compiled_models.folder_of(source) == before
    change(source, monkeypatch)
    assert compiled_models.folder_of(source) != before


def test_another_path_to_the_same_folder_has_the_same_entry(source, tmp_path):
    (tmp_path / "link").symlink_to(source)
    assert compiled_models.folder_of(tmp_path / "link") == compiled_models.folder_of(source)


def test_copies_of_a_model_share_an_entry(source, tmp_path):
    shutil.copytree(source, tmp_path / "copy", copy_function=shutil.copy)  # with other times
    assert compiled_models.folder_of(tmp_path / "copy") == compiled_models.folder_of(source)


def test_weights_are_read_once(source, monkeypatch):
    path = compiled_models.folder_of(source)
    monkeypatch.setattr(compiled_models, "sha256", lambda _: pytest.fail("read again"))
    assert compiled_models.folder_of(source) == path


@pytest.mark.parametrize("change", ["other content", "writable by others"])
def test_an_untrusted_cached_hash_is_not_used(source, change):
    path = compiled_models.folder_of(source)
    [note] = (paths.cache_dir() / "weights").iterdir()
    if change == "other content":
        note.write_text("x" * 64)
    elif os.name == "posix":
        note.write_text("0" * 64)
        note.chmod(0o666)
    assert compiled_models.folder_of(source) == path
    assert note.read_text() not in ("x" * 64, "0" * 64)


def test_old_cached_hashes_are_removed(source):
    compiled_models.folder_of(source)
    [note] = (paths.cache_dir() / "weights").iterdir()
    os.utime(note, (1, 1))
    os.utime(source / "model.safetensors", ns=(1, 1))
    compiled_models.folder_of(source)
    assert not note.exists()
    assert len(list(note.parent.iterdir())) == 1


# Damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a truncated graph": lambda folder: (folder / "model.onnx").write_bytes(b"gra"),
    "truncated weights": lambda folder: os.truncate(folder / "model.bin", 3),
    "other weights of the same size": lambda folder: (folder / "model.bin").write_bytes(b"weighty"),
    "missing weights": lambda folder: (folder / "model.bin").unlink(),
    "a missing tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "a truncated manifest": lambda folder: os.truncate(folder / "manifest.json", 40),
    "an empty manifest": lambda folder: (folder / "manifest.json").write_text(""),
    "a manifest that is a list": lambda folder: (folder / "manifest.json").write_text("[1]"),
    "a manifest with a new field": lambda folder: (folder / "manifest.json").write_text(
        json.dumps({**json.loads((folder / "manifest.json").read_text()), "new": 1})
    ),
    "a manifest with another value": lambda folder: (folder / "manifest.json").write_text(
        (folder / "manifest.json").read_text().replace("q: ", "r: ")
    ),
    "a manifest without files": lambda folder: (folder / "manifest.json").write_text("{}"),
    "a manifest that is not text": lambda folder: (folder / "manifest.json").write_bytes(b"\xff"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_model_is_removed(entry, damage):
    damage(entry)
    assert compiled_models.read(entry) is None
    assert list(entry.parent.iterdir()) == []


def test_a_copy_with_other_times_is_valid_and_hashed_once(entry):
    os.utime(entry / "model.bin", ns=(1, 1))
    assert compiled_models.read(entry) == MANIFEST
    assert (entry / "model.bin").stat().st_mtime_ns > 1


# Bytes that change while size and time stay


def flip(path: Path) -> None:
    """Flip a bit of a file, as a failing disk does."""
    state = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found_by_a_full_check(entry, name):
    assert not compiled_models.is_damaged(entry)
    flip(entry / name)
    assert compiled_models.is_damaged(entry)


@pytest.mark.parametrize(
    ("age", "detected"),
    [(DAY - 60, False), (DAY + 60, True), (-60, True)],
    ids=["young", "old", "?"],
)
def test_a_flipped_bit_is_found_by_the_daily_check(entry, age, detected):
    flip(entry / "model.bin")
    checked_at = time.time() - age
    os.utime(entry / "manifest.json", (checked_at, checked_at))
    assert (compiled_models.read(entry) is None) == detected


def test_all_bytes_are_read_at_most_once_a_day(entry):
    os.utime(entry / "manifest.json", (1, 1))
    assert compiled_models.read(entry) == MANIFEST
    assert time.time() - (entry / "manifest.json").stat().st_mtime < 60
    flip(entry / "model.bin")
    assert compiled_models.read(entry) == MANIFEST


# Models of other versions


def make_outdated(kept: Path, name: str, age: float, manifest: str | None = None) -> Path:
    """Return a compiled model of another version, last opened this many seconds ago."""
    folder = kept.with_name(name)
    folder.mkdir(mode=0o700)
    (folder / "model.bin").write_bytes(b"weights")
    if manifest is None:
        manifest = json.dumps({"rules": ["of another version"]})
    (folder / "manifest.json").write_text(manifest)
    opened_at = time.time() - age
    os.utime(folder / "manifest.json", (opened_at, opened_at))
    return folder


def test_models_of_other_versions_are_removed_after_a_week(entry):
    old = make_outdated(entry, "old", 8 * DAY)
    before_rules = make_outdated(entry, "before", 8 * DAY, "{}")
    in_use = make_outdated(entry, "used", 6 * DAY)
    current = make_outdated(entry, "ours", 99 * DAY, (entry / "manifest.json").read_text())
    with compiled_models.building(entry.with_name("new")) as folder:
        fill(folder)
    assert [path.exists() for path in (old, before_rules, in_use, current)] == [
        False,
        False,
        True,
        True,
    ]


def test_the_daily_check_removes_models_of_other_versions(entry):
    old = make_outdated(entry, "old", 8 * DAY)
    assert compiled_models.read(entry) == MANIFEST
    assert old.exists()
    os.utime(entry / "manifest.json", (1, 1))
    assert compiled_models.read(entry) == MANIFEST
    assert not old.exists()
    assert sorted(path.name for path in entry.parent.iterdir()) == [entry.name]


@pytest.mark.parametrize(
    ("versions", "remembered"),
    [("the same", True), ("others", False)],
    ids=lambda value: str(value),
)
def test_a_failed_compilation_is_remembered_until_the_libraries_change(
    source, versions, remembered
):
    tools = compiled_models.tool_versions() if versions == "the same" else {"torch": "0"}
    failure = Manifest("identity", "it has a module Router", tools)
    path = compiled_models.folder_of(source)
    with compiled_models.building(path) as folder:
        fill(folder, failure)
    assert compiled_models.read(path) == (failure if remembered else None)
    assert path.exists() == remembered


@pytest.mark.model
def test_the_versions_of_the_libraries_are_read_without_importing_them():
    from importlib.metadata import version

    assert compiled_models.tool_versions()["torch"] == version("torch")


# Building


def test_the_first_to_finish_is_kept(source):
    path = compiled_models.folder_of(source)
    with compiled_models.building(path) as slow:
        with compiled_models.building(path) as fast:
            fill(fast)
        fill(slow, Manifest("of the slow one", "", {}))
    assert compiled_models.read(path) == MANIFEST
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_build_leaves_nothing(source):
    path = compiled_models.folder_of(source)
    with pytest.raises(KeyboardInterrupt), compiled_models.building(path):
        raise KeyboardInterrupt
    assert list(path.parent.iterdir()) == []


def test_leftovers_of_killed_processes_are_removed(entry):
    old, fresh = entry.parent / ".building-old", entry.parent / ".building-fresh"
    for folder in (old, fresh):
        folder.mkdir()
        (folder / "model.bin").write_bytes(b"weights")
    os.utime(old, (1, 1))
    with compiled_models.building(entry):
        assert not old.exists()
    assert fresh.exists()


def test_a_full_disk_is_reported(source):
    path = compiled_models.folder_of(source)
    with (
        pytest.raises(CacheUnusableError, match="cannot be written"),
        compiled_models.building(path),
    ):
        raise OSError(28, "No space left on device")
    assert list(path.parent.iterdir()) == []


def test_a_cache_that_is_a_file_cannot_be_used(source):
    path = compiled_models.folder_of(source)
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.write_text("a file")
    with (
        pytest.raises(CacheUnusableError, match="cannot be written"),
        compiled_models.building(path),
    ):
        pass


def test_removing_a_missing_model_does_nothing(entry):
    compiled_models.remove(entry)
    compiled_models.remove(entry)
    assert list(entry.parent.iterdir()) == []


# Trust


@posix_only
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o702])
@pytest.mark.parametrize("which", ["the model", "the folder of models"])
def test_a_model_that_others_can_write_is_not_used(entry, mode, which):
    (entry if which == "the model" else entry.parent).chmod(mode)
    with pytest.raises(CacheUnusableError, match="other users can write"):
        compiled_models.read(entry)
    assert entry.exists()


@posix_only
def test_nothing_is_built_where_others_can_write(entry):
    entry.parent.chmod(0o777)
    with (
        pytest.raises(CacheUnusableError, match="other users can write"),
        compiled_models.building(entry),
    ):
        pytest.fail("it was built")


@posix_only
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root gives files away")
def test_a_model_of_another_user_is_not_used(entry):
    os.chown(entry, 12_345, -1)
    with pytest.raises(CacheUnusableError, match="other users can write"):
        compiled_models.read(entry)


def test_a_lack_of_memory_behind_another_error_is_one():
    shown = ImportError("numpy cannot be imported")
    compiled_models.require_resources(shown)
    shown.__cause__ = ImportError("libx.so: failed to map segment from shared object")
    with pytest.raises(ModelUnavailableError, match="memory or file handles ran out"):
        compiled_models.require_resources(shown)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit memory differently")
# Between these limits, OpenBLAS ends the process itself.
@pytest.mark.parametrize("megabytes", [45, 110])
def test_too_little_memory_for_the_runtime_does_not_load_the_larger_reference(megabytes):
    script = f"""
import resource
from reservoir_cli.embedding import compiled_models
from reservoir_cli.errors import ModelUnavailableError
resource.setrlimit(resource.RLIMIT_AS, ({megabytes << 20}, {megabytes << 20}))
try:
    compiled_models._rules()
except ModelUnavailableError as error:
    print(error.message)
"""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300
    )
    assert "memory or file handles ran out" in result.stdout
