"""Recognise folders in which other machines write, too: SQLite's files can be damaged there."""

import re
from contextlib import suppress
from pathlib import Path

#: The mounts visible to a process on Linux; other platforms have no such file.
MOUNTS = Path("/proc/self/mounts")
#: Types of file systems whose files are on another machine.
_REMOTE = frozenset(
    "nfs nfs4 cifs smb3 smbfs afs ceph glusterfs lustre davfs ncpfs fuse.sshfs fuse.glusterfs"
    " fuse.ceph fuse.rclone fuse.s3fs".split()
)
#: The names of the folders that services sync between machines, for one account or several.
_SYNCED = {
    "Dropbox": r"(?:.+ )?Dropbox(?: \(.+\)|-.+)?",
    "Google Drive": r"Google ?Drive(?:-.+)?",
    "iCloud": r"iCloud ?Drive|Mobile Documents",
    "Nextcloud": r"Nextcloud\d*",
    "OneDrive": r"OneDrive(?: ?- ?.+)?",
    "ownCloud": r"ownCloud\d*",
    "pCloud": r"pCloud ?Drive",
    "Proton Drive": r"Proton ?Drive",
}


def describe_shared_folder(file: Path) -> tuple[str, str] | None:
    """Return how other machines reach the folder of a store, if any do, and what to do."""
    if kind := network_file_system(file):
        return (
            f"the store is on a network file system ({kind})",
            "use it from one machine only; for several, use a PostgreSQL server",
        )
    if service := sync_service(file):
        return (
            f"the store is in a folder that {service} syncs, which can damage it",
            "move it to another folder, and sync only files written by reservoir backup",
        )
    return None


def sync_service(path: Path) -> str | None:
    """Return the service that syncs the folder of a file, by the names of the folders above it."""
    folders = {*path.absolute().parent.parts, *path.resolve().parent.parts}
    for service, names in _SYNCED.items():
        if any(re.fullmatch(names, folder) for folder in folders):
            return service
    return None


def network_file_system(path: Path) -> str | None:
    """Return the type of the network file system that holds a path; ``None`` if it is local."""
    kind = None
    with suppress(OSError):
        path, nearest = path.resolve(), 0
        for line in MOUNTS.read_text("utf-8", "surrogateescape").splitlines():
            _, escaped, mount_kind, *_ = line.split(" ")
            mounted = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped))
            # A later mount hides an earlier one at the same path.
            if path.is_relative_to(mounted) and len(mounted.parts) >= nearest:
                kind, nearest = mount_kind, len(mounted.parts)
    return kind if kind in _REMOTE else None
