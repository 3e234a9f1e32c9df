"""Detect whether a file is on a network file system, where the platform reports it."""

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


def network_file_system(path: Path, mounts: Path | None = None) -> str | None:
    """Return the type of the network file system that holds a path; ``None`` if it is local.

    :param mounts: the table of mounts, ``MOUNTS`` by default.
    """
    kind = None
    with suppress(OSError):
        path, nearest = path.resolve(), 0
        for line in (mounts or MOUNTS).read_text("utf-8", "surrogateescape").splitlines():
            _, escaped, mount_kind, *_ = line.split(" ")
            mounted = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped))
            # A later mount hides an earlier one at the same path.
            if path.is_relative_to(mounted) and len(mounted.parts) >= nearest:
                kind, nearest = mount_kind, len(mounted.parts)
    return kind if kind in _REMOTE else None
