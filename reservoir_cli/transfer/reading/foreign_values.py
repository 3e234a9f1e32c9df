"""Convert values of other tools' files, which may be of any type."""

import json
import re
from typing import Any
from urllib.parse import unquote

from reservoir_cli.messages import ToolCall, clean_text


def text(value: Any) -> str | None:
    """Return a non-blank text; ``None`` for anything else."""
    return clean_text(value) if isinstance(value, str) and value.strip() else None


def folder_name(path: Any) -> str | None:
    """Return the last component of a POSIX or Windows path."""
    clean = text(path)
    if clean is None:
        return None
    names = re.split(r"/" if clean.startswith("/") else r"[/\\]", clean.strip())
    return next((name for name in reversed(names) if name), None)


def uri_folder_name(uri: Any) -> str | None:
    """Return the last component of the path of a URI such as ``file:///home/ann/my%20app``."""
    return folder_name(uri_path(uri))


def uri_path(uri: Any) -> str | None:
    """Return the path of a URI such as ``file:///home/ann/my%20app``."""
    clean = text(uri)
    return unquote(clean.split("://", 1)[-1]) if clean else None


def branch_name(value: Any) -> str | None:
    """Return the name of a branch; ``None`` if no branch is checked out."""
    name = text(value)
    return None if name == "HEAD" else name


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; an empty list for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def joined_texts(value: Any, key: str = "text") -> str:
    """Return the texts of the objects in a list, in lines."""
    return "\n".join(filter(None, (text(item.get(key)) for item in objects(value))))


def obj(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def require_object(value: Any, reason: str = "not a message") -> dict[str, Any]:
    """Return a JSON object; raise ValueError with the reason for anything else."""
    if not isinstance(value, dict):
        raise ValueError(reason)
    return value


def require_list(value: Any, reason: str = "no list of messages") -> list[Any]:
    """Return a list; raise ValueError with the reason for anything else."""
    if not isinstance(value, list):
        raise ValueError(reason)
    return value


def parse_json(value: Any) -> Any:
    """Parse a JSON text; return ``None`` for anything else."""
    try:
        return json.loads(value) if isinstance(value, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def parse_object(value: Any) -> dict[str, Any] | None:
    """Parse a JSON text with an object; return ``None`` for anything else."""
    parsed_value = parse_json(value)
    return parsed_value if isinstance(parsed_value, dict) else None


def call(identity: Any, name: Any, arguments: Any) -> ToolCall:
    """Return a tool call, with arguments as JSON; raise ValueError if it has no name."""
    tool = text(name)
    if tool is None:
        raise ValueError("a tool call without a name")
    if arguments is None:
        arguments = ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(text(identity) or "", tool, arguments)
