"""Split text into word pieces with the model's tokenizer, the same way for both engines."""

import re
from typing import TYPE_CHECKING

from reservoir_cli.embedding.split_passages import Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def without_padding(published: str, max_length: int) -> "Tokenizer":
    """Load a tokenizer that truncates at the model's length and does not pad.

    Many are published with the truncation and padding used in training.

    :param published: the tokenizer's JSON.
    :param max_length: the most word pieces the model reads; 0 if unlimited.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(published)
    tokenizer.no_padding()
    if max_length:
        tokenizer.enable_truncation(max_length)
    else:
        tokenizer.no_truncation()
    return tokenizer


def pieces(tokenizer: "Tokenizer", text: str) -> list[Span]:
    """Return the span of each word piece of a text, including those beyond the model's limit."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    spans: list[Span] = list(encoded.offsets)
    for rest in encoded.overflowing:  # beyond the truncation
        spans += rest.offsets
    return spans


def words(text: str) -> list[Span]:
    """Approximate word pieces if there is no fast tokenizer: four letters or a symbol each."""
    return [match.span() for match in re.finditer(r"\w{1,4}|[^\w\s]", text)]
