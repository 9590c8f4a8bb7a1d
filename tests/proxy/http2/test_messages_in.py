"""Messages cut anywhere, compressed, too large and broken."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.proxy.http2.messages_in import MessageReader, with_prefix
from sprocket.proxy.http2.status import GrpcError, GrpcStatus
from tests.proxy.http2.kit import message


def test_a_prefix_is_flag_and_length() -> None:
    assert with_prefix(b"abc") == b"\0\0\0\0\3abc"


@given(st.lists(st.tuples(st.binary(max_size=40), st.booleans())), st.integers(1, 20))
def test_messages_cut_anywhere_come_whole(contents: list[tuple[bytes, bool]], size: int) -> None:
    reader = MessageReader("gzip", 100)
    data = b"".join(
        message(gzip.compress(each), 1) if is_packed else message(each)
        for each, is_packed in contents
    )
    found: list[bytes] = []
    for at in range(0, len(data), size):
        found += map(reader.content, reader.receive(data[at : at + size]))
        assert reader.kept_bytes <= 100
    assert found == [each for each, _ in contents]
    assert reader.is_between


def test_half_a_message_is_seen() -> None:
    reader = MessageReader("identity", 100)
    reader.receive(b"\0\0")
    assert not reader.is_between
    reader.receive(b"\0\0\5ab")
    assert (reader.is_between, reader.kept_bytes) == (False, 2)


BOMB = gzip.compress(bytes(50_000_000))


@pytest.mark.parametrize(
    ("encoding", "data", "status", "text"),
    [
        ("identity", message(bytes(101)), GrpcStatus.RESOURCE_EXHAUSTED, "a message of 101 bytes"),
        ("identity", b"\0\xff\xff\xff\xff", GrpcStatus.RESOURCE_EXHAUSTED, "4294967295"),
        ("identity", message(b"", 2), GrpcStatus.INTERNAL, "begins with 2"),
        ("identity", message(b"", 1), GrpcStatus.INTERNAL, "without grpc-encoding"),
        ("gzip", message(b"no gzip", 1), GrpcStatus.INTERNAL, "gzip is broken"),
        (
            "gzip",
            message(gzip.compress(b"abc", mtime=0)[:-4], 1),
            GrpcStatus.INTERNAL,
            "broken off",
        ),
        (
            "gzip",
            message(gzip.compress(bytes(101), mtime=0), 1),
            GrpcStatus.RESOURCE_EXHAUSTED,
            "opens to",
        ),
    ],
)
def test_what_is_no_message(encoding: str, data: bytes, status: GrpcStatus, text: str) -> None:
    reader = MessageReader(encoding, 100)
    with pytest.raises(GrpcError, match=text) as told:
        list(map(reader.content, reader.receive(data)))
    assert told.value.status == status


def test_a_bomb_takes_no_memory() -> None:
    reader = MessageReader("gzip", 100_000)
    tracemalloc.start()
    with pytest.raises(GrpcError, match="opens to more"):
        reader.content(*reader.receive(message(BOMB, 1)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
