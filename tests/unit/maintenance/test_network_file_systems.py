from pathlib import Path

import pytest

from reservoir_cli.maintenance import doctor
from reservoir_cli.maintenance.doctor import MOUNTS, Check, Status, examine, network_file_system
from reservoir_cli.reservoir import Reservoir

pytestmark = pytest.mark.skipif(not MOUNTS.exists(), reason="only Linux has this table")
TABLE = r"""overlay / overlay rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sda1 /home/me/local ext4 rw 0 0
//box/share /mnt/my\040share cifs rw 0 0
systemd-1 /net autofs rw 0 0
server:/net /net nfs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/reservoir.db", "nfs4"),
        ("/home/me/local/reservoir.db", None),
        ("/homes/reservoir.db", None),
        ("/mnt/my share/a/reservoir.db", "cifs"),
        ("/mnt/my", None),
        ("/net/reservoir.db", "nfs"),
        ("/mnt/ssh/x", "fuse.sshfs"),
        ("/var/x", None),
    ],
)
def test_the_nearest_mount_determines_if_a_path_is_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str | None
) -> None:
    table = tmp_path / "mounts"
    table.write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(doctor, "MOUNTS", table)
    assert network_file_system(Path(path)) == kind


def test_a_platform_without_mount_information_has_no_network_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "MOUNTS", tmp_path / "none")
    assert network_file_system(tmp_path) is None


def test_the_table_of_this_machine_is_read() -> None:
    assert network_file_system(Path("/proc/self")) is None


def test_doctor_notes_a_store_on_a_network_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    store_path = tmp_path / "reservoir.db"
    Reservoir.open(store_path).close()

    def notes() -> list[Check]:
        checks = examine(store_path, None, lambda *_: None, tools=())
        return [check for check in checks if check.name == "file_system"]

    assert notes() == []
    table = tmp_path / "mounts"
    table.write_text(f"server:/x {tmp_path} nfs4 rw 0 0\n", encoding="utf-8")
    monkeypatch.setattr(doctor, "MOUNTS", table)
    [note] = notes()
    assert note.status is Status.NOTE
    assert note.detail == "the store is on a network file system (nfs4)"
    assert "one machine only" in str(note.fix)
