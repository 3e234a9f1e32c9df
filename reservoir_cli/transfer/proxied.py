"""Leave out of an import what the proxy has stored of the same conversation already.

The proxy and a client's own log know a message by different ids. What they share is the id of the
conversation, and what was said.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from reservoir_cli.context.render import frame
from reservoir_cli.messages import Message, Scope, StoredMessage, clean_text
from reservoir_cli.storage.base import Store
from reservoir_cli.storage.records import Filter
from reservoir_cli.storage.sources import Sources
from reservoir_cli.transfer.importers import Record
from reservoir_cli.transfer.importers.blocks import THINKING

#: Source of what the proxy stores.
SOURCE = "proxy"
#: What clients write into a user's message, and no user has said.
_NOT_SAID = re.compile(
    r"<(system-reminder|environment_context|environment_details|user_instructions|"
    r"permissions|session_context|local-command-caveat)\b[^>]*>.*?</\1[^>]*>",
    re.DOTALL,
)
#: Role, text, ids of calls, and the id of the call that it answers.
_Said = tuple[str, str, tuple[str, ...], str | None]


def normal(text: str) -> str:
    """Return a text without what clients add to it, and without contexts of our own."""
    text = _NOT_SAID.sub("", clean_text(text))
    return frame.unwrap(text).text.strip()


class Proxied:
    """What the proxy has stored, as far as an import asks for it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._partitions: set[str | None] | None = None
        self._left: dict[tuple[str, str], Counter[_Said]] = {}
        self._dropped_reply = False

    def without(self, scope: Scope, records: Sequence[Record]) -> list[Record]:
        """Return records without those that the proxy has stored."""
        if self._partitions is None:
            places = Sources(self._store).places(SOURCE)
            self._partitions = {place.partition for place in places}
        if scope.partition not in self._partitions:
            return list(records)
        return list(self._others(str(scope.partition), records))

    def _others(self, partition: str, records: Sequence[Record]) -> Iterator[Record]:
        for record in records:
            message = record.message
            if message.source == SOURCE or not message.conversation_id:
                yield record
                continue
            if message.name == THINKING and self._dropped_reply:
                continue
            known = self._of(partition, message.conversation_id)
            self._dropped_reply = known[_said(message)] > 0
            if self._dropped_reply:
                known[_said(message)] -= 1
            else:
                yield record

    def _of(self, partition: str, conversation: str) -> Counter[_Said]:
        """Return what is stored of a conversation and no record was found for yet."""
        key = (partition, conversation)
        if key not in self._left:
            where = Filter(conversation_id=conversation, source=SOURCE)
            messages = self._store.last(Scope(partition), 0, where)
            self._left[key] = Counter(map(_said, messages))
        return self._left[key]


def _said(message: Message | StoredMessage) -> _Said:
    calls = tuple(call.id for call in message.tool_calls)
    return str(message.role), normal(message.content), calls, message.tool_call_id
