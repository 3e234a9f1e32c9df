"""Follow-up questions in a session, the recall floor, and leaving out weak matches."""

from datetime import timedelta

import numpy as np
import pytest
from builders import NOW, Compass, context
from memories import count_printed_tokens
from windows import recalled_of

from reservoir_cli import Message, Reservoir, UsageError
from reservoir_cli.context.build_context import NOTHING_FITS
from reservoir_cli.messages import Scope
from reservoir_cli.settings import config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.tokens import load_counter

#: Embeddings along three axes; every question is on the first.
QUESTION, BOILER, GARDEN = np.eye(3, dtype=np.float32)


class Wide(Compass):
    dimensions = 3

    def encode_query(self, text):
        return QUESTION


class Memory:
    """A store with messages of past days, and questions a minute after the last of them."""

    def __init__(self, store):
        self.store, self.count = store, 0
        store.activate_model(Compass.model_id, Compass.name)

    def say(
        self,
        text,
        vector=None,
        role="user",
        *,
        days=0,
        conversation="old",
        instance="p",
        trace=None,
        source=None,
    ):
        self.count += 1
        created_at = NOW - timedelta(days=days) + timedelta(seconds=self.count)
        message = Message(
            role,
            text,
            created_at=created_at,
            conversation_id=conversation,
            trace_id=trace,
            source_id=str(self.count),
            source=source,
        )
        scope, counter = Scope("p", instance), load_counter("approximate")
        (stored,) = self.store.add(scope, [message], counter=counter, now=NOW)
        passages = [] if vector is None else [Passage(stored.id, 0, 0, 1, vector)]
        self.store.add_passages(Compass.model_id, {stored.key: passages})
        return stored.id

    def ask(self, question="and zeta?", minutes=1, **options):
        settings = {"recall_floor": 0.0, **options.pop("settings", {})}
        reservoir = Reservoir(self.store, config.load(None, settings), embedder=Wide())
        now = NOW + timedelta(minutes=minutes)
        options = {"budget": 4_000, **options}
        return context(reservoir, question, partition="p", now=now, **options)

    def similarity(self, **options):
        rows = self.ask(**options).messages
        return {row.id: row.similarity for row in rows if row.id}


@pytest.fixture
def memory(store):
    return Memory(store)


@pytest.fixture
def message_ids(memory):
    """Store a message about the boiler, one about the garden, and a session about the boiler."""
    return (
        memory.say("it is set to 55", BOILER, days=9),
        memory.say("roses are pruned", GARDEN, days=8, conversation="older"),
        memory.say("how does the boiler run", BOILER, conversation="now", trace="now"),
        memory.say("evenly", BOILER, "assistant", conversation="now", trace="now"),
    )


def test_a_follow_up_finds_the_topic_of_the_session(memory, message_ids):
    boiler, garden, *_ = message_ids
    followed, unfollowed = memory.similarity(), memory.similarity(follow=False)
    assert unfollowed[boiler] == pytest.approx(unfollowed[garden])
    assert followed[boiler] > followed[garden] + 0.1


def test_words_of_the_session_count_too(memory):
    boiler = memory.say("the boiler is set to 55", days=9)
    garden = memory.say("roses are pruned", days=8, conversation="older")
    for number in range(9):
        memory.say(f"nothing {number}", days=7, conversation=f"nothing {number}")
    memory.say("how does the boiler run", conversation="now")
    followed = memory.similarity()
    assert followed[boiler] > followed[garden] + 0.1


def test_messages_of_the_session_itself_keep_their_similarity(memory, message_ids):
    *_, question_id, reply_id = message_ids
    followed, unfollowed = memory.similarity(), memory.similarity(follow=False)
    assert followed[question_id] == pytest.approx(unfollowed[question_id])
    assert followed[reply_id] == pytest.approx(unfollowed[reply_id])


@pytest.mark.parametrize(("minutes", "follows"), [(239, True), (241, False)])
def test_a_session_ends_after_a_pause_of_session_gap(memory, message_ids, minutes, follows):
    followed, unfollowed = memory.similarity(minutes=minutes), memory.similarity(follow=False)
    assert (followed[message_ids[0]] > unfollowed[message_ids[0]] + 0.1) is follows


def test_a_document_neither_begins_nor_continues_a_session(memory, message_ids):
    boiler, garden, *_ = message_ids
    memory.say("roses need water", GARDEN, conversation="note", source="markdown")
    followed = memory.similarity()
    assert followed[boiler] > followed[garden] + 0.1
    followed, unfollowed = (
        memory.similarity(minutes=241),
        memory.similarity(minutes=241, follow=False),
    )
    assert followed == unfollowed


def test_a_stored_question_is_not_part_of_its_own_session(memory, message_ids):
    followed = memory.similarity()
    memory.say("and zeta?", QUESTION, conversation="now")
    stored = memory.similarity()
    assert stored[message_ids[0]] > stored[message_ids[1]] + 0.1
    assert followed[message_ids[0]] > followed[message_ids[1]] + 0.1


def test_a_session_of_another_instance_is_ignored(memory, message_ids):
    memory.say("elsewhere", GARDEN, instance="q", conversation="q")
    own_instance, other_instance = (
        memory.similarity(instance="p", recall_scope="partition"),
        memory.similarity(instance="q", recall_scope="partition"),
    )
    assert own_instance[message_ids[0]] > own_instance[message_ids[1]]
    assert other_instance[message_ids[1]] > other_instance[message_ids[0]]


UNRELATED = {"recall_floor": 0.36, "follow": False}


@pytest.mark.parametrize("minutes", [1, 2_000], ids=["in a session", "days later"])
def test_a_context_for_an_unrelated_question_holds_the_nearest_and_says_so(
    memory, message_ids, minutes
):
    window = memory.ask("capital of Mongolia", minutes=minutes, **UNRELATED)
    assert window.nothing_found
    assert window.relevance < 0.36
    assert {row.id for row in window.messages if row.id} == set(message_ids)
    title, note, *_ = recalled_of(window).splitlines()
    assert title == "[Recalled Messages]"
    assert note == "Nothing stored fits this question well; these are the nearest."
    assert window.turns[-1].content == "capital of Mongolia"
    document = window.to("json")
    assert document["nothing_found"]
    assert document["relevance"] == window.relevance


def test_only_below_the_floor_is_there_a_note(memory, message_ids):
    assert NOTHING_FITS not in memory.ask("pruned roses", **UNRELATED).to("text")
    for form in ("text", "markdown", "openai"):
        for budget in (300, 2_000):
            shown = memory.ask("capital of Mongolia", **{**UNRELATED, "budget": budget})
            assert NOTHING_FITS in str(shown.to(form)), (form, budget)


@pytest.mark.parametrize("budget", [90, 250, 800])
def test_the_note_is_counted(memory, budget):
    for number in range(30):
        memory.say(f"mulch and compost {number} " * 3, GARDEN)
    window = memory.ask("capital of Mongolia", budget=budget, **UNRELATED)
    assert window.nothing_found
    assert window.used <= budget
    assert count_printed_tokens(window) <= budget


def test_a_matching_word_or_embedding_passes_the_floor(memory, message_ids):
    assert not memory.ask("pruned roses", recall_floor=0.36, follow=False).nothing_found
    memory.say("near", QUESTION, days=3)
    assert not memory.ask("capital of Mongolia", recall_floor=0.36, follow=False).nothing_found


def test_floor_0_always_recalls_the_nearest(memory, message_ids):
    window = memory.ask("capital of Mongolia", recall_floor=0.0, follow=False)
    assert not window.nothing_found
    assert {row.id for row in window.messages} >= set(message_ids)


def test_a_follow_up_passes_the_floor_by_its_session(memory, message_ids):
    assert memory.ask("capital of Mongolia", recall_floor=0.36, follow=False).nothing_found
    assert not memory.ask("capital of Mongolia", recall_floor=0.36).nothing_found


def test_an_empty_question_or_store_is_not_refused(memory):
    assert not memory.ask("zeta", recall_floor=0.36).nothing_found
    memory.say("here", GARDEN)
    assert not memory.ask("", recall_floor=0.36).nothing_found


def test_weak_matches_are_left_out(memory):
    for number in range(30):
        memory.say(f"garden {number}", GARDEN, days=40 - number, instance="q")
    nearest = memory.say("near", QUESTION, days=50, instance="q", conversation="near")
    memory.say("newest", GARDEN)
    unlimited = memory.ask(follow=False)
    window = memory.ask(follow=False, enough=True)
    recalled = [row.message.id for row in window.selection.recalled]
    assert nearest in recalled
    assert len(recalled) < 5 < len(unlimited.selection.recalled)


def test_the_moment_of_asking_has_a_time_zone(memory):
    reservoir = Reservoir(memory.store, config.load(None, {}), embedder=Wide())
    with pytest.raises(UsageError, match="time zone"):
        reservoir.context("zeta", now=NOW.replace(tzinfo=None))
    assert reservoir.context("zeta", now=NOW).request.now == NOW
