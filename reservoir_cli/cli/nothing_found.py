"""Say where messages are, when a command found none where it looked."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict

from reservoir_cli.cli import console
from reservoir_cli.cli.filters import OPTION_NAMES
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import Scope
from reservoir_cli.reservoir import Filter, Reservoir

#: Said of an empty store.
NOTHING_STORED = "nothing is stored yet: reservoir init, or reservoir ingest FILE"
#: So many other places are named when one is empty.
_MOST_NAMED = 3


def tell(
    scope: Scope,
    places: Sequence[tuple[str, str, int]],
    *,
    in_partition: str = "",
    beyond: str = "",
    say: Callable[[str], object] = console.note,
) -> None:
    """Say where messages are, after a command that found none in its scope."""
    if said := sentence(scope, places, in_partition=in_partition, beyond=beyond):
        say(said)


def place(scope: Scope) -> str:
    """Name a scope in a sentence: a partition, or an instance of one."""
    if scope.partition is None:
        return "the store"
    return scope.partition if scope.instance is None else str(scope)


def sentence(
    scope: Scope,
    places: Sequence[tuple[str, str, int]],
    *,
    in_partition: str = "",
    beyond: str = "",
) -> str:
    """Say where messages are, if a scope has none; nothing if they are in it.

    :param in_partition: an option that takes in the whole partition, if that needs one.
    :param beyond: an option that takes in all partitions, for a command that takes one instance.
    """
    if not places:
        return NOTHING_STORED
    if any(_inside(scope, each) for each in places):
        return ""
    own = [each for each in places if each[0] == scope.partition]
    if own:
        _, instance, count = max(own, key=lambda each: each[2])
        ways = ", or ".join(filter(None, (f"-i {instance}", in_partition)))
        there = f"{_messages(count)} in {scope.partition}/{instance} ({ways})"
    elif beyond and not _nearest(scope, places):
        partition, instance, count = max(places, key=lambda each: each[2])
        ways = f"-p {partition} -i {instance}, or {beyond}"
        there = f"{_messages(count)} in {partition}/{instance} ({ways})"
    else:
        near = _nearest(scope, places) or _fullest(places)
        there = ", ".join(f"{_messages(count)} in {name} (-p {name})" for name, count in near)
    return f"nothing in {place(scope)}; {there}"


def _fullest(places: Sequence[tuple[str, str, int]]) -> list[tuple[str, int]]:
    """Return the partitions with the most messages, and how many they are."""
    counts: Counter[str] = Counter()
    for partition, _, count in places:
        counts[partition] += count
    return counts.most_common(_MOST_NAMED)


def _nearest(scope: Scope, places: Sequence[tuple[str, str, int]]) -> list[tuple[str, int]]:
    """Partitions whose names are almost the one that was typed, if there is none of that name."""
    counts: Counter[str] = Counter()
    for partition, _, count in places:
        counts[partition] += count
    if scope.partition is None or scope.partition in counts:
        return []
    from difflib import get_close_matches

    typed = {each.casefold(): each for each in counts}
    near = get_close_matches(scope.partition.casefold(), typed)
    return [(typed[each], counts[typed[each]]) for each in near]


def _messages(count: int) -> str:
    return f"{count:,} {'message' if count == 1 else 'messages'}"


def _inside(scope: Scope, place: tuple[str, str, int]) -> bool:
    return scope.partition in (None, place[0]) and scope.instance in (None, place[1])


def why_nothing(reservoir: Reservoir, scope: Scope, where: Filter) -> str:
    """Why a read found nothing: the filters that no message passes, or where messages are."""
    if not reservoir.view(scope, 1):
        return sentence(scope, reservoir.lookup.places())
    open_to_all = asdict(type(where)())
    typed = [
        f"--{OPTION_NAMES.get(name, name)}"
        for name, value in asdict(where).items()
        if value != open_to_all[name]
    ]
    return describe_no_match("message", scope, typed, where) if typed else ""


def describe_no_match(noun: str, scope: Scope, typed: Sequence[str], where: Filter) -> str:
    """Say that nothing in a scope passes the filters that were typed."""
    if typed == ["--conversation"]:
        option = f" -p {shlex.quote(scope.partition)}" if scope.partition else ""
        missing = f"no conversation in {place(scope)} has the id {where.conversation_id}"
        return f"{missing}; reservoir conversations{option} lists them"
    does = f"has the tag {where.tag}" if typed == ["--tag"] else f"passes {' and '.join(typed)}"
    return f"no {noun} in {place(scope)} {does}"


def no_message(reservoir: Reservoir, number: int, scope: Scope) -> ReservoirError:
    """Return the error for a message that is not where it was looked for; say where it is."""
    hint = "on a terminal, reservoir view and reservoir search show the numbers"
    for each in reservoir.messages([number]):
        hint = f"it is in partition {each.partition}: -p {each.partition}"
    return ReservoirError(f"no message {number} in {place(scope)}", hint=hint)


def say_elsewhere(
    reservoir: Reservoir, partition: str, instance: str | None, where: Filter
) -> None:
    """Say why a context found no message: its filters, or where messages are."""
    scope = Scope(partition, instance)
    if not reservoir.view(scope, 1):
        places = reservoir.lookup.places()
        tell(scope, places, in_partition="--recall-scope partition")
    elif where != Filter() and not reservoir.view(scope, 1, where):
        console.note(why_nothing(reservoir, scope, where))
