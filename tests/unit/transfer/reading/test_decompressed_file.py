"""Keys of a file's beginning, which are not text of its messages."""

import io
import json

from each import each

from reservoir_cli.transfer.reading.decompressed_file import Head


def head_of(text: str) -> Head:
    head = Head(text)
    while head.advance():
        pass
    return head


@each(
    ("value", "found"),
    [
        ({"oven": 1}, True),
        ({"a": {"oven": 1}}, True),
        ({"a": {"b": {"oven": 1}}}, False),
        ([[{"oven": 1}]], True),
        ({"a": '"oven": 1'}, False),
        ({"a": '{"oven": 1}'}, False),
        ({"oven\\": 1}, False),
        ({"a": ["oven"]}, False),
        ({"a": "x" * 300_000, "oven": 2}, True),
    ],
)
def test_a_key_counts_up_to_a_depth_and_not_inside_strings(value, found):
    assert head_of(json.dumps(value)).has("oven") == found


def test_each_line_begins_at_the_top_even_after_a_torn_one():
    assert head_of('{"a": {"b": {"c": "torn\n{"oven": 1}\n').has("oven", depth=1)
    assert not head_of('{"a": {"b": {"c": "torn\n{"x": {"oven": 1}}\n').has("oven", depth=1)


def test_kinds_are_the_short_values_of_the_keys_that_say_them():
    head = head_of('{"type": "loaf", "role": "baker", "note": "rye", "kind": 1}')
    assert head.has_kind("loaf")
    assert head.has_kind("baker", "miller")
    assert not head.has_kind("rye")


def test_a_scan_stops_after_the_first_objects_and_goes_on_when_asked():
    head = Head('{"a": 1}\n{"b": 2}\n' + '{"c": 3}\n' * 50)
    assert head.advance()
    assert (head.has("a"), head.has("b"), head.objects) == (True, False, 1)
    stops = [head.objects for _ in iter(head.advance, False)]
    assert stops == [2, 4, 8, 52]
    assert head.has_all("a", "b", "c")


def test_what_follows_the_text_is_read_with_bounded_memory_of_it():
    text = json.dumps({"long": "crumb " * 200_000, "oven": 1, "end": {}}).encode()
    stream = io.BytesIO(text)
    head = Head(stream.read(65_536).decode())
    while head.advance():
        pass
    assert not head.has("oven")
    reads = 0
    while not head.objects and head.read_on(stream):
        reads += 1
        while head.advance():
            pass
    assert head.has_all("long", "oven", "end")
    assert reads < 10  # more is read each time, so that a long string is not scanned anew too often


@each("part", ['"', '"\\', '\\"', '{"', '"\n', '"a" ', "{", '"a":'])
def test_hostile_text_takes_one_pass(part):
    head = head_of(f"{{{part * (65_536 // len(part))}" + '\n{"oven": 1}')
    assert head.has("oven")
