"""Split a path into a scope and the path of a provider."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from reservoir_cli.errors import UsageError
from reservoir_cli.messages import check_name

#: Words that cannot be a partition in a path.
RESERVED = ("v1", "v1alpha", "v1beta", "api", "mcp", "ui", "k", "partition")
_ROOTS = "v1|v1alpha|v1beta|api|openai"  # how the paths of providers begin
#: The scope in a path: the original system's form, or just the two names.
_ORIGINAL = re.compile(r"(?:/v1)?/partition/([^/]+)/instance/([^/]+)(/.*)?")
_SCOPED = re.compile(rf"/([^/]+)/([^/]+)(/(?:{_ROOTS})/.+)")
_PROVIDER = re.compile(rf"/(?:{_ROOTS})/.+")
#: A path of Azure that looks like one with a scope.
_DEPLOYMENT = re.compile(r"/openai/deployments/")
#: The start of a provider's path that lacks ``/v1/``, which the original's form allows.
_WITHOUT_VERSION = re.compile(rf"\A/(?!(?:{_ROOTS})/)")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed path; ``path`` is the provider's, percent-encoded, such as ``/v1/…``."""

    path: str
    partition: str | None = None
    instance: str | None = None


def parse_path(path: str) -> Target | None:
    """Parse a percent-encoded path without a query; ``None`` if the proxy has no such path."""
    if any(unquote(part) in (".", "..") for part in path.split("/")):
        return None
    if original := _ORIGINAL.fullmatch(path):
        rest = original[3] or ""
        return _scoped_target(original[1], original[2], _WITHOUT_VERSION.sub("/v1/", rest, count=1))
    scoped = None if _DEPLOYMENT.match(path) else _SCOPED.fullmatch(path)
    if scoped and unquote(scoped[1]) not in RESERVED:
        return _scoped_target(scoped[1], scoped[2], scoped[3])
    return Target(path) if _PROVIDER.fullmatch(path) else None


def _scoped_target(partition: str, instance: str, path: str) -> Target | None:
    if not _PROVIDER.fullmatch(path):
        return None
    try:
        names = [check_name(unquote(name, errors="strict")) for name in (partition, instance)]
    except (UsageError, UnicodeDecodeError):
        return None
    return Target(path, *names)
