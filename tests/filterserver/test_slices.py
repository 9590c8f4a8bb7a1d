from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.filterserver import slices
from sprocket.message.compression import Compression, compress, open_body
from sprocket.message.hosts import pack
from sprocket.message.offsets import QueueOffset
from sprocket.message.record import Draft, Encoder, scan, topic_part
from sprocket.store.reading.queue_reader import ReadResult, ReadStatus

HOST = pack("10.0.0.1:10911")
ENCODER = Encoder(HOST)


def record(offset: int, body: bytes = b"x", sys_flag: int = 0) -> bytes:
    draft = Draft("t", 0, body, b"a\x01b\x02", 0, 7, sys_flag, 1, HOST)
    return ENCODER.encode(
        draft, topic_part(b"t"), log_offset=offset * 1000, queue_offset=offset, stored_ms=2
    )


def read_of(*runs: list[bytes], first: int = 0) -> ReadResult:
    count = sum(map(len, runs))
    return ReadResult(
        ReadStatus.FOUND, QueueOffset(first + count), QueueOffset(0), QueueOffset(100),
        [memoryview(b"".join(run)) for run in runs], count, sum(len(b"".join(run)) for run in runs),
    )  # fmt: skip


def offsets(read: ReadResult) -> list[int]:
    return [message.queue_offset for part in read.parts for message in scan(part)]


@given(
    st.lists(st.booleans(), min_size=1, max_size=12),
    st.integers(0, 12),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_nothing_unjudged_is_passed_and_nothing_wanted_is_left_out(
    wanted: list[bool], cut: int, judged: int, count_max: int
) -> None:
    raw = [record(n) for n in range(len(wanted))]
    read = read_of(*[run for run in (raw[:cut], raw[cut:]) if run])
    judged = min(judged, len(wanted))
    left = slices.chosen(
        read, slices.records(read), wanted[:judged], count_max=count_max, bytes_max=1 << 20
    )
    everything = [n for n in range(judged) if wanted[n]]
    assert offsets(left) == everything[:count_max]
    assert left.count == len(offsets(left))
    assert left.bytes == sum(map(len, left.parts))
    assert left.next_offset <= judged
    missed = [n for n in everything if n not in offsets(left)]
    assert all(n >= left.next_offset for n in missed)
    assert left.next_offset > (offsets(left) or [-1])[-1]
    assert len(left.parts) <= len(everything)


def test_the_first_that_is_wanted_comes_however_large_it_is() -> None:
    read = read_of([record(0), record(1, b"y" * 5000), record(2)])
    left = slices.chosen(
        read, slices.records(read), [False, True, True], count_max=9, bytes_max=100
    )
    assert (offsets(left), left.next_offset) == ([1], 2)


def test_neighbours_stay_one_piece() -> None:
    read = read_of([record(n) for n in range(4)])
    left = slices.chosen(
        read, slices.records(read), [True, True, False, True], count_max=9, bytes_max=1 << 20
    )
    assert [len(part) // len(record(0)) for part in left.parts] == [2, 1]


def test_a_filter_sees_the_body_opened_and_one_that_cannot_be_opened_as_it_is() -> None:
    packed = compress(b"hello" * 100, Compression.ZLIB)
    kind = Compression.ZLIB.sys_flag
    read = read_of([record(0, packed, kind), record(1, b"broken", kind)])
    first, second = (slices.shown(place.record) for place in slices.records(read))
    assert first.body == b"hello" * 100
    assert second.body == b"broken"
    assert (first.flag, first.properties, first.stored_ms) == (7, b"a\x01b\x02", 2)


def test_bodies_that_open_to_a_lot_are_shown_few_at_a_time() -> None:
    bomb = compress(bytes(3 << 20), Compression.ZLIB)
    read = read_of([record(n, bomb, Compression.ZLIB.sys_flag) for n in range(9)])
    parts = slices.shown_at_once(slices.records(read))
    assert [len(part.body) for part in parts] == [3 << 20] * 2
    huge = compress(bytes(slices.OPENED_BYTES_MAX + 1), Compression.ZLIB)
    (place,) = slices.records(read_of([record(0, huge, Compression.ZLIB.sys_flag)]))
    assert slices.shown(place.record).body == huge


def test_a_record_that_is_broken_is_left_out_alone() -> None:
    broken = bytearray(record(6))
    broken[4:8] = b"\0\0\0\0"
    whole = read_of([record(5), bytes(broken), record(7)], first=5)
    assert [place.record.queue_offset for place in slices.records(whole)] == [5]
    read = read_of([bytes(broken), record(7)], first=6)
    assert slices.records(read) == []
    assert slices.passed_over(read).next_offset == 7


def test_a_body_that_opens_to_too_much_ends_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = compress(bytes(slices.OPENED_BYTES_MAX + 1), Compression.ZSTD)
    opened: list[int] = []

    def counted(body: bytes, sys_flag: int, bytes_max: int) -> bytes:
        opened.append(sys_flag)
        return open_body(body, sys_flag, bytes_max)

    monkeypatch.setattr(slices, "open_body", counted)
    raw = [record(n, bomb, Compression.ZSTD.sys_flag) for n in range(5)]
    parts = slices.shown_at_once(slices.records(read_of(raw)))
    assert [bytes(part.body) for part in parts] == [bomb]
    assert len(opened) == 1
