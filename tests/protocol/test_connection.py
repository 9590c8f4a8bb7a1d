from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol import frame
from sprocket.protocol.command import BINARY, HEADER_BYTES_MAX, JSON, Command
from sprocket.protocol.connection import Connection
from sprocket.protocol.requests.offset import MaxOffset

HEADER = MaxOffset(topic="t", queue_id=1)


def encoded(opaque: int, body: bytes = b"", serialization: int = JSON) -> bytes:
    return b"".join(frame.encode_request(HEADER, opaque, body=body, serialization=serialization))


def described(commands: list[Command]) -> list[tuple[int, int, bytes, int]]:
    return [
        (
            command.opaque,
            command.serialization,
            bytes(command.body),
            command.read(MaxOffset).queue_id,
        )
        for command in commands
    ]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


frames = st.lists(
    st.builds(
        encoded,
        st.integers(-(2**31), 2**31 - 1),
        st.sampled_from([b"", b"x", b"body" * 30, bytes(5000)]),
        st.sampled_from([JSON, BINARY]),
    ),
    max_size=6,
)


@given(frames, st.lists(st.integers(min_value=0), max_size=12))
def test_commands_do_not_depend_on_how_the_stream_is_cut(
    frames: list[bytes], places: list[int]
) -> None:
    stream = b"".join(frames)
    whole = described(Connection().receive(stream))
    connection = Connection()
    found = [c for part in cut(stream, places) for c in connection.receive(part)]
    assert described(found) == whole
    assert len(whole) == len(frames)
    assert connection.kept_bytes == 0


def test_one_byte_after_the_other() -> None:
    stream = encoded(1, b"a") + encoded(2, b"", BINARY) + encoded(3, b"c" * 9000)
    connection = Connection()
    found = [c for byte in stream for c in connection.receive(bytes([byte]))]
    assert described(found) == [(1, JSON, b"a", 1), (2, BINARY, b"", 1), (3, JSON, b"c" * 9000, 1)]


@settings(max_examples=200)
@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_frames_or_a_fault(data: bytes, is_slow: bool) -> None:
    connection = Connection()
    parts = [bytes([byte]) for byte in data] if is_slow else [data]
    try:
        for part in parts:
            connection.receive(part)
    except RemoteProtocolError:
        assert connection.fault is not None
    assert connection.kept_bytes <= len(data)


@settings(max_examples=200)
@given(frames, st.data())
def test_a_damaged_stream_is_frames_or_a_fault(frames: list[bytes], data: st.DataObject) -> None:
    stream = bytearray(b"".join(frames) or b"\0\0\0\0")
    stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    whole, slow = Connection(), Connection()
    fast_commands = received(whole, [bytes(stream)])
    slow_commands = received(slow, [bytes([byte]) for byte in stream])
    assert fast_commands == slow_commands
    assert (whole.fault is None) == (slow.fault is None)


def received(connection: Connection, parts: list[bytes]) -> list[int]:
    opaques: list[int] = []
    for part in parts:
        try:
            opaques += [command.opaque for command in connection.receive(part)]
        except RemoteProtocolError:
            break
    return opaques


@pytest.mark.parametrize(
    "stream",
    [
        "00000000",
        "00000003",
        "ffffffff",
        "80000000",
        "01000001",  # one more than 16 MiB
        "000000080000006461626364",  # a header longer than its frame
        "00000008070000047b7d2020",  # unknown serialisation
        "000000080000000461626364",  # no JSON
        "00000006000000027b7d",  # no code
        b"GET / HTTP/1.1\r\n\r\n".hex(),
        "16030100",  # a TLS greeting
    ],
)
def test_what_is_no_frame_is_a_fault_at_once(stream: str) -> None:
    connection = Connection()
    with pytest.raises(RemoteProtocolError):
        connection.receive(bytes.fromhex(stream))
    assert connection.kept_bytes == 0


def test_a_broken_connection_stays_broken() -> None:
    connection = Connection()
    with pytest.raises(RemoteProtocolError):
        connection.receive(bytes(4))
    with pytest.raises(RemoteProtocolError):
        connection.receive(encoded(1))


def test_commands_before_a_fault_are_given_and_the_fault_is_told() -> None:
    connection = Connection()
    assert [c.opaque for c in connection.receive(encoded(1) + encoded(2) + bytes(4))] == [1, 2]
    assert connection.fault is not None
    with pytest.raises(RemoteProtocolError):
        connection.receive(b"")


def test_a_frame_of_the_largest_size_is_taken_and_one_more_byte_is_not() -> None:
    size = len(encoded(1, b"x" * 100)) - 4
    assert len(Connection(frame_bytes_max=size).receive(encoded(1, b"x" * 100))) == 1
    with pytest.raises(RemoteProtocolError):
        Connection(frame_bytes_max=size - 1).receive(encoded(1, b"x" * 100)[:4])


def test_memory_is_what_has_arrived_not_what_was_announced() -> None:
    connection = Connection()
    connection.receive((16 * 2**20).to_bytes(4, "big") + b"abc")
    assert connection.kept_bytes == 7


def test_a_large_body_is_a_view_that_later_data_does_not_change() -> None:
    stream = encoded(1, b"a" * 10_000)
    connection = Connection()
    assert not connection.receive(stream[:5000])
    (command,) = connection.receive(stream[5000:])
    connection.receive(encoded(2, b"b" * 10_000)[:9000])
    assert bytes(command.body) == b"a" * 10_000
    assert isinstance(command.body, memoryview)
    assert command.body.readonly


def test_other_buffers_than_bytes_are_taken() -> None:
    data = bytearray(encoded(1, b"x" * 8000))
    (command,) = Connection().receive(memoryview(data))
    data[:] = bytes(len(data))
    assert bytes(command.body) == b"x" * 8000


def test_a_header_that_is_too_long_is_refused_before_it_is_read() -> None:
    size = HEADER_BYTES_MAX + 1
    data = struct.pack(">II", 4 + size, size) + b" " * size
    with pytest.raises(RemoteProtocolError, match="a header of 8388609 bytes"):
        Connection().receive(data)
