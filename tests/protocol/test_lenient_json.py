from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol import bodies, header_json, lenient_json
from sprocket.protocol.lenient_json import ObjectKey

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@given(values, st.booleans())
def test_standard_json_is_read_as_json(value: Any, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    assert lenient_json.parse(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{0:1,-5:2}", {0: 1, -5: 2}),
        ("{a:1,$b_c.d-e:2}", {"a": 1, "$b_c.d-e": 2}),
        ("{'a':'it\"s'}", {"a": 'it"s'}),
        ("[1,,2,]", [1, 2]),
        ('{,"a":1,}', {"a": 1}),
        (' \t\r\n{ "a" : [ ] } ', {"a": []}),
        ('{{"b":"x","q":0}:5}', {ObjectKey(b="x", q=0): 5}),
        ('{"a":{{"q":1}:{"min":2}}}', {"a": {ObjectKey(q=1): {"min": 2}}}),
        (r'"\x41\v\0\/A\uD83D\uDE00"', "A\v\0/A😀"),
        (r'"\uD800x"', "\ufffdx"),
        ("-0.5e+3", -500.0),
        ("{true:1,null:2}", {"true": 1, "null": 2}),
    ],
)
def test_the_dialect_is_read(text: str, value: Any) -> None:
    assert lenient_json.parse(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "[", '"', "'", "{a}", "{a:}", "{:1}", "abc", "{a:1}}", '"\\', '"\\q"', "{[1]:2}",
     '{{"a":[1]}:2}', "1 2", "nan", "{'a':1", "\\"],
)  # fmt: skip
def test_the_rest_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        lenient_json.parse(text.encode())


def test_what_is_nested_too_deeply_is_refused() -> None:
    assert lenient_json.parse(b"[" * 32 + b"]" * 32)
    for opening in (b"[", b"{a:", b"{{"):
        with pytest.raises(RemoteProtocolError, match="deeply"):
            lenient_json.parse(opening * 100_000)


def test_what_is_too_long_is_not_looked_at() -> None:
    with pytest.raises(RemoteProtocolError, match="too long"):
        lenient_json.parse(b" " * 101, bytes_max=100)


@given(st.binary(max_size=60) | st.text("{}[]:,'\"\\u0ab1-.e \x00", max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        lenient_json.parse(data)


def test_keys_cannot_be_chosen_to_collide() -> None:
    period = 2**61 - 1  # numbers this far apart have the same hash
    with pytest.raises(RemoteProtocolError, match="no key"):
        lenient_json.parse(b"{%d:1}" % period)
    keys = lenient_json.parse(b"{{q:0}:1,{q:%d}:2}" % period)
    assert len({hash(key) for key in keys}) == 2


def test_numbers_beyond_64_bits_are_read_as_floats() -> None:
    assert lenient_json.parse(b"[18446744073709551615,18446744073709551616]") == [
        2**64 - 1,
        2.0**64,
    ]
    assert lenient_json.parse(b"9" * 300) == 1e300
    with pytest.raises(RemoteProtocolError):
        lenient_json.parse(b"9" * 5000)


class Key(msgspec.Struct, frozen=True, rename="camel"):
    topic: str
    queue_id: int


class Table(msgspec.Struct, rename="camel"):
    offsets: dict[Key, int]
    by_number: dict[int, str]
    nothing: str | None = None
    flags: list[bool] = []


def test_keys_are_written_as_they_are() -> None:
    table = Table({Key("t", 1): 5}, {0: "a"}, None, [True, False])
    written = lenient_json.write(table)
    assert written == (
        b'{"byNumber":{0:"a"},"flags":[true,false],"offsets":{{"queueId":1,"topic":"t"}:5}}'
    )
    assert msgspec.convert(lenient_json.parse(written), Table) == table


def test_empty_things_are_written() -> None:
    assert lenient_json.write({"a": {}, "b": [], "c": None}) == b'{"a":{},"b":[]}'


@given(st.dictionaries(st.integers(-9, 9), st.text()))
def test_what_was_written_is_read(value: dict[int, str]) -> None:
    assert lenient_json.parse(lenient_json.write(value)) == value


#: What a hostile sender strings together: structure, keys of all kinds, values of all kinds.
_TOKENS = [
    "{", "}", "[", "]", ":", ",", "{1:2}", "{'a':1}", "{{1:2}:3}", "code", "'code'", "extFields",
    '"language"', "10", "-1", "0.5", "1e999", "true", "null", "'x'", '"\\uD800"', "'{\"a\":1}'",
    "topic", "offsetTable", "topicConfigTable", "subscriptionDataSet", "{1:2,'a':3}",
]  # fmt: skip
_ALL_BODIES = sorted(
    (
        each
        for each in vars(bodies).values()
        if isinstance(each, type) and issubclass(each, bodies.Body)
    ),
    key=lambda each: each.__name__,
)


@given(st.lists(st.sampled_from(_TOKENS), max_size=14).map("".join), st.booleans())
@settings(max_examples=300)
def test_whatever_is_sent_is_read_or_refused(text: str, is_wrapped: bool) -> None:
    data = (f"{{'code':10,'extFields':{text}}}" if is_wrapped else text).encode()
    with contextlib.suppress(RemoteProtocolError):
        header_json.decode(data)
    for body in _ALL_BODIES:
        with contextlib.suppress(RemoteProtocolError):
            body.decode(data)


def test_escapes_that_only_this_dialect_has_are_bounded() -> None:
    usual, unusual = b'"' + b"\\u0041" * 40_000 + b'"', b"'" + b"\\v" * 16_384 + b"'"
    assert lenient_json.parse(usual) == "A" * 40_000
    assert lenient_json.parse(unusual) == "\v" * 16_384
    with pytest.raises(RemoteProtocolError, match="unusual escapes"):
        lenient_json.parse(b"[" + unusual + b",'\\v']")


def test_values_are_counted_keys_that_are_objects_too() -> None:
    assert lenient_json.parse(b"{{a:1}:2}", values_max=4)
    with pytest.raises(RemoteProtocolError, match="too many values"):
        lenient_json.parse(b"{{a:1}:2}", values_max=3)
