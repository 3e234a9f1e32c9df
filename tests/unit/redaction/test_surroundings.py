"""Detection rates of every kind of token, and of passwords and keys in many surroundings.

Every secret is drawn at random when the test runs, so that no scanner reports these files.
"""

import random
import re
import string
from pathlib import Path

import pytest
from patterns import draw_match

from reservoir_cli.redaction import without_secrets
from reservoir_cli.redaction.token_kinds import SHORTEST_TOKEN, TokenKind, token_kinds

SURROUNDINGS = Path(__file__).parent / "secrets_corpus" / "surroundings.txt"
CONSONANTS = "bcdfghjklmnpqrstvwxz"
SIGNS = "#%&$@"
DRAWN = {
    "A": (string.ascii_letters + string.digits, (16, 24, 32)),
    "H": (string.hexdigits[:16], (32, 40, 64)),
    "R": (string.ascii_letters, (12, 14, 18)),
}
PHRASES = (
    "lantern7 with pepper 31",
    "Close the gate 58 slowly",
    "seven owls eat 4 apples at night",
)


def mixed(generator: random.Random, count: int) -> str:
    """Return letters of which no two neighbours have the same case."""
    letters = generator.choices(CONSONANTS, k=count)
    return "".join(x.upper() if n % 2 else x for n, x in enumerate(letters))


def password(generator: random.Random) -> str:
    words = generator.sample(["Kupfer", "otter", "Brook", "lantern", "Vent", "quartz", "Ember"], 2)
    return generator.choice("-._!+").join(words) + str(generator.randint(1000, 9999))[: len(words)]


def draw(shape: str, generator: random.Random) -> str:
    """Return a secret of a shape that the file of surroundings names."""
    if shape == "P":
        return generator.choice([password(generator), mixed(generator, 9) + "7"])
    if shape == "L":
        return mixed(generator, generator.randint(10, 16))
    if shape == "S":
        return generator.choice(SIGNS) + mixed(generator, 8) + str(generator.randint(10, 99))
    if shape == "N":
        return "".join(generator.choices("46789", k=generator.choice((4, 6))))
    if shape == "B":
        base64 = string.ascii_letters + string.digits
        return "".join(generator.choices(base64, k=118)) + "7="
    if shape == "W":
        return generator.choice(PHRASES)
    if shape in DRAWN:
        letters, counts = DRAWN[shape]
        return "".join(generator.choices(letters, k=generator.choice(counts)))
    if shape == "K":
        letters = generator.choice([string.hexdigits[:16], string.ascii_letters + string.digits])
        return "".join(generator.choices(letters, k=generator.randint(32, 44))) + "9"
    common = [kind for kind in token_kinds() if kind.literals[0].endswith(("_", "-"))]
    return draw_token(generator.choice(common), generator)


def draw_token(kind: TokenKind, generator: random.Random) -> str:
    return draw_match(kind.pattern, generator)


def filled(template: str, generator: random.Random) -> tuple[str, list[str]]:
    """Return a text with the secrets of a template, and the secrets."""
    secrets: list[str] = []

    def fill(shape: re.Match[str]) -> str:
        secrets.append(draw(shape[1], generator))
        return secrets[-1]

    return re.sub("«(.)»", fill, template).replace("¶", "\n"), secrets


def templates() -> list[str]:
    lines = SURROUNDINGS.read_text("utf-8").splitlines()
    return [line for line in lines if "«" in line and not line.startswith("# ")]


def leaks(text: str, secrets: list[str]) -> bool:
    """Return whether a secret, or half of one, is left after redaction."""
    masked, _ = without_secrets(text)
    halves = [half for x in secrets for half in (x[: len(x) // 2], x[len(x) // 2 :])]
    return any(half in masked for half in halves if len(half) > 3) or any(
        secret in masked for secret in secrets
    )


def test_nearly_all_secrets_are_found_in_all_surroundings():
    generator = random.Random(43)
    cases = [(line, *filled(line, generator)) for line in templates() for _ in range(3)]
    missed = [(line, text) for line, text, secrets in cases if leaks(text, secrets)]
    share = 1 - len(missed) / len(cases)
    print(f"{len(cases)} secrets in {len(templates())} surroundings: {share:.1%} found")
    assert len(templates()) >= 700
    assert share >= 0.96, "\n".join(sorted({line for line, _ in missed}))


@pytest.mark.parametrize("around", ["it is {} , keep it", "x={}\n", '{{"a":"{}\\n"}}', "({})"])
def test_a_token_of_every_kind_is_found_to_its_end(around):
    generator = random.Random(7)
    kinds = token_kinds()
    assert len({kind.kind for kind in kinds}) >= 150
    for kind in kinds:
        token = draw_token(kind, generator)
        assert not leaks(around.format(token), [token]), kind
        assert len(token) >= SHORTEST_TOKEN, kind
        assert any(
            re.search(literal, token) if kind.regular else literal in token
            for literal in kind.literals
        ), kind
        assert "." in kind.source, kind


def test_a_quoted_value_with_blanks_is_hidden_to_its_end():
    value = "kX9 mQ2 vLt7"
    for line in (
        f'STORE_PASSWORD="{value}"',
        f"export PGPASSWORD='{value}'",
        f'sshpass -p "{value}" ssh web',
        f"mysql -u app -p'{value}' shop",
        f'docker login -u app -p "{value}"',
        f'curl -u "app:{value}" https://files.example.org',
    ):
        assert not leaks(line, value.split()), line
    for line in (
        'password: "Step 2 failed"',
        'curl -u "app:see the notes" https://files.example.org',
        'title = "B2B sales of H2O bottles"',
    ):
        assert leaks(line, [line]), line
