"""Prepare texts for the full-text index, and turn questions into FTS5 queries.

The user's words never reach ``MATCH`` unquoted, so that nothing they type is syntax.
"""

import re
import unicodedata
from collections.abc import Iterator

from reservoir_cli.messages import Scope
from reservoir_cli.util.languages import ENGLISH_FUNCTION_WORDS, function_words

Span = tuple[int, int]  #: The offsets of a part's first character and of the one after its last.
#: Scripts written without spaces: each character is indexed as a word, and a run of them is
#: searched as a phrase. FTS5's tokenizer would treat a whole sentence as one word. The pattern is
#: compiled on first use, which takes 1 ms.
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_WORD = re.compile(r"[^\W_]+")
#: Letters that the tokenizer keeps although people also write them with ASCII letters.
_LETTERS = str.maketrans(
    {
        **dict.fromkeys("łŁ", "l"),
        **dict.fromkeys("øØ", "o"),
        **dict.fromkeys("đĐðÐ", "d"),
        **dict.fromkeys("ħĦ", "h"),
        **dict.fromkeys("æÆ", "ae"),
        **dict.fromkeys("œŒ", "oe"),
        **dict.fromkeys("ßẞ", "ss"),
        **dict.fromkeys("þÞ", "th"),
        "\u0131": "i",
    }
)
#: The other spelling of umlauts. The tokenizer turns them into plain vowels.
_UMLAUTS = str.maketrans(
    {**dict.fromkeys("äÄ", "ae"), **dict.fromkeys("öÖ", "oe"), **dict.fromkeys("üÜ", "ue")}
)
TOKENIZE = "tokenize='porter unicode61 remove_diacritics 2'"
#: The letters of a word that are never an ending, and those at the end of a longer one that are.
_LONGEST_WHOLE, _ENDING = 4, 2
_LONGEST_QUESTION = 1 << 14  #: The characters of a question that are read.
#: A phrase in quotes, or anything up to the next space.
_TYPED = re.compile(r'"([^"]*)"(\*?)|(\S+)')

STOP_WORDS = ENGLISH_FUNCTION_WORDS


def indexed_text(text: str) -> str:
    """Return a text as it is indexed.

    "Müller" is indexed as "Muller" in its position, and as "Mueller" at the end of the text.
    """
    if text.isascii():
        return text
    folded = _fold(text)
    return " ".join([folded, *(spelling for _, spelling in _second_spellings(folded))])


def without_accents(text: str) -> str:
    """Return a text as it is indexed, without the marks that the index ignores."""
    letters = unicodedata.normalize("NFKD", indexed_text(text))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def without_ending(word: str) -> str:
    """Return a word without the last letters of a longer one, which may be inflected."""
    return word[: max(_LONGEST_WHOLE, len(word) - _ENDING)]


def indexed_spans(text: str) -> list[Span]:
    """Return the span of the text from which each character of :func:`indexed_text` comes."""
    if text.isascii():
        return [(at, at + 1) for at in range(len(text))]
    spans = [span for span in _clusters(text) for _ in _fold(text[slice(*span)])]
    for (start, end), spelling in _second_spellings(_fold(text)):
        word = spans[start][0], spans[end - 1][1]
        spans += [word] * (1 + len(spelling))  # with the space before it
    return spans


def _second_spellings(folded: str) -> Iterator[tuple[Span, str]]:
    if not any(chr(letter) in folded for letter in _UMLAUTS):
        return
    for word in _WORD.finditer(folded):
        spelling = word[0].translate(_UMLAUTS)
        if spelling != word[0]:
            yield word.span(), spelling


def _clusters(text: str) -> Iterator[Span]:
    """Yield the shortest parts of a text that normalisation leaves independent of each other."""
    start, is_normal = 0, unicodedata.is_normalized("NFC", text)
    for end in range(1, len(text) + 1):
        if is_normal or end == len(text) or not _composes(text, start, end):
            yield start, end
            start = end


def _composes(text: str, start: int, at: int) -> bool:
    """Return whether NFC composes the character at a position with the cluster before it."""
    if unicodedata.combining(text[at]):
        return True
    apart = (unicodedata.normalize("NFC", part) for part in (text[start:at], text[at]))
    return unicodedata.normalize("NFC", text[start : at + 1]) != "".join(apart)


def searched_text(text: str) -> str:
    """Return a text as its single words are searched: "Müller" as "Mueller"."""
    return text if text.isascii() else _fold(text).translate(_UMLAUTS)


def spaced_text(text: str) -> str:
    """Put spaces around the characters of scripts written without spaces."""
    return text if text.isascii() else re.sub(_UNSPACED, r" \g<0> ", text)


def _fold(text: str) -> str:
    return spaced_text(unicodedata.normalize("NFC", text).translate(_LETTERS))


def scope_keys(partition: str, instance: str) -> str:
    """Return the value of the index's column ``scope``, in words that no tokenizer changes."""
    return f"{_key('p', partition)} {_key('i', partition, instance)}"


def typed_terms(text: str) -> list[str]:
    """Quote a typed query as FTS5 terms: words, ``"phrases"`` and ``prefix*``."""
    terms = []
    for phrase, star, typed in _TYPED.findall(unicodedata.normalize("NFC", text)):
        if _WORD.search(phrase):
            terms.append(f'"{_phrase(phrase)}"{star}')
        # Unquoted text is split into words; a run of a script without spaces is a phrase.
        words = [f'"{_phrase(word)}"' for word in _WORD.findall(typed)]
        if words and typed.endswith("*"):
            words[-1] += "*"
        terms += words
    return terms


def _phrase(text: str) -> str:
    """Return words as they are searched; only single words have a second spelling in the index."""
    folded = _fold(text).strip()
    return folded if len(_WORD.findall(folded)) > 1 else folded.translate(_UMLAUTS)


def count_terms(text: str) -> int:
    """Count the words of a text, without the second spellings in the index."""
    return len(_WORD.findall(spaced_text(text)))


def content_words(question: str) -> str:
    """Return up to 200 distinct words of a question, without stop words if any others remain.

    Stop words are English ones and those of the question's language. The last turn of a follow-up
    may be a message of any size: only its beginning is read.
    """
    question = unicodedata.normalize("NFC", question[:_LONGEST_QUESTION])
    words = _WORD.findall(question.lower())
    stop_words = STOP_WORDS | function_words(question)
    chosen = [word for word in words if word not in stop_words] or words
    searched = _WORD.findall(searched_text(" ".join(chosen)))
    return " ".join(list(dict.fromkeys(searched))[:200])


def match_query(word: str, scope: Scope) -> str:
    """Return the FTS5 query for a word inside a scope."""
    text = f'text : ("{word}")'
    if scope.partition is None:
        return text
    key = (
        _key("p", scope.partition)
        if scope.instance is None
        else _key("i", scope.partition, scope.instance)
    )
    return f"scope : {key} AND {text}"


def _key(kind: str, *names: str) -> str:
    import hashlib  # it loads OpenSSL

    # The final digit keeps the stemmer from removing an ending.
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).hexdigest()
    return f"{kind}{digest}0"
