"""Explain empty results: say which filters exclude everything, or where messages are."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from reservoir_cli.cli import console
from reservoir_cli.cli.filters import OPTION_NAMES
from reservoir_cli.errors import ReservoirError
from reservoir_cli.messages import EVERYTHING, Filter, Key, Scope
from reservoir_cli.reservoir import NamedField, Reservoir
from reservoir_cli.util.progress import counted
from reservoir_cli.util.unicode_text import similar_names

#: The partition, instance and number of messages of several channels.
_Channels = Sequence[tuple[str, str, int]]
_Known = _Channels | None  # the same; ``None`` if other partitions are not read for a note
#: The note for an empty store.
NOTHING_STORED = "nothing is stored yet: reservoir init, or reservoir ingest FILE"
_MOST_NAMED = 3  # how many other channels a note names
_MOST_VALUES = 6  # how many sources, projects or tags a note names
#: The options whose values a note can name.
_NAMED_FIELDS: dict[str, NamedField] = {
    "--source": "source",
    "--project": "project",
    "--tag": "tag",
}


def tell(scope: Scope, channels: _Known, in_partition: str | None = "") -> None:
    """Print where messages are, after a command that found none in its scope."""
    if text := describe_elsewhere(scope, channels, in_partition):
        console.note(text)


def fail_or_warn(text: str, hint: str | None = None, *, fails: bool) -> None:
    """Raise ReservoirError, or warn even with --quiet: the user probably meant another scope."""
    if fails:
        raise ReservoirError(text, hint=hint)
    console.warn(text)
    if hint:
        console.note(hint)


def name_scope(scope: Scope) -> str:
    """Return the name of a scope for a sentence."""
    if scope.partition is None:
        return "the store"
    return scope.partition if scope.instance is None else str(scope)


def describe_elsewhere(
    scope: Scope, channels: _Known, in_partition: str | None = "", beyond: str = ""
) -> str:
    """Return a note on where messages are, if a scope has none; empty if it has some.

    :param in_partition: the option for the whole partition; empty if the command takes it without
        ``-i``, and ``None`` if the note should not say how.
    :param beyond: the option for all partitions, if the command takes one instance.
    """
    if channels is None:
        return f"nothing in {name_scope(scope)}; reservoir partitions lists all"
    if not channels:
        return NOTHING_STORED
    if any(_contains(scope, entry) for entry in channels):
        return ""
    elsewhere = _name_channels(scope, channels, in_partition, beyond)
    return f"nothing in {name_scope(scope)}; {elsewhere}"


def describe_others(
    scope: Scope, channels: _Known, in_partition: str | None = "", beyond: str = ""
) -> str:
    """Return where messages outside of a scope are, if any, as :func:`describe_elsewhere` does."""
    others = [entry for entry in channels or () if not _contains(scope, entry)]
    if not others:
        return ""
    named = _name_channels(scope, others, in_partition, beyond)
    own = [entry for entry in others if entry[0] == scope.partition]
    beyond_own = [entry for entry in others if entry[0] != scope.partition]
    return f"{named}; {name_partitions(beyond_own)}" if own and beyond_own else named


def _name_channels(scope: Scope, channels: _Channels, in_partition: str | None, beyond: str) -> str:
    own = [entry for entry in channels if entry[0] == scope.partition]
    if own or beyond:
        near = own or channels
        partition, instance, count = max(near, key=lambda entry: entry[2])
        nearest = f"{counted(count, 'message')} in {partition}/{instance}"
        total = sum(entry[2] for entry in near)
        whole = f"{total:,} in {partition if own else 'other partitions'}" if total != count else ""
        option = shlex.join([*(() if own else ("-p", partition)), "-i", instance])
        return _join_ways(nearest, option, whole, in_partition if own else beyond)
    similar = _similar_names(scope, channels)
    totals = similar or _totals(channels).most_common(_MOST_NAMED)
    named = [
        f"{counted(count, 'message')} in {name} ({_option('-p', name)})" for name, count in totals
    ]
    return ", ".join([*named, *(() if similar else _count_rest(channels, totals))])


def _join_ways(nearest: str, option: str, whole: str, wider: str | None) -> str:
    """Return the nearest channel and the whole, each with its option; ``wider=None`` for no way."""
    if whole and wider is None:
        return f"{nearest} ({option}), {whole}"
    if whole:
        return f"{nearest} ({option}), {whole} ({wider or 'without -i'})"
    return f"{nearest} ({', or '.join(filter(None, (option, wider)))})"


def describe_missing_partition(scope: Scope, channels: _Channels) -> str:
    """Say which partitions exist if the scope's does not, but no option to read them."""
    totals = _totals(channels)
    if scope.partition is None or scope.partition in totals:
        return ""
    missing = f"there is no partition {scope.partition}"
    if similar := _similar_names(scope, channels):
        return f"{missing}; did you mean {' or '.join(name for name, _ in similar)}?"
    return f"{missing}; {name_partitions(channels)}"


def name_partitions(channels: _Channels) -> str:
    """Return the largest partitions with their numbers of messages."""
    largest = _totals(channels).most_common(_MOST_NAMED)
    named = [f"{counted(count, 'message')} in {name}" for name, count in largest]
    return ", ".join([*named, *_count_rest(channels, largest)])


def _count_rest(channels: _Channels, named: Sequence[tuple[str, int]]) -> list[str]:
    totals = _totals(channels)
    for name, _ in named:
        del totals[name]
    if not totals:
        return []
    return [f"{totals.total():,} in {counted(len(totals), 'other partition')}"]


def _option(option: str, name: str) -> str:
    return shlex.join([option, name])


def _totals(channels: _Channels) -> Counter[str]:
    totals: Counter[str] = Counter()
    for partition, _, count in channels:
        totals[partition] += count
    return totals


def _similar_names(scope: Scope, channels: _Channels) -> list[tuple[str, int]]:
    totals = _totals(channels)
    if scope.partition is None or scope.partition in totals:
        return []
    from difflib import get_close_matches

    names = {name.casefold(): name for name in totals}
    matches = get_close_matches(scope.partition.casefold(), names)
    return [(names[match], totals[names[match]]) for match in matches]


def _contains(scope: Scope, channel: tuple[str, str, int]) -> bool:
    return scope.partition in (None, channel[0]) and scope.instance in (None, channel[1])


def why_nothing(reservoir: Reservoir, scope: Scope, where: Filter) -> str:
    """Explain an empty read: name the filters that no message matches, or where messages are."""
    if not reservoir.view(scope, 1):
        matching = reservoir.lookup.elsewhere(scope, where)
        return describe_elsewhere(scope, matching or reservoir.lookup.elsewhere(scope))
    defaults = asdict(type(where)())
    filters = [
        f"--{OPTION_NAMES.get(name, name)}"
        for name, value in asdict(where).items()
        if value != defaults[name]
    ]
    return describe_no_match(reservoir, "message", scope, filters, where) if filters else ""


def describe_no_match(
    reservoir: Reservoir, noun: str, scope: Scope, filters: Sequence[str], where: Filter
) -> str:
    """Return the note that nothing in a scope matches the options of a filter."""
    if filters == ["--conversation"]:
        option = f" {_option('-p', scope.partition)}" if scope.partition else ""
        missing = f"no conversation in {name_scope(scope)} has the id {where.conversation_id}"
        if others := describe_others(scope, reservoir.lookup.elsewhere(scope, where)):
            return f"{missing}; {others}"
        return f"{missing}; reservoir conversations{option} lists them"
    verb = (
        f"has the tag {where.tag}" if filters == ["--tag"] else f"matches {' and '.join(filters)}"
    )
    missing = f"no {noun} in {name_scope(scope)} {verb}"
    named = _NAMED_FIELDS.get(filters[0]) if len(filters) == 1 else None
    return f"{missing}{_name_existing(reservoir, named, scope, where)}" if named else missing


def _name_existing(reservoir: Reservoir, field: NamedField, scope: Scope, where: Filter) -> str:
    names, typed = reservoir.lookup.names(field, scope), str(getattr(where, field))
    if typed in names:
        return "; the messages that have it are in no conversation"
    if near := similar_names(typed, names):
        return f"; did you mean {' or '.join(near)}?"
    examples = [*names[:_MOST_VALUES], *(["…"] if len(names) > _MOST_VALUES else [])]
    return f"; {field}s: {', '.join(examples)}" if names else ""


def no_message(reservoir: Reservoir, number: int, scope: Scope) -> ReservoirError:
    """Return the error for a message that is not in the scope; the hint says where it is."""
    hint = "on a terminal, reservoir view and reservoir search show the numbers"
    for message in reservoir.messages([number]):
        hint = f"it is in partition {message.partition}: {_option('-p', message.partition)}"
        if message.partition == scope.partition:
            hint = f"it is in {message.partition}/{message.instance}: leave -i out"
    return ReservoirError(f"no message {number} in {name_scope(scope)}", hint=hint)


def keys_of(reservoir: Reservoir, numbers: Sequence[int], scope: Scope) -> Sequence[Key]:
    """Return the keys of messages by their numbers, or raise ReservoirError for a missing one."""
    keys = reservoir.lookup.keys_of(numbers, scope)
    if missing := sorted(set(numbers) - {key.id for key in keys}):
        raise no_message(reservoir, missing[0], scope)
    return keys


def say_elsewhere(
    reservoir: Reservoir, partition: str, instance: str | None, where: Filter
) -> None:
    """Explain why a context has no stored message: name its filters, or where messages are."""
    scope = Scope(partition, instance)
    if not reservoir.view(scope, 1):
        channels = reservoir.lookup.elsewhere(scope)
        tell(scope, channels, in_partition="--recall-scope partition")
    elif where != EVERYTHING and not reservoir.view(scope, 1, where):
        console.note(why_nothing(reservoir, scope, where))
