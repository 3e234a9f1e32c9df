"""Data sets of the benchmarks: the generic format, LoCoMo's, long answers, and the samples."""

import json
from datetime import timedelta

import pytest
import sets

TALK = {
    "speaker_a": "Ada Byron",
    "speaker_b": "Grace",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ada Byron", "dia_id": "D1:1", "text": "Hello"},
        {"speaker": "Grace", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a moth"},
    ],
    "session_2_date_time": "9:00 am on 1 June, 2023",
    "session_2": [{"speaker": "Ada Byron", "dia_id": "D2:1", "text": "Again"}],
}
ASKED = [
    {"question": "What is Grace's moth, Ada?", "category": 4, "evidence": ["D1:2", "D9:9"]},
    {"question": "Is it a trap?", "category": 5, "evidence": ["D1:1"]},
    {"question": "Who knows?", "category": 1, "evidence": ["D9:9"]},
]


@pytest.fixture
def locomo(tmp_path):
    file = tmp_path / "locomo.json"
    file.write_text(
        json.dumps([{"sample_id": "c", "conversation": TALK, "qa": ASKED}]), encoding="utf-8"
    )
    return sets.read("locomo", file)[0]


def test_locomo_messages_keep_order_roles_captions_and_times(locomo):
    messages = locomo.messages
    assert [row.content for row in messages] == ["Hello", "Look! [image: a moth]", "Again"]
    assert [row.role for row in messages] == ["user", "assistant", "user"]
    assert messages[1].created_at - messages[0].created_at == timedelta(seconds=30)


def test_locomo_questions_lose_names_and_need_evidence_that_exists(locomo):
    assert [row.text for row in locomo.questions] == ["What is moth, ?"]
    assert locomo.questions[0].evidence == {"D1:2"}


def test_the_generic_format_is_read(tmp_path):
    message = {"role": "user", "content": "Yes", "at": "2024-01-01T00:00:00+00:00"}
    scope = {
        "name": "s",
        "messages": [{**message, "conv": "c", "trace": "t", "sid": "1"}],
        "questions": [{"q": "Why?", "ev": ["1"], "kind": "k", "hist": [["user", "So"]], "upto": 1}],
    }
    file = tmp_path / "set.json"
    file.write_text(json.dumps([scope]), encoding="utf-8")
    (read,) = sets.read("beam", file)
    assert (read.messages[0].source_id, read.messages[0].conversation_id) == ("1", "c")
    (question,) = read.questions
    assert (question.evidence, question.kind, question.talk) == ({"1"}, "k", (("user", "So"),))
    assert question.stored == 1


def test_long_answers_are_long_many_and_alternate():
    (collection,) = sets.read("long-answers", None)
    messages = collection.messages
    answers = [row for row in messages if str(row.role) == "assistant"]
    assert len(answers) >= 60
    assert min(len(row.content) for row in answers) > 1_200
    assert len(collection.questions) >= 60
    for conversation in {row.conversation_id for row in messages}:
        rows = [row for row in messages if row.conversation_id == conversation]
        assert [str(row.role) for row in rows] == ["user", "assistant"] * (len(rows) // 2)
        assert rows == sorted(rows, key=lambda row: row.created_at)


def test_much_of_the_evidence_is_deep_inside_messages():
    questions = sets.read("long-answers", None)[0].questions
    assert sum(row.kind == "last third" for row in questions) >= len(questions) / 4


def test_an_invented_quotation_is_refused():
    messages = sets.read("long-answers", None)[0].messages
    with pytest.raises(ValueError, match="0 messages"):
        sets._question({"question": "?", "evidence": ["never said"]}, messages)


def test_a_missing_data_set_needs_the_option_data():
    with pytest.raises(SystemExit, match="--data"):
        sets.read("beam", None)


def test_each_question_of_the_diary_names_the_day_of_one_entry():
    (diary,) = sets.read("diary", None)
    assert len({row.content for row in diary.messages}) == len(diary.messages) == 60
    assert len(diary.questions) == 39
    assert {row.kind for row in diary.questions} == {"iso", "english", "dotted", "german"}
    ids = {row.source_id for row in diary.messages}
    assert all(len(row.evidence) == 1 and row.evidence <= ids for row in diary.questions)
