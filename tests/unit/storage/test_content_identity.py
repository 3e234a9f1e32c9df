"""The content by which a message is recognised, whichever program it came from."""

from each import each

from reservoir_cli.messages import Message
from reservoir_cli.storage.content_identity import parts_of, unquote


@each(
    ("prompt", "words"),
    [
        ('"why did we drop it?"', "why did we drop it?"),
        (' "two\nlines"\n', "two\nlines"),
        (r'"he said \"no\" twice"', 'he said "no" twice'),
        ('"word"', '"word"'),
        ('"one thing" and "another thing"', '"one thing" and "another thing"'),
        ('why "this one"?', 'why "this one"?'),
        ('"', '"'),
        ('""', '""'),
    ],
)
def test_quotation_marks_around_all_words_of_a_prompt_are_taken_off(prompt, words):
    assert unquote(prompt) == words
    assert parts_of(Message("user", prompt)) == parts_of(Message("user", words))


def test_those_of_a_reply_are_its_own():
    quoted, plain = Message("assistant", '"two words"'), Message("assistant", "two words")
    assert parts_of(quoted) != parts_of(plain)
