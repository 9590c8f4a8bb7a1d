from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import header_json
from sprocket.protocol.command import HEADER_FIELDS_MAX, JSON, Command

numbers = st.integers(-(2**31), 2**31 - 1)
commands = st.builds(
    Command,
    code=numbers,
    opaque=numbers,
    flag=numbers,
    language=st.text(min_size=1),
    version=numbers,
    remark=st.none() | st.text(),
    body=st.just(b""),
    serialization=st.just(JSON),
    source=st.dictionaries(st.text(), st.text(), max_size=5),
)


def described(command: Command) -> tuple[object, ...]:
    return (
        command.code, command.opaque, command.flag, command.language, command.version,
        command.remark, command.serialization, command.fields,
    )  # fmt: skip


@given(commands)
def test_what_was_written_is_read(command: Command) -> None:
    assert described(header_json.decode(header_json.encode(command))) == described(command)


def test_keys_are_written_in_java_order() -> None:
    command = Command(10, 5, 2, "JAVA", 479, "no", source={"topic": "t"})
    assert header_json.encode(command) == (
        b'{"code":10,"extFields":{"topic":"t"},"flag":2,"language":"JAVA","opaque":5,'
        b'"remark":"no","serializeTypeCurrentRPC":"JSON","version":479}'
    )


def test_our_own_headers_say_who_we_are() -> None:
    assert header_json.encode_own(0, -1, 1, None, {}) == (
        b'{"code":0,"extFields":{},"flag":1,"language":"PYTHON","opaque":-1,'
        b'"serializeTypeCurrentRPC":"JSON","version":479}'
    )


@pytest.mark.parametrize(
    "header",
    [
        b'{"version":0,"opaque":1,"code":30,"extFields":{"topic":"t"},"unknown":[1,{"a":2}]}',
        b'{"code":"30","opaque":"1","extFields":{"topic":"t"},"language":null,"remark":null}',
        b"{code:30,opaque:1,extFields:{topic:'t'},version:null}",
        b'{"code":30,"opaque":1,"extFields":{topic:"t"},}',
    ],
)
def test_headers_of_other_clients_are_read(header: bytes) -> None:
    command = header_json.decode(header)
    assert (command.code, command.opaque, command.language) == (30, 1, "OTHER")
    assert command.fields == {"topic": "t"}


@pytest.mark.parametrize(
    "header",
    [b"", b"{}", b"[]", b"null", b"abcd", b'{"code":null}', b'{"code":"x"}', b'{"code":2147483648}',
     b'{"code":1,"flag":[]}', b'{"code":1', b'{"code":1}x', b"\xff\xfe", b'{"a":' * 2000],
)  # fmt: skip
def test_other_headers_are_refused(header: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        header_json.decode(header)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_refused(header: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        header_json.decode(header)


def test_a_text_that_is_not_unicode_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError):
        header_json.encode_own(0, 0, 1, "\ud800", {})


@pytest.mark.parametrize(("number", "name"), [("0", "JAVA"), ("9", "GO"), ("99", "OTHER")])
def test_a_language_may_be_a_number(number: str, name: str) -> None:
    command = header_json.decode(b'{"code":10,"language":%s,"opaque":3}' % number.encode())
    assert (command.language, command.opaque) == (name, 3)


def test_a_header_of_very_many_fields_is_refused() -> None:
    texts = {f"a long name for a field{n}": "" for n in range(HEADER_FIELDS_MAX + 20)}
    raw = header_json.encode(Command(10, source=texts))
    # The count takes the second quote of a name that ends in a backslash for one inside a text.
    tricky = b'{"code":10,"extFields":{%s"":0}}' % (b'"a\\\\":0,' * (4 * HEADER_FIELDS_MAX + 65))
    for header in (raw, tricky, b"{'code':10,extFields:{" + b"a:1," * (HEADER_FIELDS_MAX + 1)):
        with pytest.raises(RemoteProtocolError, match=r"at most 4096 fields|too many values"):
            header_json.decode(header)


def test_a_value_that_looks_like_fields_is_one_field() -> None:
    texts = {"properties": '"a":' * 8_000}
    assert header_json.decode(header_json.encode(Command(10, source=texts))).fields == texts
