"""Detect messages in a language that the default embedding model does not read."""

from typing import NamedTuple

from reservoir_cli.embedding.find_model import is_default
from reservoir_cli.messages import EVERYWHERE, Filter
from reservoir_cli.storage.store import Store
from reservoir_cli.util.languages import guess_language

MULTILINGUAL = "intfloat/multilingual-e5-small"  #: A model that reads about a hundred languages.
#: The messages examined, and the fewest of a known language that say something about a store.
_SAMPLE, _FEWEST = 200, 3


class WrongLanguage(NamedTuple):
    """A model that does not read the language of most messages."""

    detail: str
    fix: str


def find_wrong_language(store: Store, model: str) -> WrongLanguage | None:
    """Return the problem if a model does not read most of the user's newest messages."""
    if not is_default(model):
        return None
    newest = store.last(EVERYWHERE, _SAMPLE, Filter(role="user"))
    languages = [language for message in newest if (language := guess_language(message.content))]
    if len(languages) < _FEWEST or 2 * languages.count("en") >= len(languages):
        return None
    return WrongLanguage(
        "most of the newest questions are not in English, which the default model reads",
        f"reservoir embed --model {MULTILINGUAL}",
    )
