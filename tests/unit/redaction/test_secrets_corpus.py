"""Detection rates of synthetic secrets, and of look-alikes.

The lines of the corpus are templates, so that no scanner reports these files: ``⟦A36⟧`` are
36 random characters of a set, ``«…»`` marks the secret, and ``¶`` is a line break.
"""

import base64
import random
import re
import string
from pathlib import Path

from each import each

from reservoir_cli.redaction import without_secrets
from reservoir_cli.redaction.find_secrets import find

CORPUS = Path(__file__).parent / "secrets_corpus"
SETS = {
    "A": string.ascii_letters + string.digits,
    "L": string.ascii_letters,
    "U": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "d": string.digits,
    "h": string.hexdigits[:16],
    "H": string.hexdigits[-6:] + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "w": string.ascii_letters + string.digits + "-_",
}


def lines(name: str, seed: int = 0) -> list[str]:
    """Return the lines of a file of the corpus with random characters in place of templates."""
    generator = random.Random(seed)

    def draw(shape: re.Match[str]) -> str:
        return "".join(generator.choices(SETS[shape[1]], k=int(shape[2])))

    shapes = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [
        re.sub(r"⟦(\w)(\d+)⟧", draw, shape).replace("¶", "\n")
        for shape in shapes
        if shape and not shape.startswith("# ")
    ]


def is_missed(line: str) -> bool:
    """Return whether the marked secret of a line, or a part of it, is left after redaction."""
    secrets = re.findall("«(.*?)»", line, re.DOTALL)
    masked, _ = without_secrets(line.replace("«", "").replace("»", ""))
    return any(secret in masked for secret in secrets)


@each("seed", range(5))
def test_nearly_all_secrets_of_the_corpus_are_found(seed):
    secrets = lines("secrets.txt", seed)
    assert len(secrets) >= 200
    assert len([line for line in secrets if is_missed(line)]) <= 0.02 * len(secrets)


@each("seed", range(5))
def test_few_look_alikes_of_the_corpus_are_reported(seed):
    lookalikes = lines("lookalikes.txt", seed)
    assert len(lookalikes) >= 760
    assert len([line for line in lookalikes if find(line)]) <= 0.005 * len(lookalikes)


def test_few_lines_of_base64_announce_a_secret_on_the_next():
    generator = random.Random(0)
    found = []
    for _ in range(100):
        text = base64.encodebytes(generator.randbytes(1_200)).decode()
        found += find(f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n")
    assert len(found) <= 5, len(found)  # 2,200 lines


@each(
    "text",
    [
        "my pw from before\n{}",
        "guest/pw | {}",
        "the old secret, tell nobody, is\n{}",
        "Token below\n{}",
        "pw1 (old) = {}",
    ],
)
def test_a_word_still_announces_what_looks_like_a_password(text):
    password = "kX9" + "mQ2vLt7Rb4"
    assert password not in without_secrets(text.format(password))[0]
