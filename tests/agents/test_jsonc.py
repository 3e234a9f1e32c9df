"""Edit JSON with comments in place, without changing a byte outside of the edited member."""

import json
import re

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reservoir_cli.agents.connect import jsonc

KEYS = st.sampled_from(["a", "b", 'quo"te', "ü", "mcpServers", "//", "/*"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 99),
    st.sampled_from([0.5, -2.25e3]),
    st.text(max_size=5),
    st.sampled_from(["// no comment", "/* nor this */", "{", ",", '"']),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n", "\n  ", "\t", " // one\n", "/* two */", "\n/* a\n b */ "])
ENTRY = {"command": "/usr/bin/reservoir", "args": ["mcp"]}
#: The same examples in every run, however slow the machine is.
same = settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def texts(draw: st.DrawFn, value: object) -> str:
    """Draw the text of a value, with blanks, comments and trailing commas."""

    def blank() -> str:
        return draw(BLANKS)

    def write(part: object) -> str:
        if not isinstance(part, dict | list):
            return json.dumps(part, ensure_ascii=draw(st.booleans()))
        items = [
            blank()
            + (f"{json.dumps(item)}{blank()}:{blank()}" if isinstance(part, dict) else "")
            + write(part[item] if isinstance(part, dict) else item)
            + blank()
            for item in part
        ]
        comma = "," + blank() if items and draw(st.booleans()) else ""
        opening, closing = ("{", "}") if isinstance(part, dict) else ("[", "]")
        return opening + (",".join(items) + comma or blank()) + closing

    return blank() + write(value) + blank()


OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def comments(text: str) -> list[str]:
    """Return the comments of a text, found independently of the editor."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', text, re.S)
    return [token.strip() for token in tokens if token.startswith("/")]


@same
@given(st.data())
def test_any_layout_can_be_read(data):
    value = data.draw(OBJECTS)
    assert jsonc.loads(data.draw(texts(value))) == value


@same
@given(st.data())
def test_adding_and_removing_a_member_changes_no_other_byte(data):
    value = data.draw(OBJECTS.filter(lambda drawn: "reservoir" not in drawn))
    text = data.draw(texts(value))
    added = jsonc.assign(text, ("reservoir",), ENTRY)
    assert jsonc.loads(added) == {**value, "reservoir": ENTRY}
    # All characters of the text are still there in order, except blanks in an empty object.
    rest = iter(added)
    assert all(character in rest for character in (text if value else "".join(text.split())))
    assert comments(added) == comments(text)
    removed = jsonc.remove(added, ("reservoir",))
    assert jsonc.loads(removed) == value
    assert comments(removed) == comments(text)
    if value:
        assert removed == text


@same
@given(st.data())
def test_removing_a_member_keeps_all_others(data):
    value = data.draw(OBJECTS.filter(bool))
    text = data.draw(texts(value))
    name = data.draw(st.sampled_from(sorted(value)))
    removed = jsonc.remove(text, (name,))
    assert jsonc.loads(removed) == {key: value[key] for key in value if key != name}
    rest = iter(text)
    assert all(character in rest for character in removed)


@same
@given(st.data())
def test_a_value_is_replaced_in_its_place(data):
    value = data.draw(OBJECTS.filter(bool))
    text = data.draw(texts(value))
    name = data.draw(st.sampled_from(sorted(value)))
    assert jsonc.loads(jsonc.assign(text, (name,), ENTRY)) == {**value, name: ENTRY}


@same
@given(st.data())
def test_an_element_is_appended_and_removed(data):
    elements = data.draw(st.lists(VALUES, max_size=3))
    text = data.draw(texts({"Stop": elements}))
    added = jsonc.assign(text, ("Stop", len(elements)), ENTRY)
    assert jsonc.loads(added) == {"Stop": [*elements, ENTRY]}
    removed = jsonc.remove(added, ("Stop", len(elements)))
    assert removed == text or not elements


@same
@given(st.text(alphabet='{}[]",:/*\\ \n1atrue', max_size=30))
def test_the_reader_handles_any_text(text):
    try:
        value = jsonc.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            json.loads(text)
        return
    if isinstance(value, dict):
        assert jsonc.loads(jsonc.assign(text, ("reservoir",), 1))["reservoir"] == 1


@pytest.mark.parametrize("text", ["", " \n", "// nothing yet\n", "\ufeff"])
def test_a_blank_file_becomes_an_object(text):
    added = jsonc.assign(text, ("mcpServers", "reservoir"), ENTRY)
    assert added.startswith(text.strip())
    assert jsonc.loads(added) == {"mcpServers": {"reservoir": ENTRY}}


def test_the_new_member_looks_like_its_neighbours():
    text = '{\r\n\t"a": {\r\n\t\t"b": 1\r\n\t}\r\n}\r\n'
    assert jsonc.assign(text, ("a", "c"), {"d": []}) == (
        '{\r\n\t"a": {\r\n\t\t"b": 1,\r\n\t\t"c": {\r\n\t\t\t"d": []\r\n\t\t}\r\n\t}\r\n}\r\n'
    )
    assert jsonc.assign('{"a": 1}', ("c",), {"d": []}) == '{"a": 1, "c": {"d": []}}'


@each(
    "text",
    ["{", "[1", '{"a"}', '{"a": 1 "b": 2}', "{} {}", '{"a": nul}', "{,}", "/*", '{"a": "\n"}'],
)
def test_a_broken_text_is_refused_with_its_line(text):
    with pytest.raises(ValueError, match=r"line \d+ is not valid JSON"):
        jsonc.loads(f"\n{text}")


def test_a_text_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="nested"):
        jsonc.loads("[" * 100_000)


def test_a_reader_without_comments_and_trailing_commas_refuses_them():
    assert jsonc.loads('{"a": 1}', comments=False, trailing_commas=False) == {"a": 1}
    assert jsonc.loads('{"a": 1} // b', trailing_commas=False) == {"a": 1}
    for text in ('{"a": [1,]}', '{"a": 1,}'):
        with pytest.raises(ValueError, match="line 1"):
            jsonc.loads(text, trailing_commas=False)
    with pytest.raises(ValueError, match="line 2"):
        jsonc.loads('{"a": 1,\n// b\n"c": 2}', comments=False, trailing_commas=False)


def test_the_last_of_two_members_of_one_name_counts():
    text = '{"a": {"b": 1}, "a": {"b": 2}}'
    assert jsonc.assign(text, ("a", "b"), 3) == '{"a": {"b": 1}, "a": {"b": 3}}'
