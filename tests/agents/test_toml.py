"""Edit TOML in place, keeping comments, order and line ends of everything else."""

import tomllib

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reservoir_cli.agents.connect import toml

PATH = ("mcp_servers", "reservoir")
ENTRY = {"command": "/usr/bin/reservoir", "args": ["mcp", "-p", 'a "b" \\ \x7f ü']}
#: The same examples in every run, however slow the machine is.
same = settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
PARTS = (
    '# mine\nmodel = "m" # the best\n',
    "\n\n",
    "[mcp_servers]\n",
    '[mcp_servers.other]\ncommand = "x"\nargs = [\n  "a",\n  "[mcp_servers.reservoir]",\n]\n',
    '[mcp_servers.other.env]\nA = "1"\n\n',
    '[projects."/x y"]\n# trusted\ntrust_level = "trusted"\n',
    "[[things]]\na = 1\n\n[[things]]\na = 2\n",
    '[text]\na = """\n[mcp_servers.reservoir]\n"""\n',
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a file with parts in any order."""
    parts = draw(st.lists(st.sampled_from(PARTS[1:]), unique=True))
    text = (PARTS[0] if draw(st.booleans()) else "") + "".join(parts)
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


@same
@given(texts().filter(valid))
def test_adding_and_removing_a_table_changes_no_other_byte(text):
    added = toml.assign(text, PATH, ENTRY)
    before = tomllib.loads(text)
    assert tomllib.loads(added) == {
        **before,
        "mcp_servers": {**before.get("mcp_servers", {}), "reservoir": ENTRY},
    }
    assert added.startswith(text)
    removed = toml.remove(added, PATH)
    assert removed == text


@same
@given(texts().filter(valid))
def test_an_argument_is_replaced_in_its_place(text):
    added = toml.assign(text, PATH, ENTRY)
    changed = toml.assign(added, (*PATH, "args"), ["mcp"])
    assert tomllib.loads(changed)["mcp_servers"]["reservoir"] == {**ENTRY, "args": ["mcp"]}
    assert changed.startswith(text)


@each("args", ['["mcp"]', '["mcp", "-p", "a#b"]', '["a]b"]', "[]"])
@each("end", ["\n", "\r\n"])
def test_the_comment_behind_a_replaced_value_stays(args, end):
    text = f"[mcp_servers.reservoir]{end}command = 'x' # mine{end}args = {args} # ours{end}"
    changed = toml.assign(text, (*PATH, "args"), ["mcp", "-p", "work"])
    changed = toml.assign(changed, (*PATH, "command"), "/y")
    assert changed.splitlines()[1:] == [
        'command = "/y" # mine',
        'args = ["mcp", "-p", "work"] # ours',
    ]


def test_text_of_others_around_our_table_stays():
    text = (
        'a = 1\n\n[mcp_servers.reservoir]\ncommand = "x"\n\n'
        "[mcp_servers.reservoir.tools.recall]\nasked = false\n\n# theirs\n[z]\nb = 1\n"
    )
    assert toml.remove(text, PATH) == "a = 1\n\n# theirs\n[z]\nb = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } } # one line\n',
        'mcp_servers.other.command = "x"\nb = 1\n',
        '[mcp_servers]\nother = { command = "x" }\n[z]\nb = 1\n',
    ],
)
def test_other_layouts_keep_their_meaning(text):
    added = toml.assign(text, PATH, ENTRY)
    assert tomllib.loads(added)["mcp_servers"] == {"other": {"command": "x"}, "reservoir": ENTRY}
    assert tomllib.loads(toml.remove(added, PATH)) == tomllib.loads(text)


def test_a_file_without_a_last_line_break_and_an_empty_one_get_a_table():
    assert toml.assign("", PATH, {"command": "x"}) == '[mcp_servers.reservoir]\ncommand = "x"\n'
    assert toml.assign("a = 1", ("b",), {"c": 2}) == "a = 1\n\n[b]\nc = 2\n"


@pytest.mark.parametrize("text", ["mcp_servers = 1\n", "mcp_servers = [1]\n", "a = \n"])
def test_a_file_that_cannot_hold_the_table_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        toml.assign(text, PATH, ENTRY)


@pytest.mark.parametrize("text", ["", 'model = "m"\n', "[mcp_servers.other]\na = 1\n"])
def test_a_byte_order_mark_stays_at_the_beginning(text):
    changed = toml.assign(f"\ufeff{text}", PATH, ENTRY)
    assert changed == f"\ufeff{toml.assign(text, PATH, ENTRY)}"
    assert toml.loads(changed)["mcp_servers"]["reservoir"] == ENTRY
    assert toml.remove(changed, PATH) == f"\ufeff{text}"
