import random
import re
import string
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from each import each
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reservoir_cli.messages import Message, Role, StoredMessage, ToolCall
from reservoir_cli.redaction import Mode, Redactor, describe_secrets, find_secrets, without_secrets
from reservoir_cli.redaction.find_secrets import find
from reservoir_cli.redaction.secrets_by_surroundings import GUESSES
from reservoir_cli.redaction.token_kinds import SHORTEST_TOKEN

#: Secrets that detect-secrets finds by pattern and we do not, with reasons.
OTHERWISE = {
    "IPPublicDetector": "an address is no secret",
    "PrivateKeyDetector": "it takes the first line for the key; we want the key",
    "CloudantDetector": "found by its name, as all values of names for secrets",
    "IbmCloudIamDetector": "as above",
    "IbmCosHmacDetector": "as above",
    "SoftlayerDetector": "as above",
    "ArtifactoryDetector": "it takes words of ten letters; the keys have 73",
    "BasicAuthDetector": "it takes placeholders too",
    "AWSKeyDetector": "its second pattern takes placeholders too; the first is held below",
    "JwtTokenDetector": "it takes tokens of four letters",
    "NpmDetector": "it takes the rest of the line with the token",
    "SlackDetector": "it takes ends of one letter",
    "TwilioKeyDetector": "it takes any letters; the keys are hexadecimal",
}
DETECTED = [
    pytest.param(pattern, id=f"{title}-{number}")
    for title, plugin in sorted(get_mapping_from_secret_type_to_class().items())
    if issubclass(plugin, RegexBasedDetector) and plugin.__name__ not in OTHERWISE
    for number, pattern in enumerate(plugin().denylist)
]
AKIA = r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}"


def ascii_of(pattern: str | re.Pattern[str]) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii"))


@pytest.mark.parametrize("pattern", [*DETECTED, pytest.param(re.compile(AKIA), id="AWS")])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_secrets_that_detect_secrets_finds_by_pattern_are_found(pattern, data):
    secret = data.draw(ascii_of(pattern))
    assume(len(secret) >= SHORTEST_TOKEN)
    text = f"it is {secret} , keep it"
    masked, kinds = without_secrets(text)
    assert kinds
    assert secret not in masked


@each("rule", GUESSES)
def test_rules_for_lower_case_have_only_lower_case(rule):
    assert not re.search(r"(?<!\\)[A-Z]", rule.pattern)


def random_text(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.Random(count).choices(letters, k=count))


KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{random_text(64)}\n-----END OPENSSH PRIVATE KEY-----"
FOUND = {
    f"export OPENAI_API_KEY=sk-proj-{random_text(48)}": (
        "openai-key",
        f"sk-proj-{random_text(48)}",
    ),
    f"use sk-ant-api03-{random_text(90)}.": ("anthropic-key", f"sk-ant-api03-{random_text(90)}"),
    "DB_PASSWORD=hunter2xyz": ("secret-value", "hunter2xyz"),
    'password: "S3cr3t-Pw"': ("secret-value", "S3cr3t-Pw"),
    '{"command": "export API_TOKEN=\\"a1B2c3D4e5\\""}': ("secret-value", "a1B2c3D4e5"),
    "client_secret => 8Q~abcDEF123": ("secret-value", "8Q~abcDEF123"),
    "mysql -u root --password=Gr33nTea!": ("secret-value", "Gr33nTea!"),
    'password: "kettle seven 9 barn"': ("secret-value", "kettle seven 9 barn"),
    "db_password = 'Amber Moon 2019!'": ("secret-value", "Amber Moon 2019!"),
    "Passwort: Geheim123": ("secret-value", "Geheim123"),
    "İstanbul: API_KEY=Geheim123": ("secret-value", "Geheim123"),
    "postgres://app:Tr0ub4dor@db:5432/prod": ("password-in-url", "Tr0ub4dor"),
    "mysql://root:!Zq7kk$P+w:9@db/x": ("password-in-url", "!Zq7kk$P+w:9"),
    "postgresql://app:hun@ter22@db.example.org/x": ("password-in-url", "hun@ter22"),
    "https://me:a1@@b2@h?mail=you@example.org": ("password-in-url", "a1@@b2"),
    "export TOKEN=q8Zk2mX0vLs4": ("secret-value", "q8Zk2mX0vLs4"),
    "pw: Zebra99hunter": ("secret-value", "Zebra99hunter"),
    "- **Password:** `Zebra99hunter`": ("secret-value", "Zebra99hunter"),
    "**API Key**: q9W8e7R6t5Y4": ("secret-value", "q9W8e7R6t5Y4"),
    "**Token:** `q8Zk2mX0vLs4`": ("password-in-words", "q8Zk2mX0vLs4"),
    "the password is **Zebra99hunter**": ("password-in-words", "Zebra99hunter**"),
    "curl -u admin:S3cr3tPw99 http://host/": ("password-option", "S3cr3tPw99"),
    "mysql -uroot -pS3cr3tPw99": ("password-option", "S3cr3tPw99"),
    "mysql -pS3cr3tPw99 shop": ("password-option", "S3cr3tPw99"),
    "docker login -p Gh7kQ2mZ9xVb": ("password-option", "Gh7kQ2mZ9xVb"),
    "sshpass -p 'P4ssw0rd!' ssh host": ("password-option", "P4ssw0rd!"),
    "the password is Tr0ub4dor&3 by the way": ("password-in-words", "Tr0ub4dor&3"),
    "CREATE USER shop WITH PASSWORD 'Tr0ub4dor&3';": ("password-in-sql", "Tr0ub4dor&3"),
    "CREATE USER a IDENTIFIED BY 'Zebra99hunter'": ("password-in-sql", "Zebra99hunter"),
    f"stripe.api_key = sk_test_{random_text(24)}": ("stripe-key", f"sk_test_{random_text(24)}"),
    "-H 'Authorization: Bearer a1b2c3d4e5f6g7h8'": ("authorization", "a1b2c3d4e5f6g7h8"),
    f"aws_secret_access_key = {random_text(40)}": ("aws-secret-key", random_text(40)),
    f"here:\n{KEY}\nthanks": ("private-key", KEY),
}


@each("text", FOUND)
def test_secrets_are_found_in_context(text):
    kind, secret = FOUND[text]
    assert [(finding.kind, text[finding.start : finding.end]) for finding in find(text)] == [
        (kind, secret)
    ]
    assert without_secrets(text)[0] == text.replace(secret, f"[redacted:{kind}]")


def test_a_found_secret_is_masked_everywhere_in_the_text():
    text = "password: hunter2Zebra! for postgres://shop:hunter2Zebra!@db/x, yes, hunter2Zebra!"
    assert "hunter2Zebra!" not in without_secrets(text)[0]


def test_a_truncated_private_key_is_masked_to_its_end():
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{random_text(64)}\n{random_text(30)}"
    assert without_secrets(text)[0] == "[redacted:private-key]"


@each(
    "text",
    [
        "the secret is out, and the password is known to all",
        "password: must have 8 characters",
        'password: "Step 2 failed"',
        '"password": "Passwort für dein neues Konto"',
        '"password": "Contraseña de su cuenta nueva"',
        "550e8400-e29b-41d4-a716-446655440000",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "commit 1b2c3d4e5f60718293a4b5c6d7e8f90112233445",
        'integrity="sha512-9f8a7b6c5d4e3f2a1b0c9f8a7b6c5d4e3f2a1b0c9f8a7b6c5d4e3f2a1b0c=="',
        "api_key = os.environ['OPENAI_API_KEY2']",
        "password = get_password(user1)",
        "secret: ${SECRET1}",
        "password: {{ vault_password_2 }}",
        "token_count = 4096tokens",
        "secret_name: app-credentials-2",
        "https://user:password@example.com/",
        "docker run -u 1000:1000 -p 3306 image2",
        "git push upstream -u stable/5.2.x:stable/5.2.x",
        "ssh -p 2222 host2 && mkdir -p a/b1c2",
        "token = next_token1()",
        "postgres://USER:your_password1@host/db",
        "password = settings.db.password2",
        "",
    ],
)
def test_words_hashes_and_names_of_secrets_are_not_masked(text):
    assert find(text) == []


GITHUB = f"ghp_{random_text(36)}"
#: Texts that are secrets on their own, and texts that become one next to another text.
PARTS = (
    "",
    "text",
    "password:",
    "PASSWORD=",
    "hunter2xyz9",
    "value: a1b2c3d4e5",
    f"key {GITHUB}",
    GITHUB[:20],
    "the password is",
    "aws_secret",
    random_text(40),
    "Authorization: Bearer",
    "login me password",
    KEY[:60],
    "://u",
    ":c3d4e5@h",
)


@each(
    "text",
    [
        f"https://{GITHUB}@github.com/a/b",
        f"+{GITHUB}",
        f"-{GITHUB}",
        f"MY_{GITHUB}",
        f'{{"output": "done\\n{GITHUB}\\n"}}',
        f"https://a/?q=%22{GITHUB}%22",
    ],
)
def test_tokens_are_found_after_punctuation_and_escapes(text):
    assert without_secrets(text)[0] == text.replace(GITHUB, "[redacted:github-token]")


@each("value", ["a::" * 66, "a._-" * 50, "aB1" * 66, "_" * 200, "a1-" * 66])
def test_long_values_of_odd_words_are_checked_quickly(value):
    assert len(find(f"PASSWORD={value[:199]}!")) <= 1


def scan(message: Message, mode: Mode) -> tuple[Message, Counter[str]]:
    return Redactor(lambda _: mode).scan(message, "p")


def test_names_and_ids_are_scanned_and_ids_stay_distinct():
    calls = tuple(ToolCall(f"call-{GITHUB}{n}", f"run_{GITHUB}", "{}") for n in "ab")
    message = Message(
        "assistant", "x", name=f"bot {GITHUB}", tool_calls=calls, source_id=GITHUB, trace_id=GITHUB
    )
    clean, counts = scan(message, Mode.REMOVE)
    assert counts == {"github-token": 7}
    assert GITHUB not in repr(clean)
    assert len({call.id for call in clean.tool_calls}) == 2
    assert clean.source_id == clean.trace_id
    assert scan(clean, Mode.REMOVE) == (clean, {})


def test_a_found_secret_is_masked_everywhere_in_the_message():
    calls = (ToolCall("1", "run", '{"command": "login hunter2Zebra"}'),)
    tags = ("a", "hunter2Zebra")
    message = Message(
        "assistant", "DB_PASSWORD=hunter2Zebra", name="hunter2Zebra", tool_calls=calls, tags=tags
    )
    clean, counts = scan(message, Mode.REMOVE)
    assert "hunter2Zebra" not in repr(clean)
    assert counts == {"secret-value": 4}
    assert clean.tags == ("a", "[redacted:secret-value]")
    assert scan(clean, Mode.REMOVE) == (clean, {})


def test_an_id_is_replaced_by_its_own_text_alone():
    message = Message("user", "DB_PASSWORD=hunter2Zebra", conversation_id="about hunter2Zebra")
    assert scan(message, Mode.REMOVE)[0].conversation_id == "about hunter2Zebra"


@given(st.lists(st.sampled_from(PARTS), min_size=4, max_size=4))
def test_texts_of_a_message_are_scanned_separately(texts):
    content, arguments, name, trace_id = texts
    call = ToolCall("1", "run", arguments)
    message = Message("assistant", content, name=name, tool_calls=(call,), trace_id=trace_id)
    clean, counts = scan(message, Mode.REMOVE)
    assert counts.total() == sum(len(find(text)) for text in texts)
    assert clean.content == without_secrets(content)[0]
    assert clean.tool_calls[0].arguments == without_secrets(arguments)[0]


def test_a_clean_message_is_scanned_again_after_any_change():
    redactor = Redactor({"shown": "mark", "hidden": "mask"}.__getitem__)
    message = StoredMessage(
        1, "t", None, "hidden", "i", Role.USER, "No secret.", None, (), None,
        datetime(2026, 5, 9, tzinfo=UTC), "test", "1", 3,
    )  # fmt: skip
    for _ in range(2):
        assert redactor.message(message) is message
    for field in ("content", "trace_id", "name"):
        leaking = replace(message, **{field: f"key {GITHUB}"})
        for _ in range(2):
            assert GITHUB not in repr(redactor.message(leaking))
        elsewhere = replace(leaking, partition="shown")
        assert redactor.message(elsewhere) is elsewhere


def test_long_texts_are_scanned_to_their_end():
    secrets = [f"ghp_{random_text(36)}", f"PASSWORD={random_text(20)}"]
    text = ("word " * 250_000).join(["", *secrets])
    assert [finding.kind for finding in find(text)] == ["github-token", "secret-value"]


def test_a_secret_across_a_block_boundary_is_found_whole(monkeypatch):
    monkeypatch.setattr(find_secrets, "_BLOCK", 2_000)
    monkeypatch.setattr(find_secrets, "_OVERLAP", 500)
    for before in (*range(1_700, 2_050, 2), *range(1_490, 1_510, 2), *range(2_490, 2_510, 2)):
        for secret in (f"ghp_{random_text(200)}", f"PASSWORD={random_text(150)}"):
            text = f"{'x ' * (before // 2)}{secret} {'y ' * 1_500}"
            [finding] = find(text)
            assert text[finding.start : finding.end] == secret.removeprefix("PASSWORD="), before


def test_a_key_does_not_begin_where_another_text_names_its_first_line():
    text = f"A file with -----BEGIN PRIVATE KEY----- in it, such as this one:\n{KEY}\n"
    assert without_secrets(text)[0] == text.replace(KEY, "[redacted:private-key]")


def test_tool_calls_are_scanned_and_stay_valid_json():
    call = ToolCall("1", "Bash", '{"command": "PASSWORD=\\"hunter2xyz\\" ./run"}')
    message = Message("assistant", "I run it.", tool_calls=(call,))
    clean, counts = scan(message, Mode.REMOVE)
    assert dict(counts) == {"secret-value": 1}
    assert clean.tool_calls[0].arguments == (
        '{"command": "PASSWORD=\\"[redacted:secret-value]\\" ./run"}'
    )
    marked, _ = scan(message, Mode.MARK)
    assert marked.tool_calls == message.tool_calls
    assert marked.secrets == ("secret-value",)
    assert scan(message, Mode.OFF) == (message, {})


def test_found_secrets_are_counted_by_kind():
    _, counts = scan(Message("user", "PASSWORD=a1b2c3 PWD=b2c3d4 a://u:c3d4e5@h"), Mode.MARK)
    assert describe_secrets(counts) == "3 secrets (password-in-url, secret-value 2)"


def test_replacements_are_not_found_as_secrets():
    masked, _ = without_secrets("".join(f"{text}\n" for text in FOUND))
    assert without_secrets(masked) == (masked, [])


@each("hidden", ["\u200b", "\u2060", "\ufeff", "\u200d", "\u202e", "\U000e0041"])
def test_invisible_characters_hide_no_secret(hidden):
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    around = "👩\u200d💻 \u0645\u06cc\u200c\u062e\u0648: {}, ❤\ufe0f"
    for position in (3, 12, 40, len(key) - 1):
        text = around.format(key[:position] + 2 * hidden + key[position:])
        assert without_secrets(text) == (around.format("[redacted:openai-key]"), ["openai-key"])
    password, kinds = without_secrets(f"password: hun{hidden}ter2xyZ99")
    assert (password, kinds) == ("password: [redacted:secret-value]", ["secret-value"])


@pytest.mark.parametrize("escape", ["\x1b", "\\u001b"])
def test_colours_hide_no_secret(escape):
    red, plain = f"{escape}[1;31m", f"{escape}[0m"
    for coloured in (f"{red}{GITHUB}", f"{GITHUB[:9]}{plain}{GITHUB[9:]}"):
        text = f"token {coloured}{plain}, {red}done{plain}"
        assert without_secrets(text)[0].endswith(
            f"[redacted:github-token]{plain}, {red}done{plain}"
        )
        assert GITHUB[9:] not in without_secrets(text)[0]
    password, kinds = without_secrets(f"{red}PASSWORD{plain}={red}hunter2xyZ99{plain}")
    assert (password, kinds) == (
        f"{red}PASSWORD{plain}={red}[redacted:secret-value]{plain}",
        ["secret-value"],
    )


@pytest.mark.parametrize("before", ["token ", "GITHUB_TOKEN=3D", "it is at the end of a line: "])
def test_a_token_that_an_email_wraps_is_masked_to_its_end(before):
    for end in ("\n", "\r\n"):
        text = f"{before}{GITHUB[:17]}={end}{GITHUB[17:]} and=20more"
        masked, kinds = without_secrets(text)
        assert (masked, kinds) == (f"{before}[redacted:github-token] and=20more", ["github-token"])


def test_the_name_after_a_padded_value_is_no_part_of_it():
    value = f"{random_text(42)}7="
    masked, _ = without_secrets(f"API_KEY={value}\nREGION=eu-central-1\n")
    assert masked == "API_KEY=[redacted:secret-value]\nREGION=eu-central-1\n"


def test_an_invisible_character_separates_a_secret_from_a_word():
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    assert without_secrets(f"foo\u200b{key}")[0] == "foo\u200b[redacted:openai-key]"
