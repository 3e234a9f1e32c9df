"""Render templates, and format values for them."""

import re
from calendar import month_abbr, month_name
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from reservoir_cli.messages import StoredMessage, cut
from reservoir_cli.server.web import stacked_bar
from reservoir_cli.util.clock import to_local
from reservoir_cli.util.unicode_text import CONTROLS

_CONTROL = re.compile(f"[{CONTROLS}]")
_PICTURES = 0x2400  # Unicode's control pictures, in the order of the control characters


def visible(text: str) -> str:
    """Replace control characters by visible symbols."""
    return _CONTROL.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else f"[U+{code:04X}]"


def first_words(text: str, length: int = 160) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 4 * length].split())
    return visible(line if len(line) <= length else f"{cut(line, length - 1)}…")


def channel(row: Any) -> str:
    """Return the partition and instance of a row; one name if they have the same."""
    partition, instance = row.partition, row.instance
    return partition if partition == instance else f"{partition}/{instance}"


def day(moment: datetime) -> str:
    """Format the local date of a time."""
    return f"{to_local(moment):%Y-%m-%d}"


def month(moment: datetime) -> str:
    """Format the local month of a time, such as ``February 2026``."""
    local = to_local(moment)
    return f"{month_name[local.month]} {local.year}"


def short_day(moment: datetime) -> str:
    """Format the local day of a time without the year, such as ``9 May``."""
    local = to_local(moment)
    return f"{local.day} {month_abbr[local.month]}"


def minute(moment: datetime) -> str:
    """Format the local date, hour and minute of a time."""
    return f"{to_local(moment):%Y-%m-%d %H:%M}"


def number(value: float) -> str:
    """Format a number with thousands separators, without a fraction."""
    return f"{value:,.0f}"


def percent(value: float) -> str:
    """Format a fraction as a percentage."""
    return f"{100 * value:.0f}%"


def link(path: str, **query: object) -> str:
    """Return an address of the page; parameters that are ``None`` or empty are left out."""
    parameters = {name: value for name, value in query.items() if value not in (None, "")}
    return f"/ui{path}?{urlencode(parameters)}" if parameters else f"/ui{path}"


def link_to_message(message: StoredMessage) -> str:
    """Return the permalink of a message."""
    return link("/message", p=message.partition, id=message.id)


def _build_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (day, short_day, minute, number, percent, channel, visible, first_words)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["draw"] = stacked_bar.draw
    environment.globals |= {"link": link, "link_to_message": link_to_message}
    return environment


_TEMPLATES = _build_environment()


def render(
    request: Request, template: str, *, status_code: int = 200, **values: Any
) -> HTMLResponse:
    """Return a page rendered from a template."""
    session = getattr(request.state, "session", None)
    shared = {"csrf": session.csrf if session else "", "session": session is not None}
    text = _TEMPLATES.get_template(template).render({**shared, "spent": False, **values})
    return HTMLResponse(text, status_code)
