"""What benchmarks read: LoCoMo's form, and the long answers."""

import json
from datetime import timedelta

import locomo
import long_answers
import pytest
import session_gaps

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
def talks(tmp_path):
    file = tmp_path / "locomo.json"
    file.write_text(
        json.dumps([{"sample_id": "c", "conversation": TALK, "qa": ASKED}]), encoding="utf-8"
    )
    return locomo.read(file)


def test_locomo_messages_keep_order_roles_captions_and_times(talks):
    messages = talks[0]["c"]
    assert [each.content for each in messages] == ["Hello", "Look! [image: a moth]", "Again"]
    assert [each.role for each in messages] == ["user", "assistant", "user"]
    assert messages[1].created_at - messages[0].created_at == timedelta(seconds=30)


def test_locomo_questions_lose_names_and_need_evidence_that_exists(talks):
    assert [each.text for each in talks[1]] == ["What is moth, ?"]
    assert talks[1][0].evidence == {"D1:2"}


def test_interleaving_keeps_the_messages_asked_about_and_adds_others_between(talks):
    mixed = session_gaps.interleaved({"c": talks[0]["c"], "d": talks[0]["c"]})["c"]
    assert mixed[:3] == talks[0]["c"]
    ordered = sorted(mixed, key=lambda each: each.created_at)
    assert [each.source_id for each in ordered[:4]] == ["D1:1", "other D1:1", "D1:2", "other D1:2"]
    assert {each.conversation_id for each in session_gaps.without_ids({"c": mixed})["c"]} == {None}


def test_long_answers_are_long_many_and_alternate():
    messages, asked = long_answers.read()
    answers = [each for each in messages if str(each.role) == "assistant"]
    assert len(answers) >= 60
    assert min(len(each.content) for each in answers) > 1_200
    assert len(asked) >= 60
    for conversation in {each.conversation_id for each in messages}:
        own = [each for each in messages if each.conversation_id == conversation]
        assert [str(each.role) for each in own] == ["user", "assistant"] * (len(own) // 2)
        assert own == sorted(own, key=lambda each: each.created_at)


def test_a_good_part_of_the_evidence_stands_deep_inside():
    _, asked = long_answers.read()
    assert sum(each.depth > 2 / 3 for each in asked) >= len(asked) / 4


def test_a_quotation_that_nobody_said_is_refused():
    messages, _ = long_answers.read()
    with pytest.raises(ValueError, match="0 messages"):
        long_answers._asked({"question": "?", "evidence": ["never said"]}, messages)
