from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import header_binary
from sprocket.protocol.codes import LANGUAGE_NUMBERS, WIDE_REQUEST_CODES, RequestCode
from sprocket.protocol.command import BINARY, HEADER_FIELDS_MAX, RESPONSE, Command
from sprocket.protocol.requests.send import SendMessageV2

numbers = st.integers(-(2**31), 2**31 - 1)
commands = st.builds(
    Command,
    code=st.integers(0, 0x7FFF).filter(lambda code: code not in WIDE_REQUEST_CODES),
    opaque=numbers,
    flag=numbers,
    language=st.sampled_from(sorted(LANGUAGE_NUMBERS)),
    version=st.integers(0, 0x7FFF),
    remark=st.none() | st.text(min_size=1),
    body=st.just(b""),
    serialization=st.just(BINARY),
    source=st.dictionaries(st.text(min_size=1), st.text(), max_size=5),
)


@given(commands)
def test_what_was_written_is_read(command: Command) -> None:
    assert header_binary.decode(header_binary.encode(command)) == command


def test_layout() -> None:
    command = Command(10, -2, 1, "GO", 409, "é", b"", BINARY, {"topic": "t"})
    assert header_binary.encode(command).hex(" ") == (
        "00 0a 09 01 99 ff ff ff fe 00 00 00 01 00 00 00 02 c3 a9 "
        "00 00 00 0c 00 05 74 6f 70 69 63 00 00 00 01 74"
    )


def test_a_typed_header_is_read() -> None:
    header = SendMessageV2(topic="té", queue_id=3, properties="KEYS\x01ключ\x02")
    command = Command(310, serialization=BINARY, source=header.to_fields())
    assert header_binary.decode(header_binary.encode(command)).read(SendMessageV2) == header


def test_a_request_code_that_was_cut_is_whole_again() -> None:
    command = Command(RequestCode.POP_MESSAGE, serialization=BINARY)
    assert header_binary.encode(command)[:2] == (3442).to_bytes(2, "big")
    assert header_binary.decode(header_binary.encode(command)).code == RequestCode.POP_MESSAGE


def test_a_response_code_is_left_as_it_is() -> None:
    command = Command(3442, flag=RESPONSE, serialization=BINARY)
    assert header_binary.decode(header_binary.encode(command)).code == 3442


def test_an_unknown_language_is_other() -> None:
    raw = bytearray(header_binary.encode(Command(1, language="ZZZ", serialization=BINARY)))
    assert header_binary.decode(raw).language == "OTHER"
    raw[2] = 200
    assert header_binary.decode(raw).language == "OTHER"


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (13, "7fffffff"),  # bytes of the remark
        (13, "ffffffff"),
        (17, "7fffffff"),  # bytes of all fields
        (17, "00000000"),
        (21, "7fff0000"),  # bytes of a name
        (24, "7fffffff"),  # bytes of a value
    ],
)
def test_lengths_that_lie_are_refused(at: int, value: str) -> None:
    raw = bytearray(header_binary.encode(Command(1, serialization=BINARY, source={"a": "b"})))
    raw[at : at + 4] = bytes.fromhex(value)
    with pytest.raises(RemoteProtocolError):
        header_binary.decode(raw)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_header_or_refused(header: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        header_binary.decode(header)


@given(commands, st.data())
def test_a_damaged_header_is_read_or_refused(command: Command, data: st.DataObject) -> None:
    raw = bytearray(header_binary.encode(command))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(RemoteProtocolError):
        header_binary.decode(raw[: data.draw(st.integers(0, len(raw)))])


@pytest.mark.parametrize(
    "command",
    [
        Command(70_000),
        Command(1, version=40_000),
        Command(1, opaque=2**31),
        Command(1, remark="\ud800"),
        Command(1, source={"n" * 40_000: "v"}),
    ],
)
def test_what_does_not_fit_is_our_own_fault(command: Command) -> None:
    with pytest.raises(LocalProtocolError):
        header_binary.encode(command)


def test_a_header_of_very_many_fields_is_refused() -> None:
    texts = {f"name{n}": "" for n in range(HEADER_FIELDS_MAX + 1)}
    with pytest.raises(RemoteProtocolError, match="at most 4096 fields"):
        header_binary.decode(header_binary.encode(Command(10, source=texts)))
    texts.popitem()
    assert header_binary.decode(header_binary.encode(Command(10, source=texts))).fields == texts
