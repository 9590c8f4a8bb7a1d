"""What counts as a whole record, and where the next one is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import CorruptRecord
from sprocket.message.record import Encoder, topic_part
from sprocket.store.log.whole import checked, is_blank, next_whole, written_to
from tests.store.making import HOST, a_draft

ENCODER = Encoder(HOST)


def record(log_offset: int, body: bytes = b"hello") -> bytes:
    return ENCODER.encode(
        a_draft(body), topic_part(b"orders"), log_offset=log_offset, queue_offset=0, stored_ms=5
    )


def a_file(*bodies: bytes, start: int = 0, size: int = 4096) -> tuple[memoryview, list[int]]:
    raw, places = b"", []
    for body in bodies:
        places.append(len(raw))
        raw += record(start + len(raw), body)
    return memoryview(bytearray(raw.ljust(size, b"\0"))), places


def test_a_record_of_another_place_is_not_whole() -> None:
    buffer, places = a_file(b"a", b"b", start=8192)
    assert checked(buffer, places[1], 8192 + places[1]).log_offset == 8192 + places[1]
    with pytest.raises(CorruptRecord, match="the record there carries log offset 8192"):
        checked(buffer, 0, 0)


def test_the_next_whole_record_is_found_behind_anything() -> None:
    buffer, places = a_file(b"a", b"b", b"c", start=8192)
    buffer[places[1] + 88] ^= 1
    found = next_whole(buffer, 8192, 0)
    assert found is not None
    assert found.log_offset == 8192 + places[2]
    assert next_whole(buffer, 8192, places[2]) is None


def test_it_is_found_across_the_pieces_that_are_searched() -> None:
    for shift in range(-12, 4):
        at = (1 << 20) + shift
        buffer = memoryview(bytearray(at + 200))
        buffer[at : at + len(record(at))] = record(at)
        found = next_whole(buffer, 0, 100)
        assert found is not None
        assert found.log_offset == at


@settings(max_examples=200, deadline=None)
@given(noise=st.binary(max_size=300), at=st.integers(0, 299))
def test_noise_is_no_record(noise: bytes, at: int) -> None:
    buffer = memoryview(noise.ljust(300, b"\0"))
    with pytest.raises(CorruptRecord):
        checked(buffer, at, at)
    assert next_whole(buffer, 0, at) is None
    assert at <= written_to(buffer, at) <= 300


def test_the_rest_of_a_file_is_blank_if_it_says_so_or_is_too_short_to() -> None:
    buffer = memoryview(bytearray(100))
    assert not is_blank(buffer, 50)
    assert is_blank(buffer, 93)
    buffer[50:58] = (50).to_bytes(4, "big") + bytes.fromhex("CBD43194")
    assert is_blank(buffer, 50)
    buffer[53] = 49
    assert not is_blank(buffer, 50)


def test_the_end_of_what_was_written_is_found_from_behind() -> None:
    buffer = memoryview(bytearray(3 << 20))
    assert written_to(buffer, 7) == 7
    buffer[1 << 20] = 1
    assert written_to(buffer, 7) == (1 << 20) + 1
    assert written_to(buffer, (1 << 20) + 1) == (1 << 20) + 1
