"""Words that need not be scanned for secrets, which are nearly all words of prose."""

from each import each

from reservoir_cli.redaction import plain_words
from reservoir_cli.redaction.find_secrets import find
from reservoir_cli.redaction.plain_words import words_to_scan


@each(
    "text",
    [
        "",
        "We moved the cache to the other host last week, because it was (too) slow.",
        "It's a state-of-the-art idea; 3.5% of 1,200 users agreed on 2026-05-09 – and “liked” it.",
        "The passing compass of a monkey, a capital pinned by the secretary & incredible authors",
        "Das Gerät läuft wieder, außerdem ist die Straße frei.",
        "one and/or two, at 10:30, for the 2nd time [1]",
    ],
)
def test_nothing_in_prose_is_scanned(text):
    for _ in range(2):
        assert words_to_scan(text) == []


@each(
    ("text", "scanned"),
    [
        ("the password is correct horse battery staple", ["password"]),
        ("mein Kennwort: 4711 oder so", ["Kennwort:"]),
        ("my pin is 4711", ["pin"]),
        ("use kX7#wQz9 for it", ["kX7#wQz9"]),
        ("take zqXvbKwJtR then", ["zqXvbKwJtR"]),
        ("run --login or a=b", ["--login", "a=b"]),
        ("at https://example.org now", ["https://example.org"]),
        ("パスワードは abc です", ["パスワードは"]),
    ],
)
def test_what_may_be_a_secret_or_announces_one_is_scanned(text, scanned):
    for _ in range(2):
        assert words_to_scan(text) == scanned


@each(
    "text",
    [
        "Mật khẩu là {}",
        "mật khẩu: {}",
        "رمز عبور: {}",
        "کلمه رمز عبور {}",
        "voici mes accès : marie / {}",
        "clé privée : {}",
    ],
)
def test_a_name_of_two_words_announces_a_secret_if_one_of_them_is_plain(text):
    secret = "Quay5521Lantern"
    filled = text.format(secret)
    assert [filled[start:end] for _, start, end in find(filled)] == [secret]


def test_a_repeated_word_is_judged_once(monkeypatch):
    judged, judge = [], plain_words._is_plain

    def count(word):
        judged.append(word)
        return judge(word)

    monkeypatch.setattr(plain_words, "_is_plain", count)
    assert words_to_scan("quokka wallaby " * 1_000) == []
    assert sorted(judged) == ["quokka", "wallaby"]
