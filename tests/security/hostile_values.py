"""Hostile words, texts and values for commands, messages and settings."""

from hypothesis import strategies as st

ESCAPES = (
    "\x1b[31m",
    "\x1b]0;owned\x07",
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\x9d0;owned\x9c",
    "\x90q\x9c",
    "\x08\x08\x08",
    "\r",
    "\x7f",
    "\u202eesrever\u202c",
    "\u2066isolated\u2069",
    # every other control of directions, separator of lines, hidden operator, annotation and tag
    *("\x85", "\u061c", "\u180e", "\u200e\u200f", "\u2028", "\u2029", "\u202a\u202b\u202d"),
    *("\u2060\u2061\u2064", "\u2067\u2068", "\u206a\u206f", "\ufeff", "\ufff9a\ufffab\ufffb"),
    *("\U0001d173\U0001d17a", "\U000e0001\U000e0041\U000e007f"),
)
#: Words that would leave a statement of SQL or a pattern, if they were put into one.
STATEMENTS = (
    "'; DROP TABLE messages; --",
    '"; DELETE FROM messages; --',
    "' OR 1=1 --",
    "x' UNION SELECT content FROM messages --",
    "'); ATTACH DATABASE 'stolen.db' AS s; --",
    "default' AND load_extension('x') --",
    *("%", "_", "*", '"', "-a", "; PRAGMA writable_schema = ON;", "\\", "rowid"),
)
#: Words that are syntax in a query of the full-text index.
QUERIES = (
    *('"unclosed', '""', "a AND", "OR", "NOT a", "NEAR(a b, 5)", "text : a", "scope : p", "^a"),
    *("{text scope} : a", "a + b", "a*b*", "((((((((((("),
)
INJECTIONS = (*STATEMENTS, *QUERIES)
NUMBERS = (
    "0",
    "-1",
    "1",
    "500",
    "9" * 19,
    "9" * 30,
    "9" * 5000,
    "1e400",
    "-1e400",
    "nan",
    "inf",
    "0x10",
    "1_000",
    "\u0661\u0662",
    "1.5",
    "7d",
    "9" * 400 + "y",
    "99999-01-01",
    "0000-00-00",
    "1969-12-31",
    "9999-12-31T23:59:59.999999",
    "2026-05-09T25:00",
)
ODD = (
    "",
    " ",
    "-",
    "--",
    "--json",
    "@",
    "@@",
    "@note.md",
    "@absent",
    "@folder",
    "=",
    "a=b",
    "=b",
    "models.x.context_window=1",
    "partitions.a.b=c",
    "models.\x1b.reserve_tokens=5",
    "recommended",
    "openai",
    "user",
    "default",
    "\udcff\udcfe",
    "caf\udce9",
    "\ufeff",
    "\U0010ffff",
    "e" + "\u0301" * 500,
    "word " * 2000,
    "[bold]x[/bold]",
    "{0.__class__}",
    "%s%n%x",
    "$(id)",
    "`id`",
    "a\nb",
    "a\tb",
)
#: Files in the test folder; no path leads out of it.
FILES = (
    "note.md",
    "list.json",
    "rows.jsonl",
    "deep.json",
    "numbers.json",
    "bytes.bin",
    "empty",
    "archive.zip",
    "torn.zip",
    "settings.toml",
    "broken.toml",
    "folder",
    "loop",
    "absent",
    "absent/below",
    "note.md/below",
    "other.db",
    "torn.db",
    "-",
)

_FREE = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
#: Words of a command line.
words = st.one_of(
    st.sampled_from(ESCAPES),
    st.sampled_from(INJECTIONS),
    st.sampled_from(NUMBERS),
    st.sampled_from(ODD),
    _FREE,
)
#: Paths that stay in the folder: without a slash or a home.
paths = st.one_of(
    st.sampled_from(FILES),
    _FREE.map(lambda text: text.replace("/", "_").replace("~", "_").replace("..", "_")[:60]),
    st.sampled_from(ESCAPES).map(lambda text: text.replace("/", "_")),
)
