"""Record in the log which messages were recalled for agents, and read the records again."""

import json
import os
import re
from binascii import crc32
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from reservoir_cli.context.recall import Recall
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.settings import log_file
from reservoir_cli.settings.store_locations import is_on_a_server

_LEVEL, _TOPIC = "INFO", "recalled"  #: What a line of the log is that has a record.
_LINE = re.compile(rf"(\S+) {_LEVEL} {_TOPIC} (\{{.*\}})")  #: A record in the log, after its time.
#: What names and ids are written as they are; clients may send any text.
_PLAIN = re.compile(r"[\w.:/@ -]{1,100}")


@dataclass(frozen=True, slots=True)
class Injection:
    """Messages that an agent was given; ``door`` is ``hook``, ``mcp`` or ``proxy``."""

    at: datetime
    client: str | None
    door: str
    session: str | None
    partition: str
    tokens: int
    messages: Sequence[int]


def record(
    reservoir: Reservoir,
    recall: Recall,
    door: str,
    client: str | None,
    partition: str | None,
    session: str | None = None,
) -> None:
    """Write to the log which messages an agent is given; nothing if it cannot be written."""
    fields = {
        "client": _plain(client),
        "door": door,
        "session": _plain(session),
        "partition": reservoir.scope(partition).partition,
        "tokens": recall.tokens,
        "messages": [message.id for message in recall.messages if message.id is not None],
        "store": _store_id(reservoir.location),
    }
    with suppress(OSError):
        log_file.append(datetime.now(UTC), f"{_TOPIC} {json.dumps(fields)}", level=_LEVEL)


def last_injections(
    location: str, client: str | None = None, partition: str | None = None
) -> list[Injection]:
    """Return the last injection of each client from a store, oldest first."""
    store, prefix = _store_id(location), (client or "").casefold()
    last: dict[str | None, Injection] = {}
    for injection in _read(store):
        is_wanted = (injection.client or "").casefold().startswith(prefix)
        if is_wanted and partition in (None, injection.partition):
            last[injection.client] = injection
    return sorted(last.values(), key=lambda injection: injection.at)


def _read(store: str) -> Iterator[Injection]:
    for line in log_file.read_lines():
        if (match := _LINE.fullmatch(line)) and (injection := _parse(match[1], match[2], store)):
            yield injection


def _parse(time: str, text: str, store: str) -> Injection | None:
    """Return the injection of a line; ``None`` if it is another store's, or damaged."""
    try:
        values = json.loads(text)
        if values["store"] != store:
            return None
        return Injection(
            datetime.fromisoformat(time).astimezone(UTC),
            values.get("client"),
            str(values["door"]),
            values.get("session"),
            str(values["partition"]),
            int(values["tokens"]),
            [int(number) for number in values["messages"]],
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _plain(name: str | None) -> str | None:
    """Return a name, or its checksum if it may be anything else, such as a text."""
    if not name or _PLAIN.fullmatch(name):
        return name or None
    return f"unnamed-{crc32(name.encode('utf-8', 'replace')):08x}"


def _store_id(location: str) -> str:
    """Return a checksum that tells stores apart; hashlib would load OpenSSL."""
    name = location if is_on_a_server(location) else os.path.realpath(location)
    return f"{crc32(os.fsencode(name)):08x}"
