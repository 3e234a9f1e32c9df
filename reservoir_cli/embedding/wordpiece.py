"""Split a short plain text into word pieces without loading the model's tokenizer. Pure.

Loading the tokenizer takes 20 ms, a tenth of a cold question, because its library puts 30,522
pieces into tables. A question needs a dozen of them, and each can be found in the file itself.

Only what the tokenizers of BERT do with ASCII is done here. For anything else the answer is
``None``, and the library's tokenizer has to be loaded.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_VOCABULARY = b'"vocab":{'
#: What a tokenizer's file must hold.
_RULES = {
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {},
    },
    "padding": None,
}
_AROUND = ["[CLS]", "A", "[SEP]"]
_PLAIN = re.compile(r"[ -Z\\-~\t\n]*")  # no "[": special tokens are written as [SEP]
_WORD = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
#: Looking for a piece that the vocabulary does not have takes 0.3 ms: with more of them, loading
#: the tokenizer is quicker.
_MOST_MISSES = 20
#: Characters of a text that is split here.
_LONGEST = 1_000


class WordPieces(NamedTuple):
    """The word pieces of a tokenizer's file.

    :param vocabulary: JSON: ``,"piece":id`` for each.
    :param first: the id that every text begins with; ``last``, that it ends with.
    :param most: the most ids of a text.
    """

    vocabulary: bytes
    first: int
    last: int
    most: int

    @classmethod
    def parse(cls, data: bytes) -> "WordPieces | None":
        """Parse a tokenizer's JSON; return ``None`` if it has rules that are not known here."""
        head, found, vocabulary = data.partition(_VOCABULARY)
        if not found or not vocabulary.endswith(b"}}}"):
            return None
        try:
            rules = json.loads(head + found + b"}}}")
            around = [next(iter(part.values()))["id"] for part in rules["post_processor"]["single"]]
            if around != _AROUND or any(rules[name] != rule for name, rule in _RULES.items()):
                return None
            first, last = (_id_of(rules, token) for token in ("[CLS]", "[SEP]"))
            most = int(rules["truncation"]["max_length"])
            if any("[" not in token["content"] for token in rules["added_tokens"]):
                return None
        except (ValueError, LookupError, TypeError, AttributeError):
            return None
        return cls(b"," + vocabulary, first, last, most)

    def ids(self, text: str) -> list[int] | None:
        """Return the ids of a text as the model reads them; ``None`` if it is not short and plain.

        It is not plain if it holds anything but printable ASCII, tabs and line feeds.
        """
        if len(text) > _LONGEST or not _PLAIN.fullmatch(text):
            return None
        ids, misses = [self.first], 0
        for word in _WORD.findall(text.lower()):
            start = 0
            while start < len(word):
                end, number = self._longest(word, start, _MOST_MISSES - misses)
                if number is None:
                    return None
                ids.append(number)
                misses += len(word) - end
                start = end
        return [*ids, self.last] if len(ids) < self.most else None

    def _longest(self, word: str, start: int, misses: int) -> tuple[int, int | None]:
        """Return the end of the longest piece of a word from a start on, and the id of the piece.

        :param misses: how many longer pieces may be looked for, and not found.
        """
        for end in range(len(word), max(start, len(word) - misses - 1), -1):
            number = self._id("##" * (start > 0) + word[start:end])
            if number is not None:
                return end, number
        return start, None

    def _id(self, piece: str) -> int | None:
        key = b"," + json.dumps(piece).encode() + b":"
        at = self.vocabulary.find(key)
        if at < 0:
            return None
        number = re.compile(rb"\d+").match(self.vocabulary, at + len(key))
        return int(number[0]) if number else None


def _id_of(rules: Mapping[str, Any], token: str) -> int:
    (number,) = rules["post_processor"]["special_tokens"][token]["ids"]
    return int(number)
