"""Questions that were asked before, without an answer or with one."""
# ruff: noqa: RUF001 - replies in other scripts

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import NOW
from each import each

from reservoir_cli import Message, Reservoir, ToolCall
from reservoir_cli.messages import Conversation, Scope
from reservoir_cli.retrieval.asked_before import adds_something
from reservoir_cli.settings import config
from reservoir_cli.tokens import load_counter

QUESTION = "Which bus goes to the quarry?"
FACT = "The quarry is served by bus 61 on weekdays."
EMPTY = "I don't have any information about which bus goes to the quarry."


@pytest.fixture
def reservoir(store):
    """Open a store without a model, in which everything is ranked by words."""
    settings = {"partition": "p", "recall_floor": 0.0, "min_history_messages": 0}
    with Reservoir(store, config.load(None, {**settings, "embedding_model": "./none"})) as opened:
        yield opened


def tell(store, *exchanges):
    """Store conversations a day apart: a question, its reply, and what the asker says to that."""
    ids = []
    for number, texts in enumerate(exchanges):
        messages = [
            Message(
                role,
                text,
                created_at=NOW + timedelta(days=number, seconds=index),
                conversation_id=f"c{number}",
                trace_id=f"t{number}",
            )
            for index, (role, text) in enumerate(
                zip(("user", "assistant", "user"), texts, strict=False)
            )
        ]
        stored = store.add(Scope("p", "p"), messages, counter=load_counter("approximate"), now=NOW)
        ids.append([row.id for row in stored])
    return ids


def recalled(reservoir, budget):
    window = reservoir.context(QUESTION, budget=budget, now=NOW + timedelta(days=90))
    return [message.content for message in window.messages if message.content != QUESTION]


@pytest.mark.parametrize("times", [1, 4, 12])
def test_what_was_asked_in_vain_does_not_push_the_answer_down(store, reservoir, times):
    askings = ("which bus goes to the quarry", "Do you know which bus goes to the quarry?")
    asked = ([askings[number % 2], EMPTY] for number in range(times))
    tell(store, [FACT], ["The kettle is broken."], *asked)
    hits = reservoir.search(QUESTION, limit=50)
    assert hits[0].message.content == FACT
    assert len(hits) > times, "a search still lists them"
    everything = recalled(reservoir, 4_000)
    assert everything.count(EMPTY) <= 1
    assert FACT in everything


@pytest.mark.parametrize(("times", "title"), [(0, None), (1, None), (3, None), (1, "Ludmilla")])
def test_a_name_that_only_an_asking_in_vain_contains_is_absent(store, times, title):
    question = "Which bus did Ludmilla and Ottokar take to the quarry?"
    settings = {"partition": "p", "recall_floor": 0.6, "embedding_model": "./none"}
    tell(store, [FACT], *[["The kettle is broken."]] * 8, *[[question, "I don't know."]] * times)
    if title:
        store.add_conversations(Scope("p", "p"), [Conversation("c9", title)])
    outcome = Reservoir(store, config.load(None, settings)).recall(question)
    assert [message.content for message in getattr(outcome, "messages", ())] == [FACT]


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("When does the bus to the mill go?", "I have no information about the bus to the mill."),
        ("tell us about the mill and its bus", "I don't know anything about the bus to the mill."),
    ],
)
def test_what_else_was_asked_in_vain_does_not_push_the_answer_down(store, reservoir, asked, reply):
    tell(store, ["Line 61 is the bus."], *[[asked, reply]] * 6, ["The kettle is broken."])
    question = "Which bus goes to the mill?"
    window = reservoir.context(question, budget=160, now=NOW + timedelta(days=90))
    assert "Line 61 is the bus." in [message.content for message in window.messages]


@pytest.mark.parametrize(
    "exchange",
    [
        ("I painted the bus green. Do you like it?", "I don't know any green bus."),
        ("The bus to the mill is green.", "I have no idea why."),
        ("Is the bus to the mill green?", "I don't know, but line 12 is."),
    ],
)
def test_statements_whose_reply_knows_nothing_count(store, reservoir, exchange):
    tell(store, exchange, *[["The bus of the mill was late."]] * 8)
    window = reservoir.context("Is a bus to the mill green?", budget=100, now=NOW)
    assert set(exchange) & {message.content for message in window.messages}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Found it: number 61, from the church.", True),
        ("Is that so?", False),
        ("A pity.", False),
    ],
)
def test_what_the_asker_says_after_a_reply_in_vain_is_the_answer(store, reservoir, said, found):
    """It need not have a word of the question."""
    others = [[f"The kettle is broken in room {number}."] for number in range(20)]
    tell(store, *others, [QUESTION, "I don't know.", said], *others)
    hits = [hit.message.content for hit in reservoir.search(QUESTION, limit=50)]
    assert (said in hits[:2]) == found, hits[:4]


def test_the_newest_answer_is_as_near_as_the_question_it_answers(store, reservoir):
    others = [[f"The bus to the quarry goes past mile {number}."] for number in range(9)]
    tell(store, *others[:4], [QUESTION, "M12."], *others[4:])
    assert "M12." in recalled(reservoir, 150)


def test_an_earlier_answer_is_kept_and_of_equal_ones_the_newest(store, reservoir):
    *_, older, newer = tell(
        store,
        ["The kettle is broken."],
        ["which bus goes to the quarry?", "Line 61 goes there on weekdays."],
        ["which bus goes to the quarry, please?", "On weekdays line 61 goes there."],
    )
    printed = [
        message.to_row()["id"]
        for message in reservoir.context(
            QUESTION, budget=4_000, now=NOW + timedelta(days=90)
        ).messages
    ]
    assert newer[1] in printed
    assert older[1] not in printed


@pytest.mark.parametrize("filler", ["", "Let me look."])
@pytest.mark.parametrize("steps", [1, 3, 12])
def test_the_answer_of_an_agent_follows_its_calls_of_tools(store, reservoir, filler, steps):
    messages = [Message("user", QUESTION)]
    for step in range(steps):
        call = ToolCall(f"call-{step}", "look_up", '{"at": "timetable"}')
        messages.append(Message("assistant", filler, tool_calls=(call,)))
        messages.append(Message("tool", "done", tool_call_id=call.id))
    messages.append(Message("assistant", "Line 61, from the mill."))
    said = [
        replace(
            message,
            created_at=NOW + timedelta(seconds=second),
            conversation_id="agent",
            trace_id="t",
        )
        for second, message in enumerate(messages)
    ]
    store.add(Scope("p", "p"), said, counter=load_counter("approximate"), now=NOW)
    tell(store, ["The kettle is broken."])
    assert "Line 61, from the mill." in recalled(reservoir, 4_000)
    assert reservoir.search(QUESTION)[0].message.content == QUESTION


@pytest.mark.parametrize(
    ("asked", "is_echo"),
    {
        "Could you check this one for me: bus quarry": True,
        "Noch einmal nachsehen, danke: which bus goes to the quarry": True,
        "帮我查一下：which bus, quarry": True,
        "Bus 61 was late again: which bus goes to the quarry": False,
        "Anna and Ben moved out of the old mill house near town: bus, quarry": False,
    }.items(),
)
def test_a_few_words_before_a_colon_lead_to_the_question(store, reservoir, asked, is_echo):
    tell(store, [FACT], [asked, EMPTY], ["which bus goes to the quarry?", EMPTY])
    assert (asked not in recalled(reservoir, 4_000)) is is_echo


def test_a_statement_with_the_words_of_the_question_is_no_echo(store, reservoir):
    tell(store, ["The quarry bus is 61.", "Noted."], ["Where is the quarry?", "Behind the mill."])
    found = recalled(reservoir, 4_000)
    assert {"The quarry bus is 61.", "Behind the mill."} <= set(found)


@each(
    ("reply", "adds"),
    [
        ("I don't know which bus that is.", False),
        ("There is no record of a bus to the quarry in our conversations.", False),
        ("Dazu habe ich leider keine Informationen.", False),
        ("Je n'ai aucune information à ce sujet.", False),
        ("No tengo información sobre eso.", False),
        ("Δεν έχω πληροφορίες γι' αυτό.", False),
        ("Nie mam informacji na ten temat.", False),
        ("У меня нет такой информации.", False),
        ("关于这个我没有任何信息。", False),
        ("申し訳ありませんが、分かりません。", False),
        ("The bus to the quarry?", False),
        ("You never told me about it.", False),
        ("You haven't told me your stop.", False),
        ("Das hast du mir bisher nicht erzählt.", False),
        ("Keine Ahnung, das kann ich nicht sagen.", False),
        ("Tu ne me l'as jamais dit.", False),
        ("Aucune idée.", False),
        ("Nunca me lo contaste.", False),
        ("No he encontrado nada al respecto.", False),
        ("Non me l'hai ancora detto.", False),
        ("Non saprei.", False),
        ("Você nunca me contou isso.", False),
        ("Não faço ideia.", False),
        ("Dat heb je me nog niet verteld.", False),
        ("Ik heb er niets over gevonden.", False),
        ("Вы мне об этом не рассказывали.", False),
        ("Понятия не имею.", False),
        ("Nigdy mi tego nie mówiłaś.", False),
        ("Nie mam pojęcia.", False),
        ("それは聞いていません。", False),
        ("Ingen aning.", False),
        ("Гадки не маю.", False),
        ("Das hat Anna gestern erzählt: Linie 61.", True),
        ("Jamais le dimanche, toujours le lundi.", True),
        ("Me lo dijo Ana: la verde.", True),
        ("De groene, nooit op zondag.", True),
        ("Анна говорила, что зелёный.", True),
        ("Zielony, ale nigdy w niedzielę.", True),
        ("緑のバスです。日曜日は走りません。", True),
        (
            "I have no information about that. It may have been mentioned in another conversation"
            " that I cannot see. If you tell me more, I can help you.",
            False,
        ),
        ("I have no access to your timetables, so I can't tell you. Could you share one?", False),
        ("I searched the notes and could not find it. Please check the stop's sign.", False),
        ("Darüber weiß ich nichts, weil ich keinen Zugriff auf Fahrpläne habe.", False),
        ("Je ne dispose pas de cette information, mais je peux vous aider à chercher.", False),
        ("No tengo acceso a los horarios, así que no puedo saberlo.", False),
        ("Не знаю, но могу предложить несколько вариантов.", False),
        ("It is not stored in the app but on a sheet beside Nora's door.", True),
        ("No information board shows it, only the yellow sign at Mill Lane.", True),
        ("She can't have the blue one.", True),
        ("Nothing is driven there without Otto.", True),
        ("Der fährt nicht mehr dorthin, sondern nach Kaltwasser.", True),
        ("Ich weiß die Nummer nicht mehr, aber der Fahrer heißt Otto.", True),
        ("No hay autobús, sino un tranvía.", True),
        ("Je ne sais plus le numéro, il part devant la mairie de Veyrac.", True),
        ("De lijn weet ik niet precies, maar die vertrekt bij Molen Zuid.", True),
        ("Номер не помню, но он отходит от Мельничной площади.", True),
        ("我不知道号码，但是从磨坊广场出发的那辆。", True),
        ("Yes.", True),
        ("Line 61.", True),
        ("I'm not sure, but it could be the 61.", True),
        ("I don't have the timetable here. Line M runs from the mill. It leaves at dawn.", True),
        ("Die Linie fährt ab Markt.", True),
    ],
)
def test_a_reply_without_a_word_of_its_own_adds_nothing(reply, adds):
    assert adds_something(reply, QUESTION) is adds
