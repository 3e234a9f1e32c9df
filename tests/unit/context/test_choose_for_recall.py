"""A recall holds what stands out, in its session only once, and nothing for the work at hand."""
# ruff: noqa: RUF001 - letters of other scripts

import re
from datetime import timedelta

import numpy as np
import pytest
from builders import NOW, Compass
from each import each

from reservoir_cli import Message, Reservoir
from reservoir_cli.context import build_context, choose_for_recall, pool
from reservoir_cli.context.prompts_that_ask_nothing import is_about_the_work, is_question
from reservoir_cli.context.recall import Reason, Recall, Skipped
from reservoir_cli.messages import Scope
from reservoir_cli.settings import config
from reservoir_cli.storage.passage import Passage
from reservoir_cli.tokens import load_counter

pytestmark = pytest.mark.both_stores

#: Embeddings along three axes: prompts are on the first or, if they name the boiler, on the second.
PROMPT, BOILER, OTHER = np.eye(3, dtype=np.float32)


class Axes(Compass):
    dimensions = 3

    def encode_query(self, text):
        return BOILER if "boiler" in text else PROMPT

    def encode_documents(self, texts):
        return np.stack([self.encode_query(text) for text in texts])


def between(cosine):
    """Return a vector with this cosine to prompts."""
    return np.array([cosine, 0, (1 - cosine**2) ** 0.5], np.float32)


def halfway():
    """Return a vector between prompts and the boiler."""
    return (PROMPT + BOILER) / np.sqrt(2).astype(np.float32)


class Facts:
    """A store with one fact about the boiler and a number of other conversations."""

    def __init__(self, store):
        self.store, self.count = store, 0
        store.activate_model(Compass.model_id, Compass.name)

    def tell(self, question, answer, vector, *, conversation=None):
        """Store an exchange; return the ids of its two messages."""
        return self.tell_all([(question, answer, vector)], conversation)

    def tell_all(self, exchanges, conversation=None):
        """Store exchanges by one write; return the ids of their messages."""
        messages, vectors = [], []
        for question, answer, vector in exchanges:
            name = conversation or f"c{self.count}"
            for role, text in (("user", question), ("assistant", answer)):
                self.count += 1
                messages.append(
                    Message(
                        role,
                        text,
                        created_at=NOW - timedelta(days=90) + timedelta(hours=9 * self.count),
                        conversation_id=name,
                        trace_id=name,
                        source_id=str(self.count),
                    )
                )
                vectors.append(vector)
        counter = load_counter("approximate")
        stored = self.store.add(Scope("p", "p"), messages, counter=counter, now=NOW)
        self.store.add_passages(
            Compass.model_id,
            {
                message.key: [Passage(message.id, 0, 0, len(message.content), vector)]
                for message, vector in zip(stored, vectors, strict=True)
            },
        )
        return [message.id for message in stored]

    def recall(self, prompt, **options):
        settings = {"recall_floor": 0.2, "min_history_messages": 0}
        reservoir = Reservoir(self.store, config.load(None, settings), embedder=Axes())
        return reservoir.recall(prompt, partition="p", now=NOW, **options)

    def recalled(self, prompt, **options):
        outcome = self.recall(prompt, **options)
        return [message.id for message in outcome.messages] if isinstance(outcome, Recall) else []


@pytest.fixture
def facts(store):
    made = Facts(store)
    made.tell_all(
        (f"which bulb {number}?", f"lamp {number}", between(0.05 + number / 400))
        for number in range(12)
    )
    return made


def shelves(count, cosine):
    """Return exchanges with this cosine to prompts."""
    return [
        (f"the cellar, shelf {index}", f"jam of year {index}", between(cosine))
        for index in range(count)
    ]


SESSION = {"exclude_conversation": "now"}


@pytest.mark.parametrize("budget", [200, 1_500, 8_000])
@pytest.mark.parametrize("options", [{}, SESSION], ids=["typed", "in a session"])
def test_what_stands_out_is_recalled_and_a_larger_budget_adds_no_filler(facts, budget, options):
    fact = facts.tell("how warm is the cellar?", "it has 12 degrees", between(0.9))
    assert facts.recalled("how warm is our cellar?", budget=budget, **options) == fact


def test_the_reply_after_a_recalled_question_comes_with_it(facts):
    question, reply = facts.tell("how warm is the cellar?", "twelve", between(0.9))
    other = facts.tell("unrelated", "nothing of the kind", OTHER, conversation="x")
    recalled = facts.recalled("how warm is our cellar?")
    assert recalled == [question, reply]
    assert not set(other) & set(recalled)


def test_messages_that_fit_alike_are_all_recalled(facts):
    alike = facts.tell_all(shelves(5, 0.9))
    assert facts.recalled("what about the cellar?", budget=4_000) == alike


def test_only_what_could_fill_the_budget_is_read(facts, monkeypatch):
    facts.tell_all(
        (f"Pipe {number} {'is of brass and ' * 9}old.", "Noted.", between(0.8))
        for number in range(120)
    )
    read, redact = [], pool.redact
    monkeypatch.setattr(
        pool,
        "redact",
        lambda rows, *rest, **named: redact(read.extend(rows) or rows, *rest, **named),
    )
    assert facts.recall("Which pipes are of brass?", budget=1_000).tokens > 700
    assert len(read) < 150


def test_a_message_is_recalled_once_in_a_session(facts):
    fact = facts.tell("how warm is the cellar?", "it has 12 degrees", between(0.9))
    again = facts.recall("how warm is the cellar?", shown=fact, **SESSION)
    assert isinstance(again, Skipped)
    assert again.reason is Reason.RECALLED_BEFORE
    assert facts.recalled("how warm is the cellar?", shown=fact[:1], **SESSION) == fact[1:]


FOLLOW_UPS = ["and the old one?", "since when?", "und warum?"]


@pytest.mark.parametrize("prompt", FOLLOW_UPS)
def test_a_follow_up_is_asked_with_the_talk_that_the_client_gives(facts, prompt):
    fact = facts.tell("what is the boiler set to?", "55 degrees", BOILER)
    talk = [
        ("user", "remind me of the boiler"),
        ("assistant", "the boiler, sure"),
        ("user", "thanks!"),
        ("assistant", "You are welcome."),
    ]
    assert set(fact) <= set(facts.recalled(prompt, talk=talk, **SESSION))
    assert not set(fact) & set(facts.recalled(prompt, **SESSION))


def test_an_order_is_not_about_the_talk_before_it(facts):
    facts.tell("what is the boiler set to?", "55 degrees", BOILER)
    talk = [("user", "remind me of the boiler"), ("assistant", "the boiler, sure")]
    outcome = facts.recall("rename the second parameter everywhere", talk=talk, **SESSION)
    assert isinstance(outcome, Skipped)


def test_an_order_recalls_what_it_and_the_talk_before_it_are_nearest_to(facts):
    """Nothing stands out for the order alone, but the last turns were about the same message."""
    facts.tell_all(
        (f"label of week {number}", f"label {number}: nothing", between(0.85))
        for number in range(8)
    )
    fact = facts.tell("what is the boiler set to?", "55 degrees", halfway())
    talk = [("user", "remind me of the boiler"), ("assistant", "the boiler, sure")]
    order = "write a label with the degrees"
    assert facts.recalled(order, talk=talk, **SESSION) == fact
    assert not facts.recalled(order, **SESSION)


@pytest.mark.parametrize("prompt", ["what about the cellar?", "the cellar is damp"])
def test_in_a_session_many_messages_that_fit_alike_are_not_recalled(facts, prompt):
    facts.tell_all(shelves(8, 0.55))
    assert facts.recalled(prompt)
    assert not facts.recalled(prompt, **SESSION)


def test_what_was_said_since_is_recalled_with_an_earlier_answer(facts):
    """The best of it, as the answer may be outdated; not what was said before."""
    facts.tell("the cellar has a lamp", "a red one", between(0.6))
    asked = facts.tell("how warm is the cellar?", "it has 12 degrees", between(0.98))
    since = facts.tell("the cellar is heated now", "to 18 degrees", between(0.7))
    assert set(facts.recalled("how warm is the cellar?", **SESSION)) - set(since) <= set(asked)
    assert since[0] in facts.recalled("how warm is the cellar?", **SESSION)


def test_what_is_often_talked_about_is_still_recalled_for_a_question_that_means_the_same(facts):
    """Eight sessions have the same words, so that none stands out."""
    facts.tell_all(shelves(8, 0.5))
    fact = facts.tell("the cellar, shelf nine", "plums", between(0.7))
    assert set(fact) <= set(facts.recalled("what about the cellar shelf?", **SESSION))


def test_in_a_session_messages_are_introduced_in_one_line(facts):
    facts.tell("how warm is the cellar?", "it has 12 degrees", between(0.9))
    typed, asked = facts.recall("how warm is it there?"), facts.recall("how warm?", **SESSION)
    assert asked.text.splitlines()[1].startswith("[Recalled Messages] ")
    assert typed.tokens > asked.tokens


@pytest.mark.parametrize(
    ("said", "is_chosen"),
    [("no, since May it has 18", True), ("thanks", False), ("is it so all summer long?", False)],
)
def test_in_a_session_what_the_asker_said_after_a_reply_is_chosen_with_it(
    facts, monkeypatch, said, is_chosen
):
    choices = []

    def choose(ranking, *arguments):
        positions = choose_for_recall.find_standouts(ranking, *arguments)
        choices.append(ranking.scored.candidates.ids[positions].tolist())
        return positions

    monkeypatch.setattr(build_context, "find_standouts", choose)
    asked = facts.tell("how warm is it there?", "cold " * 200, between(0.8), conversation="c")
    told = facts.tell(said, "I see " + "and so on " * 22, OTHER, conversation="c")
    facts.recalled("which temperature?", **SESSION)
    assert choices == [[*asked, *told[:is_chosen]]]


def test_a_statement_that_stands_out_is_recalled_for(facts):
    fact = facts.tell("the cellar is damp again", "open the hatch at night", between(0.9))
    assert facts.recalled("cellar damp again since Friday", **SESSION) == fact


LONG = "Open the hatch at night and close it before the sun is on it, or it gets worse."


@pytest.mark.parametrize(
    ("order", "reply", "prompt", "is_recalled"),
    [
        ("sweep the cellar", "Done, all swept.", "sweep the cellar", False),
        ("feg bitte den Keller aus", "Erledigt.", "feg den Keller aus und lüfte", False),
        ("地下室を掃除して", "終わりました。", "地下室を掃除して", False),
        ("sweep the cellar", LONG, "sweep the cellar", True),
        ("sweep the cellar", "Done, all swept.", "is the cellar swept?", True),
        ("always sweep the cellar", "I will.", "clean the cellar now", True),
        ("the cellar has 2 drains", "Noted.", "sweep the cellar", True),
    ],
)
def test_what_was_said_to_an_earlier_order_is_not_recalled_for_another(
    facts, order, reply, prompt, is_recalled
):
    told = facts.tell(order, reply, between(0.9))
    assert (told[1] in facts.recalled(prompt, **SESSION)) == is_recalled


WORK = """
commit|commit it please|revert that|run them|undo|no, the other one|ok, then rename it
yes, both|merge|push it now|mach es rückgängig|nein, lass es|ok, und jetzt committen
non, laisse|sí, hazlo|si, fallo|sim, faz isso|nee, laat maar|да, сделай|好的\uff0c提交吧
thanks, that was all for today|guten Morgen zusammen|schönes Wochenende
tell me more|tell me when it is done
haha, that was close|está bien, borra la rama vieja|tutto a posto, chiudi la finestra
всё хорошо, закрой вкладку|dobra, teraz zamknij okno|klopt, sluit het venster maar
やり直して|いや、それじゃない|違います、隣のファイルです|別の画面も同じようにして|ログを消してください
```python
def split(rows):
    return rows
```
""".strip("\n")
ABOUT_THE_STORE = """
which port does staging use?|and the old one?|does the worker run per depot|what was it
prices differ by three cents|the sensor reboots after two days|use the naming of customs forms
wie war das mit Lingui|welche Farbe hat das Banner|où est la clé|cuál es el puerto|哪个端口
どこに鍵がありますか|почему мы отказались|no, why did we drop it?
鍵の場所を思い出させて|火曜日の歯医者の予約を夕方に変更して|先月と同じように家賃を払った
на какой полке стоит варенье|przypomnij mi numer szafki|herinner me aan de code van de kluis
Please remind me of the plate of the van|I need the plate of the van|bitte nenn mir das Kennzeichen
No arranca la caldera, marca un fallo|Non parte la caldaia del garage
Nie ma prądu w piwnicy na dole|Нет воды в подвале с утра|Los albañiles piden otro anticipo
Bon de livraison pour la chaudière|Door lock of the shed is stuck|Same valve as in the boiler room
Wait for the plumber took two weeks|Good evening, who repairs our boiler
Привет, нужен адрес мастера по котлам|Hallo, ich suche den Mechaniker
はい、ボイラーの担当者は|ボイラーの点検について|没有\uff0c锅炉房的钥匙呢
hast du die Nummer vom Klempner
""".strip()


@each("prompt", [*re.split(r"[|\n]", WORK.split("\n```")[0]), "```" + WORK.split("```")[1] + "```"])
def test_prompts_about_the_work_at_hand(prompt):
    assert is_about_the_work(prompt)


@each("prompt", re.split(r"[|\n]", ABOUT_THE_STORE))
def test_prompts_that_the_store_may_help_with(prompt):
    assert not is_about_the_work(prompt)


@pytest.mark.parametrize("prompt", re.split(r"[|\n]", WORK.split("\n```")[0])[:6])
def test_such_prompts_recall_nothing_in_a_session_but_are_searched_for_when_typed(facts, prompt):
    fact = facts.tell(prompt, prompt, between(0.95))
    assert facts.recall(prompt, **SESSION).reason is Reason.NO_QUESTION
    typed = facts.recall(prompt)
    assert isinstance(typed, Skipped) or set(fact) <= {row.id for row in typed.messages}


QUESTIONS = {
    "which port?": True,
    "Where is the key": True,
    "is it retained": True,
    "ok and what about Redis": True,
    "wie lange noch": True,
    "pourquoi ça": True,
    "perché no": True,
    "他在哪里": True,
    "I need the plate of the van": True,
    "hi, ich brauche die Nummer von Anna": True,
    "J\u2019ai besoin du code": True,
    "dime la clave": True,
    "告诉我门的密码": True,
    "鍵の場所を教えて": True,
    "兄の住所を探して": True,
    "to whom does the kettle belong": True,
    "for how long is the pass valid": True,
    "auf welchem Regal steht der Honig": True,
    "mit wem fährt Jule": True,
    "de quoi parlait la réunion": True,
    "sur quelle étagère est le miel": True,
    "con quién viaja Inés": True,
    "en qué estante está la miel": True,
    "di chi è la bici verde": True,
    "su quale scaffale sta il miele": True,
    "com quem viaja a Inês": True,
    "em qual prateleira fica o mel": True,
    "bij wie slaapt Jule": True,
    "på vilken hylla står honungen": True,
    "na jakiej półce stoi miód": True,
    "czy Kuba oddał rower": True,
    "на какой полке стоит мёд": True,
    "у кого зелёный велосипед": True,
    "вернул ли Миша велосипед": True,
    "на якій полиці стоїть мед": True,
    "hangi rafta bal var": True,
    "find the name of the beekeeper": True,
    "such mal den Namen des Imkers": True,
    "ricordami il nome dell'apicoltore": True,
    "mi ridici il codice": True,
    "me lembra o nome do apicultor": True,
    "herinner me aan de naam van de imker": True,
    "podaj adres pszczelarza": True,
    "напомните имя пасечника": True,
    "мне нужен номер пасечника": True,
    "нагадай адресу пасічника": True,
    "I need you to run it": False,
    "tell me once the upload has ended": False,
    "remind me to rotate the logs": False,
    "sag mir Bescheid, sobald es läuft": False,
    "ich brauche das als Liste": False,
    "dime cuando acabes": False,
    "我需要你重启服务": False,
    "测试完成后告诉我": False,
    "終わったら教えて": False,
    "다 되면 알려줘": False,
    "in which case, take the other one": False,
    "find the bug and fix it": False,
    "find all copies, then remove them": False,
    "such a long day": False,
    "cherche l'erreur et corrige-la": False,
    "busca todas las copias y bórralas": False,
    "cerca l'errore": False,
    "найди копии и удали их": False,
    "バグを見つけて": False,
    "rappelle-moi d'arroser les plantes": False,
    "recuérdame regar las plantas": False,
    "ricordami di annaffiare le piante": False,
    "me lembra de regar as plantas": False,
    "herinner me eraan de planten water te geven": False,
    "przypomnij mi podlać kwiaty": False,
    "напомни полить цветы": False,
    "дай знать, как закончишь": False,
    "por favor, cierra la ventana": False,
    "para que funcione, cierra la ventana": False,
    "pour que ça marche, ferme la fenêtre": False,
    "ne ferme pas la fenêtre": False,
    "we need a new button": False,
    "pin the version": False,
    "the version is pinned": False,
    "mach das Fenster zu": False,
}


@each("text, asks", QUESTIONS.items())
def test_questions_need_no_question_mark(text, asks):
    assert is_question(text) is asks
