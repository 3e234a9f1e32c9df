"""The title of a document is in its front matter, its first heading or its first line."""

from each import each

from reservoir_cli.server.web.read_conversations import split_title


@each(
    ("text", "title", "rest"),
    [
        ("# Bread\n\nflour", "Bread", "flour"),
        ("\n\n## Bread ##\r\nflour", "Bread", "flour"),
        ("Bread and water\nflour", "Bread and water", "flour"),
        ("#hashtag first\nx", "#hashtag first", "x"),
        (
            '---\ntitle: "Rye: a start"\ndate: 2026-01-02\n---\n# Rye\nflour',
            "Rye: a start",
            "flour",
        ),
        ("+++\ntitle = 'Rye'\n+++\nflour", "Rye", "flour"),
        ("---\ntags: [a]\n---\n\n# Rye\nflour", "Rye", "flour"),
        ("---\ntitle:\n---\nflour", "flour", ""),
        ("# \n", "Untitled document", ""),
        ("", "Untitled document", ""),
    ],
)
def test_the_title_of_a_document(text, title, rest):
    found, after = split_title(text)
    assert (found, after.strip()) == (title, rest)
