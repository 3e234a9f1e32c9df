"""Misspelt words are replaced by the nearest words of the index."""

from collections.abc import Callable

from each import each

from reservoir_cli.messages import Message, Scope, StoredMessage
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.search.correct_misspelt_words import count_slips
from reservoir_cli.storage.store import Store

Adding = Callable[..., list[StoredMessage | None]]

SLIPS = [
    ("kubernt", "kubernet", 1),
    ("recieve", "receive", 1),
    ("failovr", "failover", 1),
    ("rollbakc", "rollback", 1),
    ("same", "same", 0),
    ("", "abc", 3),
    ("abcd", "", 4),
    ("sitting", "kitten", 3),
]


@each(("first", "second", "expected"), SLIPS)
def test_spelling_mistakes_are_counted(first, second, expected):
    assert count_slips(first, second) == count_slips(second, first) == expected


def candidates_for(store: Store, question: str) -> Candidates:
    return store.candidates(Scope("p"), None, question, None)


def test_a_misspelt_word_finds_the_same_as_the_correct_one(store, add):
    add(
        Message("user", "Should Kubernetes do the rollback by itself?"),
        Message("assistant", "No: Kubernetes restarts, the deployment is ours."),
    )
    misspelt, correct = (
        candidates_for(store, "the kuberntes rolbacks"),
        candidates_for(store, "kubernetes rollbacks"),
    )
    assert [word.typed for word in misspelt.corrections] == ["kuberntes", "rolbacks"]
    turned = candidates_for(store, "the rolbacks kuberntes").corrections
    assert [word.typed for word in turned] == ["rolbacks", "kuberntes"]
    assert misspelt.absent == correct.absent == ()
    positions = [
        sorted(posting.positions.tolist() for posting in of.postings) for of in (misspelt, correct)
    ]
    assert positions[0] == positions[1] == [[0], [0, 1]]


def test_words_of_another_partition_are_neither_found_nor_named(store, add):
    add(Message("user", "kubernetes"), partition="q")
    add(Message("user", "the limiter"))
    candidates = candidates_for(store, "kuberntes")
    assert (candidates.corrections, candidates.postings, len(candidates.absent)) == ((), (), 1)


def test_few_words_of_a_long_question_are_looked_up(store, add):
    add(Message("user", "alphabet bergamot cardamom dandelion"))
    candidates = candidates_for(store, "alphabt bergamt cardamm dandelin")
    assert (len(candidates.corrections), len(candidates.absent)) == (3, 1)


def test_words_of_a_language_that_no_message_is_in_are_not_corrected(store, add):
    add(Message("user", "Is it warm and dry, and have the commits been checked?"))
    question = "Warum haben wir die Commts geprüft?"
    assert candidates_for(store, question).corrections == ()
    assert candidates_for(store, "Warum?").corrections == ()
    english = candidates_for(store, "Were the Commts checkd?").corrections
    assert {word.typed for word in english} == {"commts", "checkd"}
    add(Message("assistant", "Warum haben wir nicht die Commits geprüft?"))
    assert [word.typed for word in candidates_for(store, question).corrections] == ["commts"]
