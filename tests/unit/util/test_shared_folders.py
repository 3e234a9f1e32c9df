from pathlib import Path

import pytest
from each import each

from reservoir_cli.maintenance.doctor import Check, Status, examine
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.util import shared_folders
from reservoir_cli.util.shared_folders import MOUNTS, network_file_system, sync_service

linux = pytest.mark.skipif(not MOUNTS.exists(), reason="only Linux has this table")
TABLE = r"""overlay / overlay rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sda1 /home/me/local ext4 rw 0 0
//box/share /mnt/my\040share cifs rw 0 0
systemd-1 /net autofs rw 0 0
server:/net /net nfs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
"""


@linux
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
def test_the_nearest_mount_determines_if_a_path_is_remote(tmp_path, monkeypatch, path, kind):
    table = tmp_path / "mounts"
    table.write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(shared_folders, "MOUNTS", table)
    assert network_file_system(Path(path)) == kind


def test_a_platform_without_mount_information_has_no_network_file_system(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_folders, "MOUNTS", tmp_path / "none")
    assert network_file_system(tmp_path) is None


@linux
def test_the_table_of_this_machine_is_read():
    assert network_file_system(Path("/proc/self")) is None


@linux
def test_doctor_notes_a_store_on_a_network_file_system(tmp_path, monkeypatch):
    monkeypatch.setenv("RESERVOIR_EMBEDDING_MODEL", "nobody/absent-model")
    store_path = tmp_path / "reservoir.db"
    Reservoir.open(store_path).close()

    def notes() -> list[Check]:
        checks = examine(store_path, None, lambda *_: None, check_source=lambda *_: None)
        return [check for check in checks if check.name == "file_system"]

    assert notes() == []
    table = tmp_path / "mounts"
    table.write_text(f"server:/x {tmp_path} nfs4 rw 0 0\n", encoding="utf-8")
    monkeypatch.setattr(shared_folders, "MOUNTS", table)
    [note] = notes()
    assert note.status is Status.NOTE
    assert note.detail == "the store is on a network file system (nfs4)"
    assert "one machine only" in str(note.fix)


@each(
    ("path", "service"),
    [
        ("home/me/Dropbox/notes/r.db", "Dropbox"),
        ("home/me/Dropbox (Personal)/r.db", "Dropbox"),
        ("me/Acme Dropbox/r.db", "Dropbox"),
        ("me/Library/CloudStorage/GoogleDrive-me@example.org/My Drive/r.db", "Google Drive"),
        ("me/Library/Mobile Documents/com~apple~CloudDocs/r.db", "iCloud"),
        ("me/iCloudDrive/r.db", "iCloud"),
        ("me/OneDrive/r.db", "OneDrive"),
        ("me/OneDrive - Acme Ltd/Documents/r.db", "OneDrive"),
        ("me/Nextcloud2/notes/r.db", "Nextcloud"),
        ("me/ownCloud/r.db", "ownCloud"),
        ("me/Proton Drive/me/r.db", "Proton Drive"),
        ("me/code/dropbox/r.db", None),
        ("me/DropboxClone/r.db", None),
        ("me/Dropbox", None),
    ],
)
def test_a_synced_folder_is_recognised_by_its_name(tmp_path, path, service):
    assert sync_service(tmp_path / path) == service


def test_a_new_store_in_a_synced_folder_is_reported_once(tmp_path):
    (tmp_path / "Dropbox").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "Dropbox")
    notices: list[str] = []
    for name in ("Dropbox/a.db", "Dropbox/a.db", "link/b.db", "c.db"):
        Reservoir.open(tmp_path / name, notify=notices.append).close()
    assert len(notices) == 2
    assert all("a folder that Dropbox syncs" in notice for notice in notices)
