"""``reservoir search``: find messages."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from reservoir_cli.cli import console, filters, nothing_found, open_store, options
from reservoir_cli.cli.options import argument, flag, option
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Filter, Scope, StoredMessage, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.retrieval.hits import Hit
from reservoir_cli.retrieval.snippet import choose_part
from reservoir_cli.util.clock import to_local
from reservoir_cli.util.languages import LANGUAGES, guess_language
from reservoir_cli.util.unicode_text import escaped

if TYPE_CHECKING:
    from rich.text import Text


_ORDERS = ("score", "time")  # the orders in which hits are printed; the first is the default
#: The meaning of the columns of --explain.
_LEGEND = (
    "cosine: how close the meaning is, -1 to 1 · bm25: how well the words match, more is better · "
    "similarity: both, with neighbours and dates, 0 to 1 · score: what they are sorted by"
)
_SNIPPET = 300  # characters of a passage printed to a pipe
_LINES = 2  # lines of text below the heading of a hit
_INDENT = "   "
_WORD = "bold red"  # legible on dark and light terminals alike, as in grep


def search(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        argument(
            "TERM...",
            """Words, prefix*, '"a phrase"' (kept together by --keyword); - reads stdin.""",
        ),
    ],
    semantic: Annotated[bool, flag("--semantic", "Search by meaning only.")] = False,
    keyword: Annotated[bool, flag("--keyword", "Search by words only.")] = False,
    limit: Annotated[
        int, option("N", "Maximum number of hits.", "-n", "--limit", min=1, max=1_000_000)
    ] = 10,
    partition: options.Partition = None,
    instance: options.ReadInstance = None,
    all_partitions: options.AllPartitions = False,
    conversation_id: filters.Conversation = None,
    since: filters.Since = None,
    until: filters.Until = None,
    role: filters.Role = None,
    source: filters.Source = None,
    project: filters.Project = None,
    tag: filters.Tag = None,
    sort: Annotated[
        str,
        option(
            "ORDER",
            "By score, or by time, the newest first.",
            panel=options.OUTPUT,
            choices=_ORDERS,
        ),
    ] = _ORDERS[0],
    threshold: Annotated[
        float | None,
        option(
            "X",
            "Only hits above this (1 + cosine)/2; try 0.65.",
            min=0,
            max=1,
            panel=options.FILTERS,
        ),
    ] = None,
    link: Annotated[
        bool, flag("--link", "Add the messages linked to each hit.", options.OUTPUT)
    ] = False,
    deduplicate: Annotated[
        bool, flag("--deduplicate", "Show only the best of several equal messages.", options.OUTPUT)
    ] = False,
    explain: Annotated[
        bool, flag("--explain", "Show the components of each score, and the ids.")
    ] = False,
    full: Annotated[
        bool, flag("--full", "Print whole messages (default in a pipe).", options.OUTPUT)
    ] = False,
    snippets: Annotated[
        bool, flag("--snippets", "Print best passages (default on a terminal).", options.OUTPUT)
    ] = False,
    oneline: options.OneLine = False,
    timestamps: options.Timestamps = False,
    as_json: options.Json = False,
    as_lines: options.JsonLines = False,
) -> None:
    """Find messages by meaning and words, best first.

    A terminal shows the best passage of each hit in three lines; a pipe gets whole messages, each
    after its number, day and title.
    Searches the whole partition, or the instance given with -i.
    """
    if semantic and keyword:
        raise UsageError(
            "choose one of --semantic and --keyword",
            hint="leave both out to search by meaning and words",
        )
    options.check_one_form(json=as_json, jsonl=as_lines)
    options.check_one_form(full=full, snippets=snippets, oneline=oneline)
    if sort not in _ORDERS:
        raise UsageError(f"cannot sort by {sort!r}", hint=f"choose {' or '.join(_ORDERS)}")
    where = filters.message_filter(ctx)
    form = _Form(full, snippets, oneline, timestamps)
    term = options.text_or_stdin(" ".join(words), "question")
    if not term.strip():
        raise UsageError(
            "the search term is empty",
            hint='reservoir search "some words"; reservoir view prints the newest messages',
        )
    with open_store.open_reservoir(ctx) as reservoir:
        scope = filters.read_scope(reservoir, partition, instance, all_partitions)
        where = filters.complete_ids(reservoir, where, scope)
        hits = reservoir.search(
            term,
            mode="semantic" if semantic else "keyword" if keyword else "hybrid",
            limit=limit,
            scope=scope,
            threshold=threshold,
            link=link,
            deduplicate=deduplicate,
            where=where,
            passages=not (as_json or as_lines or full),
        )
        if not hits:
            _explain_nothing(reservoir, scope, where, keyword)
        else:
            _print_notes(hits, term, hybrid=not (semantic or keyword))
    if sort == "time":
        hits.sort(key=lambda hit: (hit.message.created_at, hit.message.id), reverse=True)
    if explain and hits:
        console.side_table(
            ("rank", "id", "score", "similarity", "cosine", "bm25", "text"),
            [_explain_row(hit) for hit in hits],
            numeric=("rank", "id", "score", "similarity", "cosine", "bm25"),
            spare=("text", "score", "similarity"),
        )
        console.legend(_LEGEND)
    if as_json:
        console.document({"query": term, "hits": [hit.to_row() for hit in hits]})
    elif as_lines:
        console.lines(hit.to_row() for hit in hits)
    else:
        _print_hits(hits, form)


def _print_notes(hits: Sequence[Hit], term: str, *, hybrid: bool) -> None:
    if not any(map(str.isalnum, term)):
        console.note("the term contains no words; ranked by embedding similarity only")
    elif hybrid and not any(hit.bm25 for hit in hits):
        console.note("none of these contains any of the words; they are the nearest in meaning")
    for note in hits[0].notes:
        console.note(note)
    if languages := _differing_languages(term, hits):
        console.note(
            f"the question is in {languages[0]}, most of these are in {languages[1]}; across "
            "languages only names, numbers and similar words are found"
        )
    if not hits[0].all_words:
        console.note("no message contains all the words; these contain some of them")


_GUESSED = 2_000  # as many characters of a text tell its language


def _differing_languages(term: str, hits: Sequence[Hit]) -> tuple[str, str] | None:
    term_language = guess_language(term[:_GUESSED])
    guesses = Counter(guess_language(hit.message.content[:_GUESSED]) for hit in hits)
    [(language, count)] = guesses.most_common(1)
    if not (term_language in LANGUAGES and language in LANGUAGES) or term_language == language:
        return None
    return (LANGUAGES[term_language], LANGUAGES[language]) if 2 * count > len(hits) else None


def _explain_nothing(reservoir: Reservoir, scope: Scope, where: Filter, keyword: bool) -> None:
    name = nothing_found.name_scope(scope)
    if not reservoir.view(scope, 1, where):
        console.note(nothing_found.why_nothing(reservoir, scope, where))
    elif keyword:
        console.note(
            f"nothing in {name} contains these words (word* matches prefixes, --semantic meaning)"
        )
    else:
        console.note(f"nothing in {name} is similar enough")


def _explain_row(hit: Hit) -> Sequence[str]:
    scores = (hit.score, hit.similarity, hit.cosine, hit.bm25)
    cells = ("" if score is None else f"{score:.3f}" for score in scores)
    text = " ".join(hit.message.content[:200].split())
    return (str(hit.rank), str(hit.message.id), *cells, text)


@dataclass(frozen=True, slots=True)
class _Form:
    full: bool = False
    snippets: bool = False
    oneline: bool = False
    timestamps: bool = False

    @property
    def cuts(self) -> bool:
        """Passages are printed instead of whole messages."""
        if self.full or self.oneline:
            return False
        return self.snippets or sys.stdout.isatty()


def _print_hits(hits: Sequence[Hit], form: _Form) -> None:
    if not sys.stdout.isatty():
        console.write("".join(_plain_lines(hit, form) for hit in hits))
        return
    for hit in hits:
        console.texts(_styled_lines(hit, form))


def _plain_lines(hit: Hit, form: _Form) -> str:
    head = f"{hit.rank}. " if form.full else _plain_head(hit, form)
    lines = [f"{head}{_line(hit.message, hit, form)}\n"]
    lines += [f"{_INDENT}{_line(message, None, form)}\n" for message in hit.linked]
    return "".join(lines)


def _plain_head(hit: Hit, form: _Form) -> str:
    """Return the number, day and title of a hit; the time stands in the line itself."""
    day = "" if form.timestamps else f"{to_local(hit.message.created_at):%Y-%m-%d} "
    title = " ".join((hit.title or "").split())
    return f"#{hit.message.id} {day}" + (f"{title}: " if title else "")


def _line(message: StoredMessage, hit: Hit | None, form: _Form) -> str:
    if not form.cuts:
        return console.message_line(message, form.timestamps, form.oneline)
    words, passage = (hit.words, hit.passage) if hit else ((), None)
    part, _ = choose_part(plain_text(message), words, passage, _SNIPPET)
    return f"{console.stamp(message) if form.timestamps else ''}{message.role}: {part}"


def _styled_lines(hit: Hit, form: _Form) -> "Iterator[Text]":
    from rich.text import Text

    if form.oneline:
        yield _styled_line(hit, form)
        return
    width = console.columns()
    yield _heading(hit.message, f"{hit.rank}. ", hit.title, form, width)
    text = plain_text(hit.message)
    if form.full:
        yield Text(_INDENT).append_text(_highlight(text, hit.words, f"\n{_INDENT}"))
    else:
        yield from _passage(hit, text, width - len(_INDENT))
    for message in hit.linked:
        yield _heading(message, f"{_INDENT}↳ ", None, form, width)
        part, _ = choose_part(plain_text(message), (), None, max(8, width - 2 * len(_INDENT) - 1))
        yield Text(2 * _INDENT).append(escaped(part))


def _heading(
    message: StoredMessage, start: str, title: str | None, form: _Form, width: int
) -> "Text":
    from rich.text import Text

    day = f"{to_local(message.created_at):%Y-%m-%d}"
    moment = console.stamp(message).strip() if form.timestamps else day
    channel = f"{message.partition}/{message.instance}"
    about = " ".join((title or "").split())
    parts = [moment, f"#{message.id}", channel, *([about] if about else [])]
    heading = Text(start, "bold")
    heading.append(message.role.value, console.ROLE_STYLES[message.role.value])
    heading.append(escaped(f" · {' · '.join(parts)}"), "dim")
    heading.truncate(max(width, len(start) + len(message.role.value)), overflow="ellipsis")
    return heading


def _passage(hit: Hit, text: str, width: int) -> "Iterator[Text]":
    from rich.cells import cell_len

    room = max(16, _LINES * width - 12)
    size = room
    part, words = choose_part(text, hit.words, hit.passage, size)
    if (cells := cell_len(escaped(part))) > room:
        size = max(8, room * len(part) // cells)
        part, words = choose_part(text, hit.words, hit.passage, size)
    lines = _wrap(_highlight(part, words, " "), max(8, width))
    if len(lines) > _LINES:
        lines[_LINES - 1].truncate(max(8, width) - 1)
        lines[_LINES - 1].append("…")
    for line in lines[:_LINES]:
        yield type(line)(_INDENT).append_text(line)


def _wrap(text: "Text", width: int) -> "list[Text]":
    from rich.console import Console

    lines = list(text.wrap(Console(width=width), width))
    for line in lines:
        line.rstrip()
    return [line for line in lines if line.plain]


def _styled_line(hit: Hit, form: _Form) -> "Text":
    from rich.text import Text

    message = hit.message
    line = Text(f"{hit.rank}. ", "bold").append(f"#{message.id} ", "dim")
    line.append(console.stamp(message) if form.timestamps else "", "dim")
    line.append(f"{message.role}: ", console.ROLE_STYLES[message.role.value])
    return line.append_text(_highlight(plain_text(message), hit.words, "\\n"))


def _highlight(text: str, words: Sequence[tuple[int, int]], newline: str) -> "Text":
    from rich.text import Text

    def escape(part: str) -> str:
        return escaped(part.replace("\r\n", "\n")).replace("\n", newline)

    styled, position = Text(), 0
    for start, end in words:
        if start >= position:
            styled.append(escape(text[position:start])).append(escape(text[start:end]), _WORD)
            position = end
    return styled.append(escape(text[position:]))
