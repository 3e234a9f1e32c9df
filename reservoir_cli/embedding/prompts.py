"""The prompts of embedding models: what they expect before a question or a stored text."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reservoir_cli.errors import ModelUnavailableError
from reservoir_cli.util.read_files import read_bounded

CONFIG = "config_sentence_transformers.json"  #: The file in which a model publishes its prompts.
#: The names used for the prompt of stored texts.
_DOCUMENT_NAMES = ("document", "passage", "corpus")
#: Models trained with prompts that their cards describe but their files lack.
_E5 = re.compile(r"(multilingual-)?e5-(small|base|large)(-v2)?", re.IGNORECASE)
_E5_PROMPTS = ("query: ", "passage: ")


class Prompts(NamedTuple):
    """The texts put before a question or a stored text when it is embedded.

    :param inferred: whether they differ from those published as ``query`` and ``document``; if so
        they are part of the identity of the vectors.
    """

    query: str = ""
    document: str = ""
    inferred: bool = False


def prompts_of(name: str, folder: Path) -> Prompts:
    """Return the prompts of a model.

    sentence-transformers saves an empty ``document`` beside a ``passage`` and then uses the empty
    one, so the first non-empty prompt is used here.
    """
    published = _read_published(name, folder)
    query = published.get("query", "")
    document = next((text for key in _DOCUMENT_NAMES if (text := published.get(key))), "")
    if not any(published.values()) and _E5.fullmatch(Path(name).name):
        query, document = _E5_PROMPTS
    inferred = (query, document) != (published.get("query", ""), published.get("document", ""))
    return Prompts(query, document, inferred)


def _read_published(name: str, folder: Path) -> Mapping[str, str]:
    file = folder / CONFIG
    if not file.exists():
        return {}
    try:
        config = json.loads(read_bounded(file))
        prompts = config.get("prompts") or {}
        return {key: text for key, text in prompts.items() if isinstance(text, str)}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ModelUnavailableError(
            f"the embedding model {name} cannot be loaded: its {CONFIG} is damaged",
            "download the model again, or choose another",
        ) from error
