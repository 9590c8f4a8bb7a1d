"""Numbers of schemas in front of bodies are read as clients of Confluent's registry write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.schemas import framing
from sprocket.schemas.errors import BodyMismatch


def test_the_bytes_are_those_of_other_clients() -> None:
    assert framing.join(17, b"x") == b"\0\0\0\0\x11x"
    assert framing.split(b"\0\0\0\0\x11x") == (17, b"x")
    assert framing.join_place((0,), b"x") == b"\0x"
    # Two steps, 1 and 0, as zigzag varints: 4, 2, 0.
    assert framing.join_place((1, 0), b"x") == b"\x04\x02\0x"
    assert framing.split_place(b"\x04\x02\0x") == ((1, 0), b"x")
    # The long form of the usual place.
    assert framing.split_place(b"\x02\0x") == ((0,), b"x")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "too few"),
        (b"\0\0\0\0", "too few"),
        (b"{}{}{}", "byte 123"),
        (b"\0\xff\xff\xff\xff", "no number"),
    ],
)
def test_a_body_without_a_number_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(BodyMismatch, match=reason):
        framing.split(body)


@pytest.mark.parametrize(
    "content", [b"", b"\x02", b"\x01", b"\x02\x01", b"\xff\xff\xff\xff\xff\xff", b"\xd0\x0f\0"]
)
def test_a_place_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(BodyMismatch):
        framing.split_place(content)


@pytest.mark.parametrize("schema_id", [-1, 1 << 31, 1 << 40])
def test_a_number_that_no_schema_has_is_not_written(schema_id: int) -> None:
    with pytest.raises(BodyMismatch, match="is no number of a schema"):
        framing.join(schema_id, b"")


@given(
    st.integers(0, (1 << 31) - 1),
    st.lists(st.integers(0, 1000), min_size=1, max_size=20),
    st.binary(max_size=30),
)
def test_what_is_joined_is_split_again(schema_id: int, place: list[int], content: bytes) -> None:
    whole = framing.join(schema_id, framing.join_place(tuple(place), content))
    found = framing.split(whole)
    assert found.schema_id == schema_id
    assert framing.split_place(found.content) == (tuple(place), content)
