"""Find secrets in a text: keys, tokens and passwords.

It uses the table of ``token_kinds`` and the rules of ``secrets_by_surroundings``, and leaves out
what ``false_alarms`` recognises. It guards against accidents; it does not prove that a text
contains no secrets.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, islice
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from reservoir_cli.redaction.false_alarms import Proof, is_real, is_real_token
from reservoir_cli.redaction.names_of_secrets import FOREIGN
from reservoir_cli.redaction.read_values import Value, read_value
from reservoir_cli.redaction.secrets_by_surroundings import BLOCKS, GUESSES, Rule
from reservoir_cli.redaction.secrets_in_tables import (
    DELIMITERS,
    TABLE_WORDS,
    cells_below_headers,
    values_of_inserts,
    values_of_kubernetes,
)
from reservoir_cli.redaction.token_kinds import SHORTEST_TOKEN, possible_kinds
from reservoir_cli.util import installed_plugins
from reservoir_cli.util.unicode_text import INVISIBLE, ZERO_WIDTH_SPACE

#: Longer texts are scanned in blocks of this size; a private key fits in the overlap.
_BLOCK, _OVERLAP = 1_000_000, 101_000
#: Values at least this long are also searched elsewhere in the text, up to this many values.
_REPEATABLE_LENGTH, _MOST_REPEATED = 8, 100
_SHORTEST_VALUE = 6
#: Names whose value may be a number, and those whose value may be words that are joined to one.
_PIN_NAMES = (
    r"(?:pass(?:word|wort|code)?|pwd?|pin|puk)(?!\w)|contrase|mot de passe|mdp|senha|密|пароль"
)
_PASSWORD_NAMES = (
    r"(?:pass(?:word|wort|code|phrase|wd|e)|pwd?|psk|(?<=\w_)pass)(?!\w)"
    rf"|identified by|plaintext|{FOREIGN}"
)
#: What makes a password of "pass": a prefix in the same name, or a user before it.
_WHOSE = re.compile(
    r"(?:(?i:db|database|key_?store|user|admin|root|smtp|e?mail|imap|ftp|ssh|mqtt|wi-?fi"
    r"|sudo|sql|pg|postgres|mongo|redis|ldap|bind|vpn|proxy|git|registry|docker|service|app"
    r"|default)[_.-]?|[A-Z0-9]_|(?:^|\n)[a-z][\w.-]{0,40}\."
    r"|(?i:user|login|host)(?:name)?[\"']?\s{0,3}[:=,]\s{0,3}[^\s,]{1,40}[\s,]{1,9}[\"']?)$"
)
_SECRET_KEY = re.compile(r"(?i:secret|auth)_$")
_NEAR = 80
#: What follows a value that no sentence and no code goes on behind, and the end of its line; a
#: sentence in another script goes on behind a Latin word.
_ENDED = re.compile(r"[.!]?(?=[\s&;\"'`]|$)")
_LAST = re.compile(r"[.!;,]?[ \t]{0,9}(?:[\r\n]|$|[^\x00-\x7f]|\()")
_DIGIT = re.compile("[0-9]")
_KIND = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")  #: The names of kinds.
#: What follows the name of a function or of a list instead of a value.
_CALLS = ("(", "[", "{")
#: What can stand unseen within a secret or before it: characters, and the escape sequences with
#: which programs colour their output, as they are or in JSON.
_HIDING = re.compile(rf"[{ZERO_WIDTH_SPACE}{INVISIBLE}]|(?:\x1b|\\u001b)\[[0-9;]{{0,20}}[A-Za-z]")
#: Where an e-mail in quoted-printable breaks a line. Only tokens are sought across it: a value in
#: base64 may end with the same sign.
_SOFT_BREAK = re.compile(r"=(?<=[\w-]=)\r?\n(?=[\w-])|3D(?<==3D)")
#: Where a terminal or a mail wraps a token: the rest of it is alone on its line, has a digit, and
#: is no further token. Only tokens are sought across it.
_WRAP = re.compile(
    r"(?<=[\w-]{20})\r?\n[ \t>|]{0,8}(?![A-Za-z]{2,10}[_-])"
    r"(?=(?=[\w-]{0,40}\d)[\w-]{12,400}+(?:[\s\"'`]|$))"
)
_TELLING = 3  #: Shorter parts of a word are in too many texts to tell whether to look for it.
_RARE = re.compile(" ?[^a-z0-9 ]+")
_INVISIBLE = re.compile(f"[{ZERO_WIDTH_SPACE}{INVISIBLE}]")
_ASCII = bytes(range(0x80))


class Secret(NamedTuple):
    """The kind of a secret and its span in a text."""

    kind: str
    start: int
    end: int


def find(text: str, known: Mapping[str, str] = MappingProxyType({})) -> list[Secret]:
    """Return the secrets of a text, in order and without overlaps; ``known`` are kinds by value."""
    secrets = _find(text) if len(text) <= _BLOCK else _find_in_blocks(text)
    _add_of_plugins(text, secrets)
    _add_repeated(known, text, secrets)
    return secrets


def _add_of_plugins(text: str, secrets: list[Secret]) -> None:
    """Add the secrets that plugins find, or raise PluginError if one fails."""
    for plugin in installed_plugins.find_plugins("secrets").values():
        find_more = installed_plugins.load(plugin)
        for kind, start, end in installed_plugins.run(plugin, lambda: list(find_more(text))):  # noqa: B023
            if not (_KIND.fullmatch(kind) and 0 <= start < end <= len(text)):
                raise installed_plugins.failure(plugin, "it found no part of the text")
            _add(Secret(kind, start, end), secrets)


def find_values(texts: Iterable[str]) -> dict[str, str]:
    """Return the kinds of the longer secrets in some texts, by value."""
    secrets = ((text, secret) for text in texts for secret in find(text))
    values = {text[start:end]: kind for text, (kind, start, end) in secrets}
    long = ((value, kind) for value, kind in values.items() if len(value) >= _REPEATABLE_LENGTH)
    return dict(islice(long, _MOST_REPEATED))


def _find(text: str) -> list[Secret]:
    """Return the secrets of a text, also those that contain invisible characters or are wrapped."""
    secrets: list[Secret] = []
    if "\x1b" in text or "\\u001b" in text or _has_invisible(text):
        secrets = _find_without(_HIDING, text, _find_visible)
    if "=\n" in text or "=\r\n" in text:
        for secret in _find_without(_SOFT_BREAK, text, _tokens_of):
            _add(secret, secrets)
    if "\n" in text:
        for secret in _find_without(_WRAP, text, _tokens_of):
            _add(secret, secrets)
    for secret in _find_visible(text):  # an invisible character may also separate words
        _add(secret, secrets)
    return secrets


def _find_without(
    hiding: re.Pattern[str], text: str, find_in: Callable[[str], list[Secret]]
) -> list[Secret]:
    """Return the secrets that a text has without what a pattern matches, if it matches."""
    hidden = [index for match in hiding.finditer(text) for index in range(*match.span())]
    if not hidden:
        return []
    # Where the hidden characters would be in the text without them.
    removed = [position - count for count, position in enumerate(hidden)]
    return [
        Secret(kind, start + bisect_right(removed, start), end + bisect_right(removed, end - 1))
        for kind, start, end in find_in(hiding.sub("", text))
    ]


def _tokens_of(text: str) -> list[Secret]:
    secrets: list[Secret] = []
    _find_tokens(text, secrets)
    return secrets


def _has_invisible(text: str) -> bool:
    """Return whether a text contains invisible characters: looked for in what is beyond ASCII."""
    if text.isascii():
        return False
    others = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return _INVISIBLE.search(others.decode("utf-8", "surrogatepass")) is not None


def _find_visible(text: str) -> list[Secret]:
    # Lowercasing İ would give two characters and shift all offsets after it.
    lowered = text.replace("\u0130", "i").lower()
    secrets: list[Secret] = []
    _find_tokens(text, secrets)
    for rule in BLOCKS:
        present = any(word in lowered for word in rule.words)
        for match in re.finditer(rule.pattern, text) if present else ():
            _add(Secret(rule.kind, *match.span()), secrets)
    by_rule = _words_by_rule(lowered, is_ascii=text.isascii())
    for number, words in by_rule.items():
        _apply_rule(GUESSES[number], words, lowered, text, secrets)
    if by_rule and ("\n" in text or "insert" in lowered):
        _find_in_tables(
            text, lowered, {word for words in by_rule.values() for word in words}, secrets
        )
    return secrets


def _find_in_tables(text: str, lowered: str, words: Collection[str], secrets: list[Secret]) -> None:
    if "secret" in words and "kind" in lowered:
        for start, end in values_of_kubernetes(text, lowered):
            _add(Secret("secret-value", start, end), secrets)
    names = [word for word in TABLE_WORDS if word in words]
    if names and any(delimiter in text for delimiter in DELIMITERS):
        inserted = values_of_inserts(text, lowered) if "insert" in lowered else ()
        for start, end in chain(cells_below_headers(text, lowered, names), inserted):
            value = text[start:end]
            if len(value) >= _SHORTEST_VALUE and is_real(
                value, in_code=True, proof=Proof.SURE, joined=True, held=True
            ):
                _add(Secret("secret-value", start, end), secrets)


def _find_tokens(text: str, secrets: list[Secret]) -> None:
    """Add the tokens of a text, which are in its long words: most texts have few of them."""
    long_words = " ".join([word for word in text.split() if len(word) >= SHORTEST_TOKEN])
    for kind, literals in possible_kinds(long_words) if long_words else ():
        beginnings = literals if kind.begins else ()
        if next(_matches(kind.pattern, beginnings, long_words), None) is None:
            continue
        for match in _matches(kind.pattern, beginnings, text):
            if is_real_token(match[0]):
                _add(Secret(kind.kind, *match.span(match.lastindex or 0)), secrets)


class _SearchWords(NamedTuple):
    """What is looked for in a text to find the rules that may match it."""

    first: tuple[str, ...]  #: In every text; prose contains few of them.
    longer: Mapping[str, tuple[str, ...]]  #: If a text contains a part of it, by this part.
    rules: Mapping[str, tuple[int, ...]]  #: The rules that only need a word, by word.
    needs: frozenset[str]  #: What the other rules need.
    with_needs: Mapping[int, tuple[str, ...]]  #: The words of these rules.
    late: frozenset[str]  #: Those of them that wait for a need of their rule.


@cache
def _lookup(is_ascii: bool, has_digit: bool) -> _SearchWords:
    """Return what is looked for in a kind of texts: most lack a digit, and letters beyond ASCII."""
    words = {
        number: tuple([word for word in rule.words if word.isascii() or not is_ascii])
        for number, rule in enumerate(GUESSES)
        if has_digit or rule.proof > Proof.WEAK
    }
    with_needs = {number: words[number] for number in words if GUESSES[number].needs}
    needs = {need for number in with_needs for need in GUESSES[number].needs}
    needs = {need for need in needs if need.isascii() or not is_ascii}
    rules: dict[str, list[int]] = {}
    for number in words.keys() - with_needs.keys():
        for word in words[number]:
            rules.setdefault(word, []).append(number)
    always = needs | rules.keys()
    others = {word for number in with_needs for word in with_needs[number]}
    # Single signs and rare letters are found fastest.
    signs = {sign for text in always | others for sign in _RARE.findall(text)[:1]}
    signs |= {sign[-1] for sign in signs}
    first, longer, late = list[str](), dict[str, list[str]](), set[str]()
    texts = sorted(signs | always | others, key=lambda text: (len(text), text))
    for number, text in enumerate(texts):
        shorter = [part for part in texts[:number] if part in text and part not in late]
        part = max(shorter, key=len, default="")
        if text not in always | signs and len(part) < _TELLING:
            late.add(text)
        elif part:
            longer.setdefault(part, []).append(text)
        else:
            first.append(text)
    return _SearchWords(
        tuple(first),
        {part: tuple(texts) for part, texts in longer.items()},
        {word: tuple(numbers) for word, numbers in rules.items()},
        frozenset(needs),
        with_needs,
        frozenset(late),
    )


def _words_by_rule(lowered: str, *, is_ascii: bool) -> dict[int, list[str]]:
    """Return the numbers of the rules that may match a text, in their order, and their words."""
    lookup = _lookup(is_ascii, _DIGIT.search(lowered) is not None)
    present = {part for part in lookup.first if part in lowered}
    parts = present & lookup.longer.keys()
    while parts:
        longer = {text for part in parts for text in lookup.longer[part] if text in lowered}
        present |= longer
        parts = longer & lookup.longer.keys()
    words_by_rule: dict[int, list[str]] = {}
    for word in sorted(present & lookup.rules.keys()):
        for number in lookup.rules[word]:
            words_by_rule.setdefault(number, []).append(word)
    for number, words in lookup.with_needs.items() if present & lookup.needs else ():
        if not present.isdisjoint(GUESSES[number].needs):
            present.update([word for word in words if word in lookup.late and word in lowered])
            if contained := [word for word in words if word in present]:
                words_by_rule[number] = contained
    return dict(sorted(words_by_rule.items()))


def _apply_rule(
    rule: Rule, words: list[str], lowered: str, text: str, secrets: list[Secret]
) -> None:
    """Add the secrets that a rule finds, unless they overlap earlier ones.

    A value found by its surroundings is also a secret elsewhere in the text.
    """
    values: dict[str, str] = {}
    for spans in _guesses(rule, words, lowered, text):
        for start, end in spans:
            _add(Secret(rule.kind, start, end), secrets)
            if end - start >= _REPEATABLE_LENGTH and len(values) < _MOST_REPEATED:
                values[text[start:end]] = rule.kind
    _add_repeated(values, text, secrets)


def _guesses(
    rule: Rule, words: list[str], lowered: str, original: str
) -> Iterator[list[tuple[int, int]]]:
    """Yield the spans of each value that a rule takes for a secret."""
    begin = end = 0
    for match in _matches(rule.pattern, words if rule.from_word else (), lowered):
        if begin <= match.start() < end:
            continue  # inside the last value, which is read only once
        pin = bool(re.match(_PIN_NAMES, match[0]))
        joined = held = not rule.in_code or _names_password(match, original)
        if not rule.reads:
            held = joined and (not rule.in_code or rule.proof > Proof.HINT)
            spans = [match.span(match.lastindex or 0)]
        elif value := read_value(original, match.end()):
            begin, end = match.start(), value.end
            if not value.quoted and original[value.end : value.end + 1] in _CALLS:
                continue
            spans, held = value.spans, joined and _is_held(value, original)
        else:
            continue
        text = "".join(original[start:end] for start, end in spans)
        if len(text) >= (4 if pin else _SHORTEST_VALUE) and is_real(
            text, in_code=rule.in_code, proof=rule.proof, pin=pin, joined=joined, held=held
        ):
            yield spans


def _names_password(match: re.Match[str], text: str) -> bool:
    """Return whether a match names a password, as neither "pass" nor "key" does alone."""
    if re.search(_PASSWORD_NAMES, match[0]):
        return True
    around = text[max(0, match.start() - _NEAR) : match.start()]
    pattern = _WHOSE if match[0].startswith("pass") else _SECRET_KEY
    return match[0].startswith(("pass", "key")) and pattern.search(around) is not None


def _is_held(value: Value, text: str) -> bool:
    """Return whether a value fills its place: it is quoted, or no sentence goes on behind it."""
    if value.quoted:
        return True
    start = value.spans[0][0]
    if not _ENDED.match(text, value.end):
        return False
    if text[start - 1 : start] in ("=", ":"):
        return True
    return value.end - start >= 14 and _LAST.match(text, value.end) is not None


def _add_repeated(values: Mapping[str, str], text: str, secrets: list[Secret]) -> None:
    """Add all occurrences of secrets' values, unless they overlap secrets found before."""
    longest_first = sorted(values, key=len, reverse=True)
    if longest_first:
        for match in re.finditer("|".join(map(re.escape, longest_first)), text):
            _add(Secret(values[match[0]], *match.span()), secrets)


def _matches(pattern: str, beginnings: Iterable[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern, each of which begins with one of the beginnings, if any."""
    if not beginnings:
        yield from re.finditer(pattern, text)
        return
    compiled = re.compile(pattern)
    for word in beginnings:  # ten times faster than trying the pattern everywhere
        position = text.find(word)
        while position >= 0:
            if match := compiled.match(text, position):
                yield match
            position = text.find(word, match.end() if match else position + 1)


def _add(secret: Secret, secrets: list[Secret]) -> None:
    index = bisect_left(secrets, secret.start, key=attrgetter("start"))
    if index > 0 and secrets[index - 1].end > secret.start:
        return
    if index < len(secrets) and secrets[index].start < secret.end:
        return
    secrets.insert(index, secret)


def _find_in_blocks(text: str) -> list[Secret]:
    secrets: list[Secret] = []
    for begin in range(0, len(text), _BLOCK):
        low, end = max(0, begin - _OVERLAP), begin + _BLOCK
        for secret in _find(text[low : end + _OVERLAP]):
            start = low + secret.start
            if begin <= start < end and (not secrets or start >= secrets[-1].end):
                secrets.append(Secret(secret.kind, start, low + secret.end))
    return secrets
