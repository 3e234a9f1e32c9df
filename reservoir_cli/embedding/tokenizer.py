"""Word pieces as a model's own tokenizer makes them, the same for both engines."""

import re
from typing import TYPE_CHECKING

from reservoir_cli.embedding.passages import Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def mended(published: str, max_length: int) -> "Tokenizer":
    """A tokenizer that cuts at the model's length and pads nothing.

    Many are published with the truncation and padding that they were trained with.

    :param published: its JSON.
    :param max_length: word pieces that the model reads; 0 if that is without limit.
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
    """Where each word piece of a text stands in it, also behind what the model would read."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    found: list[Span] = list(encoded.offsets)
    for rest in encoded.overflowing:  # what truncation cut off
        found += rest.offsets
    return found


def words(text: str) -> list[Span]:
    """About what a tokenizer would find, where it cannot say: four letters or a sign each."""
    return [each.span() for each in re.finditer(r"\w{1,4}|[^\w\s]", text)]
