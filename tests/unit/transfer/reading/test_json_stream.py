import json
from collections.abc import Iterator
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from reading import file_of, lines

from reservoir_cli.transfer.reading import json_stream
from reservoir_cli.transfer.reading.decompressed_file import Unreadable
from reservoir_cli.transfer.reading.importer import Record, Skipped


def entries(data: str | bytes) -> list[Any]:
    return list(json_stream.entries(file_of(data)))


OBJECTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


@given(st.lists(OBJECTS), st.sampled_from([None, 1]), st.booleans(), st.integers(1, 40))
def test_an_array_gives_its_objects_in_any_layout_and_chunk_size(
    values, indent, ascii_only, at_once
):
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_stream, "_AT_ONCE", at_once)
        parsed = entries(text)
    # NaN does not equal itself, so compare the written values.
    assert repr(parsed) == repr(
        [(f"entry {number}", value) for number, value in enumerate(values, 1)]
    )


@given(st.lists(OBJECTS, min_size=2))
def test_lines_give_their_objects(values):
    parsed = entries("\n".join(json.dumps(value) for value in values))
    assert repr(parsed) == repr(
        [(f"line {number}", value) for number, value in enumerate(values, 1)]
    )


@pytest.mark.parametrize("text", ['{"a": 1}', '\n{"a":\n1}\n\n', '\ufeff{"a": 1}\n'])
def test_a_single_object_is_the_document(text):
    assert entries(text) == [("the document", {"a": 1})]


@pytest.mark.parametrize("blank", ["", "\n", "\n\n"])
def test_a_document_may_have_an_object_on_a_line_of_its_own(blank):
    text = f'{blank}{{"rows": [\n{blank}{{"a": 1}}\n{blank}]}}\n'
    assert entries(text) == [("the document", {"rows": [{"a": 1}]})]


def test_a_torn_first_line_does_not_hide_the_next_ones():
    torn = [Skipped("line 1", "not valid JSON"), ("line 2", {"b": 2})]
    assert entries('{"a": [\n{"b": 2}') == torn
    assert entries('{"a": [\n{"b": 2}\n{"c": 3}\n') == [*torn, ("line 3", {"c": 3})]


@each("text", ["", "\n \n", "[]", " [ ] ", "\ufeff[]"])
def test_an_empty_text_gives_nothing(text):
    assert entries(text) == []


BAD = [
    # text between two valid entries, and the reason why it is skipped
    ("{torn", "not valid JSON"),
    ('{"a": nul}', "not valid JSON"),
    ('{"a": 1 "b": 2}', "not valid JSON"),
    ("{'a': 1}", "not valid JSON"),
    ("7", "not a JSON object"),
    ('"text"', "not a JSON object"),
    ("[1, [2]]", "not a JSON object"),
    ('{"a": ' + "9" * 5_000 + "}", "a number with too many digits"),
    ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ('{"a":' * 50_000 + "1" + "}" * 50_000, "nested too deeply"),
]


@each(("bad", "reason"), BAD)
def test_a_bad_line_is_skipped_and_the_next_is_read(bad, reason):
    parsed = entries(f'{{"a": 1}}\n{bad}\n{{"b": 2}}\n')
    assert parsed == [("line 1", {"a": 1}), Skipped("line 2", reason), ("line 3", {"b": 2})]


@pytest.mark.parametrize(("bad", "reason"), BAD[1:])
@pytest.mark.parametrize("at_once", [7, 1 << 20])
def test_a_bad_entry_of_an_array_is_skipped_and_the_next_is_read(bad, reason, at_once, monkeypatch):
    monkeypatch.setattr(json_stream, "_AT_ONCE", at_once)
    parsed = entries(f'[{{"a": 1}}, {bad}, {{"b": 2}}]')
    assert parsed == [("entry 1", {"a": 1}), Skipped("entry 2", reason), ("entry 3", {"b": 2})]


TORN = [
    ('[{"a": 1}, {"b": [2, "x', ["entry 1", "entry 2"]),
    ('[{"a": 1}, ', ["entry 1", "the end"]),
    ('[{"a": 1}', ["entry 1", "the end"]),
    ("[", ["the end"]),
    ('{"a": 1}\n{"b": 2', ["line 1", "line 2"]),
    ('{"a": 1', ["the document"]),
    ('{\n "a": 1,\n "b": [\n  1,\n', ["the document"]),
]


@each(("text", "positions"), TORN)
def test_a_truncated_end_is_skipped_once_and_earlier_entries_are_read(text, positions):
    parsed = entries(text)
    assert [
        entry.place if isinstance(entry, Skipped) else entry[0] for entry in parsed
    ] == positions
    assert isinstance(parsed[-1], Skipped)
    assert not any(isinstance(entry, Skipped) for entry in parsed[:-1])


def test_text_after_an_array_is_reported():
    parsed = entries('[{"a": 1}]\n[{"b": 2}]')
    assert parsed == [("entry 1", {"a": 1}), Skipped("the end", "data after the array is ignored")]


@each("text", ["[}", "[{}}{]]}", "[:{}", "[]]", '["', '[{"a": "\\', "[,,,,"])
def test_reading_unmatched_brackets_terminates(text):
    assert all(isinstance(entry, Skipped) or entry[1] == {} for entry in entries(text))


def test_a_line_that_is_too_long_is_skipped(monkeypatch):
    monkeypatch.setattr(json_stream, "LARGEST", 100)
    long_line = json.dumps({"a": "x" * 1_000})
    first, second, third = entries(f'{{"a": 1}}\n{long_line}\n{{"b": 2}}')
    assert (first, third) == (("line 1", {"a": 1}), ("line 3", {"b": 2}))
    assert isinstance(second, Skipped)
    assert second.place == "line 2"
    assert "larger than" in second.reason


LARGE = [
    json.dumps({"a": ["x"] * 500}),
    json.dumps({"a": {str(number): {} for number in range(300)}}),
    json.dumps([[1, 2, 3]] * 300),
]


@pytest.mark.parametrize("large", LARGE)
def test_an_entry_that_is_too_large_is_skipped_and_the_next_is_read(large, monkeypatch):
    monkeypatch.setattr(json_stream, "LARGEST", 100)
    monkeypatch.setattr(json_stream, "_AT_ONCE", 50)
    first, second, third = entries(f'[{{"a": 1}}, {large}, {{"b": 2}}]')
    assert (first, third) == (("entry 1", {"a": 1}), ("entry 3", {"b": 2}))
    assert isinstance(second, Skipped)
    assert second.place == "entry 2"
    assert "larger than" in second.reason


def test_an_endless_string_is_skipped(monkeypatch):
    monkeypatch.setattr(json_stream, "LARGEST", 100)
    monkeypatch.setattr(json_stream, "_AT_ONCE", 50)
    first, second, *rest = entries('[{"a": 1}, {"a": "' + "x" * 10_000)
    assert first == ("entry 1", {"a": 1})
    assert isinstance(second, Skipped)
    assert all(isinstance(entry, Skipped) for entry in rest)


def test_invalid_utf8_does_not_stop_reading():
    for data in (b'[{"a": "caf\xe9"}, {"b": 2}]', b'{"a": "caf\xe9"}\n{"b": 2}\n'):
        first, second = entries(data)
        assert first[1]["a"].startswith("caf")
        assert len(first[1]["a"]) == 4
        assert second[1] == {"b": 2}


@given(st.binary(max_size=80))
def test_no_bytes_stop_reading(data):
    for given_bytes in (data, b"[" + data, b'{"a": 1}\n' + data, b'[{"a": 1},' + data):
        for entry in entries(given_bytes):
            assert isinstance(entry, Skipped) or isinstance(entry[1], dict)


def test_a_value_that_is_too_large_hides_no_other(monkeypatch):
    for name, value in (("LARGEST", 1_000), ("LONGEST_LINE", 100_000), ("_AT_ONCE", 64)):
        monkeypatch.setattr(json_stream, name, value)
    huge = {"text": 'a \\" "] }, ' * 1_000, "more": [{"x": "y" * 2_000}]}
    for rows in ([{"a": 1}, huge, {"b": 2}], [huge, {"b": 2}, huge, {"c": 3}]):
        for text in (json.dumps(rows), "\n".join(map(json.dumps, rows))):
            read_values = entries(text)
            kept = [entry[1] for entry in read_values if not isinstance(entry, Skipped)]
            assert kept == [row for row in rows if row is not huge]
            assert len(read_values) == len(rows)


def test_what_has_no_end_is_read_up_to_a_limit(monkeypatch):
    for name, value in (("LARGEST", 1_000), ("LONGEST_LINE", 4_000), ("_AT_ONCE", 64)):
        monkeypatch.setattr(json_stream, name, value)
    endless = '{"a": 1}\n{"b": "' + "x" * 1_000_000
    file = file_of(endless, "x.jsonl")
    with pytest.raises(Unreadable, match="a line of more than"):
        list(json_stream.entries(file))
    assert file.done < 600_000
    file = file_of(f'[{{"b": "{"x" * 1_000_000}', "x.json")
    assert [type(entry) for entry in json_stream.entries(file)] == [Skipped]
    assert file.done < 600_000


@each("count", [1, 2, 3, 20])
@each("damage", ["xxx", '{"role": "us', '{"a": 1} {"b": 2}', "\0\0"])
def test_damaged_lines_at_the_top_lose_only_themselves(count, damage):
    text = f"{damage}\n" * count + '{"a": 1}\n\n{"b": 2}\n'
    values = entries(text)
    assert [entry[1] for entry in values if not isinstance(entry, Skipped)] == [{"a": 1}, {"b": 2}]
    assert [entry.place for entry in values if isinstance(entry, Skipped)] == [
        f"line {number}" for number in range(1, count + 1)
    ]


def test_a_document_on_several_lines_is_one_entry_even_if_lines_are_objects():
    whole = '{"messages": [\n{"a": 1},\n{"b": 2}\n]}\n'
    assert [entry[1] for entry in entries(whole) if not isinstance(entry, Skipped)] == [
        {"messages": [{"a": 1}, {"b": 2}]}
    ]
    [skipped] = entries(json.dumps({"a": [1, {"b": 2}]}, indent=2)[:-3])
    assert isinstance(skipped, Skipped)
    assert skipped.place == "the document"


def test_the_reason_for_a_skipped_entry_quotes_nothing_of_the_file():
    def fail(place: str, value: dict[str, Any]) -> Iterator[Record | Skipped]:
        yield from Skipped.if_invalid(place, (int(value["n"]) for _ in "1"))
        raise ValueError(f"Invalid name {value['n']!r}")

    found = json_stream.read_entries(file_of(lines({"n": "my words"}, {"n": "it's"})), fail)
    reasons = {entry.reason for entry in found if isinstance(entry, Skipped)}
    assert reasons == {"invalid literal for int() with base 10: …", "Invalid name …"}
