"""A compiled model that is damaged or deleted while it is used."""

import json
import os
import random
import shutil
import time
from pathlib import Path

import killing
import pytest
from trials import Home, ended


def weights(home: Home) -> Path:
    [file] = (home.folder / "cache" / "models").glob("*/model.bin")
    return file


def unlinked(path: Path) -> None:
    """Replace a hard link, which other tests may share, with a copy."""
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def test_a_flipped_bit_in_a_compiled_model_is_reported(person_with_model):
    person = person_with_model
    person.must("ingest", stdin="hello")
    assert person("doctor").code == 0
    path = weights(person)
    unlinked(path)
    state = path.stat()
    with path.open("r+b") as file:
        file.seek(state.st_size // 2)
        byte = file.read(1)[0]
        file.seek(state.st_size // 2)
        file.write(bytes([byte ^ 64]))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    reported = person("doctor", "--json")
    assert reported.code == 1
    [check] = [check for check in json.loads(reported.out)["checks"] if check["status"] == "fault"]
    assert check["name"] == "engine"
    assert "the compiled model is damaged" in check["detail"]
    assert check["fix"] == "reservoir doctor --repair"
    assert path.exists()  # doctor alone changes nothing


def test_embedding_works_if_the_cache_is_deleted_meanwhile(person_with_model, tmp_path):
    person = person_with_model
    file = tmp_path / "rows.jsonl"
    killing.rows(file, random.Random(1), 60)
    person.must("ingest", "--no-embed", str(file))
    process = person.start("embed")
    place = weights(person).parent
    while process.poll() is None and not _maps(process.pid, place):
        time.sleep(0.005)
    while (person.folder / "cache").exists():  # the process may write to it meanwhile
        shutil.rmtree(person.folder / "cache", ignore_errors=True)
    result = ended(process)
    assert result.code == 0, result
    assert person.rows("COUNT(*)") == [(60,)]
    assert person.rows("COUNT(*)", "id IN (SELECT message_id FROM pending)") == [(0,)]


def _maps(pid: int, folder: Path) -> bool:
    """Return whether a process has the model open."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("needs /proc")
    try:
        return f"{folder}/model.bin" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return True
