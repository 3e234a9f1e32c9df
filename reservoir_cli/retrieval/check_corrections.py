"""Reject corrections of words that the model knows, and report those that are searched for."""

from reservoir_cli.embedding import Embedder
from reservoir_cli.messages import Scope, searchable_text
from reservoir_cli.redaction import Redactor
from reservoir_cli.storage.search.candidates import Candidates, Correction
from reservoir_cli.storage.search.highlight import word_with_stem
from reservoir_cli.storage.store import Store


def drop_known_words(candidates: Candidates, embedder: Embedder | None) -> Candidates:
    """Return the candidates with corrections only of words that the model's vocabulary lacks."""
    if not candidates.corrections or embedder is None:
        return candidates
    present = len(candidates.postings) - len(candidates.corrections)
    misspelt = [
        (word, posting)
        for word, posting in zip(candidates.corrections, candidates.postings[present:], strict=True)
        if not embedder.knows(word.typed)
    ]
    correct = [word for word in candidates.corrections if embedder.knows(word.typed)]
    return candidates._replace(
        postings=(*candidates.postings[:present], *(posting for _, posting in misspelt)),
        absent=(*candidates.absent, *(word.absent for word in correct)),
        corrections=tuple(word for word, _ in misspelt),
    )


def correction_notes(
    candidates: Candidates, store: Store, scope: Scope, redactor: Redactor
) -> tuple[str, ...]:
    """Return a note such as ``nothing has "kuberntes"; searched for Kubernetes``, if needed."""
    if not candidates.corrections:
        return ()

    def spell_as_written(word: Correction) -> str:
        """Return a word as a message spells it, without revealing one that is part of a secret."""
        messages = redactor.messages(store.by_id([int(candidates.ids[word.position])], scope))
        spellings = (word_with_stem(searchable_text(message), word.stem) for message in messages)
        return next((text for text in spellings if text), "a similar word")

    typed = ", ".join(f'"{word.typed}"' for word in candidates.corrections)
    meant = ", ".join(map(spell_as_written, candidates.corrections))
    return (f"nothing has {typed}; searched for {meant}",)
