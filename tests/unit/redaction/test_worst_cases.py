"""Texts that are made to slow a rule down: the steps of matching grow with the text, not faster."""

import re

from each import each
from patterns import count_steps

from reservoir_cli.redaction.find_secrets import find
from reservoir_cli.redaction.secrets_by_surroundings import BLOCKS, GUESSES
from reservoir_cli.redaction.token_kinds import token_kinds

SIZE = 600
#: Twice the text may take this many times the steps; a quadratic rule takes four times as many.
MOST_GROWTH = 2.7
PER_RULE = 1_500


def grows_with_its_square(pattern: str, unit: str, begins: str | None) -> bool:
    """Return whether twice the text takes far more than twice the steps."""
    steps = []
    for size in (SIZE, 2 * SIZE):
        text = unit * (size // len(unit) + 1)
        starts = (
            [match.start() for match in re.finditer(re.escape(begins), text)] if begins else None
        )
        steps.append(count_steps(pattern, text, starts))
    return steps[1] > MOST_GROWTH * steps[0] + PER_RULE


def test_the_count_of_steps_tells_a_quadratic_rule():
    assert grows_with_its_square(r"eyJ[\w=-]{8,4000}\.", "eyJ-", None)
    assert not grows_with_its_square(r"eyJ[a-z]{8}\.", "eyJ-", None)


@each("kind", token_kinds())
def test_no_kind_of_token_is_quadratic_on_runs_of_its_own_beginning(kind):
    literal = kind.literals[0] if not kind.regular else ":"
    for unit in (literal, f"{literal}-"):
        begins = literal if kind.begins else None
        assert not grows_with_its_square(kind.pattern, unit, begins), unit


@each("rule", [*BLOCKS, *GUESSES])
def test_no_rule_is_quadratic_on_runs_of_its_own_words(rule):
    for word in rule.words[:2]:
        for unit in (word, f"{word}=", f'{word}: "', f"{word} is "):
            begins = word if rule.from_word else None
            assert not grows_with_its_square(rule.pattern, unit, begins), unit


@each(
    "unit",
    [
        "eyJ-",
        "sk-",
        "password=",
        "password: '\"",
        "key=(",
        "password=(A1#",
        "password='a${",
        'password{"',
        "user: a pass: ",
        "Password:\n",
        "token|",
        "://a:",
        "insert into a (pw) values ('b'), ",
        "insert into a (pw) values ('",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_long_text_of_beginnings_is_scanned_to_its_end(unit):
    text = f"{unit * (100_000 // len(unit))} ghp_{'a1B2' * 9}"
    assert [secret.kind for secret in find(text)][-1:] == ["github-token"]
