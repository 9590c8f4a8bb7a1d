"""Unique ids and offset ids."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.message.hosts import pack
from sprocket.message.ids import (
    UniqueIds,
    month_of,
    offset_id,
    parse_offset_id,
    parse_unique_id,
)

NOW_MS = 1_795_827_275_365


def maker(address: bytes = bytes([192, 168, 0, 10])) -> UniqueIds:
    return UniqueIds(address=address, process=0x11A2B, token=b"\x18\xb4\xaa\xc2")


def test_an_id_carries_address_process_token_age_and_counter() -> None:
    start_ms, _ = month_of(NOW_MS)
    ids = maker()
    assert ids.make(start_ms + 0x1E5A4C3D) == "C0A8000A1A2B18B4AAC21E5A4C3D0000"
    assert ids.make(start_ms + 0x1E5A4C3D) == "C0A8000A1A2B18B4AAC21E5A4C3D0001"


def test_an_ipv6_address_makes_it_longer() -> None:
    made = maker(bytes(15) + b"\x01").make(NOW_MS)
    assert len(made) == 56
    parsed = parse_unique_id(made)
    assert (parsed.address, parsed.process) == (bytes(15) + b"\x01", 0x1A2B)
    assert parsed.born_ms(NOW_MS + 1) == NOW_MS


def test_the_counter_begins_anew_after_65536() -> None:
    ids = maker()
    made = {ids.make(NOW_MS) for _ in range(65_536)}
    assert len(made) == 65_536
    assert ids.make(NOW_MS) in made


def test_the_age_begins_anew_with_the_month() -> None:
    _, end_ms = month_of(NOW_MS)
    ids = maker()
    ids.make(end_ms - 1)
    assert parse_unique_id(ids.make(end_ms + 5)).age_ms == 5


def test_a_clock_set_back_over_the_month_does_not_make_ages_negative() -> None:
    start_ms, _ = month_of(NOW_MS)
    ids = maker()
    ids.make(start_ms)
    assert parse_unique_id(ids.make(start_ms - 2000)).age_ms == 0


def test_an_id_of_last_month_tells_last_months_time() -> None:
    start_ms, _ = month_of(NOW_MS)
    born_ms = start_ms - 1000
    made = maker().make(born_ms)
    assert parse_unique_id(made).born_ms(start_ms + 1000) == born_ms


@given(st.integers(min_value=0, max_value=4_102_444_800_000))
def test_months_are_those_of_the_calendar(now_ms: int) -> None:
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    after = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    assert month_of(now_ms) == (first.timestamp() * 1000, after.timestamp() * 1000)


@given(
    st.sampled_from(["10.0.0.1:80", "[2001:db8::8329]:65535"]),
    st.integers(min_value=0, max_value=2**63 - 1),
)
def test_an_offset_id_names_broker_and_log_offset(address: str, log_offset: int) -> None:
    assert parse_offset_id(offset_id(pack(address), log_offset)) == (address, log_offset)


@pytest.mark.parametrize("text", ["", "xyz", "7F" * 15, "zz" * 16, "7F" * 29, " " * 32])
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(UsageError):
        parse_offset_id(text)
    with pytest.raises(UsageError):
        parse_unique_id(text)
