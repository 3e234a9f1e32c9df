"""Unsetting keys and whole tables keeps every comment that belongs to something else."""

import tomllib

import pytest
from each import each

from reservoir_cli.errors import UsageError
from reservoir_cli.settings import edit_settings_file
from reservoir_cli.util import edit_toml

TABLES = """\
# top
[partitions.a] # header of a
fill = true # fill of a
# more about a

# above b
[partitions.b]
fill = false

# above the model
[models.gpt-4]
reserve_tokens = 3
# last line
"""
DOTTED = """\
# top
partitions.a.fill = true
# above the multiplier
partitions.a.token_multiplier = 1.5
# above b
partitions.b.fill = true
"""
ARRAYS = """\
# top
[[foo]]
x = 1
# above the second
[[foo]]
x = \"\"\"
# text
[b]\"\"\"

# above b
[partitions.b]
fill = true
"""
OUT_OF_ORDER = """\
[partitions.a]
fill = true
# above the model
[models.gpt-4]
reserve_tokens = 3
# above b
[partitions.b]
fill = true
# end
"""
INLINE = "partitions = { a = { fill = true }, b = { fill = false } } # both\n# above\nfill = true\n"


@each(
    ("text", "key", "after"),
    [
        (TABLES, "partitions.a", "# top\n\n" + TABLES[TABLES.index("# above b") :]),
        (TABLES, "partitions.a.fill", TABLES.replace("fill = true # fill of a\n", "")),
        (TABLES, "partitions.b.fill", TABLES.replace("fill = false\n", "")),
        (TABLES, "partitions.b", TABLES.replace("[partitions.b]\nfill = false\n", "")),
        (TABLES, "models", TABLES.replace("[models.gpt-4]\nreserve_tokens = 3\n", "")),
        (DOTTED, "partitions.a.fill", DOTTED.replace("partitions.a.fill = true\n", "")),
        (
            DOTTED,
            "partitions.a",
            "# top\n# above the multiplier\n# above b\npartitions.b.fill = true\n",
        ),
        (ARRAYS, "foo", "# top\n\n# above b\n[partitions.b]\nfill = true\n"),
        (
            OUT_OF_ORDER,
            "partitions",
            "# above the model\n[models.gpt-4]\nreserve_tokens = 3\n# above b\n# end\n",
        ),
        (INLINE, "partitions.a", INLINE.replace("a = { fill = true },", "")),
    ],
)
def test_unsetting_keeps_the_comments_of_all_else(file, text, key, after):
    for line_end in ("\n", "\r\n"):
        file.write_bytes(text.replace("\n", line_end).encode())
        edit_settings_file.edit(file, {key: None})
        assert file.read_bytes().decode() == after.replace("\n", line_end)


def test_the_only_table_of_a_file_is_removed(file):
    file.write_text("[nonsense]\nx = 1\n")
    edit_settings_file.edit(file, {"nonsense": None})
    assert file.read_text() == ""


def test_a_change_keeps_the_line_endings(file):
    file.write_bytes(b"# mine\r\nfill = true\r\n")
    edit_settings_file.edit(file, {"fill": "off", "partitions.p.fill": "on"})
    text = file.read_bytes().decode()
    assert "# mine\r\n" in text
    assert text.count("\n") == text.count("\r\n")
    assert tomllib.loads(text) == {"fill": False, "partitions": {"p": {"fill": True}}}


@pytest.mark.parametrize("text", ["a = [\n1\n", TABLES])
def test_a_key_that_is_not_in_the_file_changes_nothing(file, text):
    file.write_text(text)
    with pytest.raises(UsageError):
        edit_settings_file.edit(file, {"nonsense": None})
    assert file.read_text() == text


def test_lines_are_split_as_toml_splits_them():
    text = "# a\u2028b\nx = 'c\x85d' # e\x0bf\n[t]\ny = 1\n".replace("\x0b", "\u2029")
    assert edit_toml.remove(text, ["t"]) == text.partition("[t]")[0]
