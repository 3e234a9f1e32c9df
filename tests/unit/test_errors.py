from each import each

from reservoir_cli.errors import ReservoirError, mask_passwords


@each(
    ("text", "masked"),
    [
        ("postgresql://me:geheim@h/d", "postgresql://me:***@h/d"),
        ("postgres:/me:geheim@h/d", "postgres:/me:***@h/d"),
        ("postgresql://me:a/ge heim?@h/d", "postgresql://me:***@h/d"),
        (
            "cannot read mysql:/me:geheim@h/d: no such file",
            "cannot read mysql:/me:***@h/d: no such file",
        ),
        ("host=h password = 'ge heim' user=me", "host=h password = *** user=me"),
        ("postgresql://me@h:5432/d", "postgresql://me@h:5432/d"),
        ("http://127.0.0.1:8080/v1/@cf/model", "http://127.0.0.1:8080/v1/@cf/model"),
        ("write to me@example.org: it is free", "write to me@example.org: it is free"),
    ],
)
def test_passwords_of_urls_are_masked_once(text, masked):
    assert mask_passwords(text) == masked
    assert mask_passwords(masked) == masked
    error = ReservoirError(text, hint=text)
    assert (str(error), error.message, error.hint) == (masked, masked, masked)


def test_a_masked_url_in_quotes_stays_as_it_is():
    command = "reservoir --db 'postgresql://h/d?password=***' view"
    assert mask_passwords(command) == command
