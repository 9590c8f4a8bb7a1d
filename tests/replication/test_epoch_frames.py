"""The frames of the stream with epochs, in any pieces, and hostile ones."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.replication.epoch_frames import (
    EpochFrame,
    EpochFrameDecoder,
    MasterHello,
    MemberDecoder,
    SlaveHello,
    encode_head,
    encode_report,
)
from sprocket.replication.epochs import EpochList
from sprocket.replication.frames import FRAME_BYTES_MAX
from tests.replication.test_frames import pieces

numbers = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 2**31 - 1)
cuts = st.lists(st.integers(0, 1000), max_size=10)
hellos = st.builds(SlaveHello, numbers, st.booleans(), st.booleans())
frames = st.builds(EpochFrame, numbers, st.binary(max_size=60), epochs, numbers, numbers)
HELLO = MasterHello(500, 3, EpochList([(1, 0), (3, 200)]))


@given(hellos, st.integers(1, 2), st.lists(numbers, max_size=20), cuts)
def test_what_a_slave_sends_comes_out_as_it_went_in(
    hello: SlaveHello, times: int, reports: list[int], cuts: list[int]
) -> None:
    decoder = MemberDecoder()
    data = hello.encode() * times + b"".join(map(encode_report, reports))
    assert [each for piece in pieces(data, cuts) for each in decoder.feed(piece)] == reports
    assert decoder.hello == hello


@given(st.lists(frames, max_size=10), cuts)
def test_what_a_master_sends_comes_out_as_it_went_in(
    sent: list[EpochFrame], cuts: list[int]
) -> None:
    decoder = EpochFrameDecoder()
    data = HELLO.encode() + b"".join(
        encode_head(each.offset, len(each.data), *each[2:]) + each.data for each in sent
    )
    assert [each for piece in pieces(data, cuts) for each in decoder.feed(piece)] == sent
    assert decoder.hello == HELLO


def test_the_bytes_are_rocketmqs() -> None:
    """By the layouts in the comments of AutoSwitchHAConnection and AutoSwitchHAClient."""
    assert SlaveHello(7, from_last_file=True).encode() == struct.pack(">ihhq", 1, 1, 0, 7)
    assert SlaveHello(7, is_learner=True).encode() == struct.pack(">ihhq", 1, 0, 1, 7)
    assert encode_report(99) == struct.pack(">iq", 2, 99)
    assert HELLO.encode() == struct.pack(">iiqiiqiq", 1, 24, 500, 3, 1, 0, 3, 200)
    assert encode_head(200, 5, 3, 200, 150) == struct.pack(">iiqiqq", 2, 5, 200, 3, 200, 150)


def test_a_heartbeat_of_rocketmq_before_its_first_record_is_no_error() -> None:
    decoder = EpochFrameDecoder()
    decoder.feed(HELLO.encode())
    assert decoder.feed(encode_head(-1, 0, 3, 700, -1)) == [EpochFrame(-1, b"", 3, 700, 0)]


@pytest.mark.parametrize(
    "data",
    [
        encode_report(5),  # before the greeting
        struct.pack(">iq", 3, 5),
        struct.pack(">iq", -1, 5),
        SlaveHello(7).encode() + encode_report(-1),
        SlaveHello(7).encode() + encode_report(5) + SlaveHello(7).encode(),
        SlaveHello(7).encode() + SlaveHello(8).encode(),
        SlaveHello(-7).encode(),
        bytes(16),
    ],
)
def test_what_no_slave_sends_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        MemberDecoder().feed(data)


@pytest.mark.parametrize(
    "head",
    [
        struct.pack(">iiqi", 2, 12, 500, 3),
        struct.pack(">iiqi", 1, -12, 500, 3),
        struct.pack(">iiqi", 1, 13, 500, 3),
        struct.pack(">iiqi", 1, 12 * 1001, 500, 3),
        struct.pack(">iiqi", 1, 0, -1, 3),
        struct.pack(">iiqiiqiq", 1, 24, 500, 3, 3, 0, 1, 200),
        struct.pack(">iiqiiqiq", 1, 24, 500, 3, 1, 200, 3, 0),
        struct.pack(">iiqiiq", 1, 12, 500, 3, 1, -1),
        HELLO.encode() + encode_head(200, FRAME_BYTES_MAX + 1, 3, 200, 150),
        HELLO.encode() + encode_head(200, -1, 3, 200, 150),
        HELLO.encode() + encode_head(-1, 1, 3, 200, 150),
        HELLO.encode() + encode_head(-2, 0, 3, 200, 150),
        HELLO.encode() + encode_head(200, 5, -3, 200, 150),
        HELLO.encode() + encode_head(200, 5, 3, -200, 150),
        HELLO.encode() + HELLO.encode() + bytes(40),
    ],
)
def test_what_no_master_sends_is_refused(head: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        EpochFrameDecoder().feed(head)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_and_little_is_kept(data: bytes) -> None:
    for decoder in (MemberDecoder(), EpochFrameDecoder()):
        with suppress(RemoteProtocolError):
            decoder.feed(data)
