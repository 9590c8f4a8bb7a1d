"""JSON bodies: exact numbers, bounded depth, and no value that JSON does not have."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.json_bodies import JsonBodies

CODEC = JsonBodies()


def test_whole_numbers_stay_exact_beyond_64_bits() -> None:
    assert CODEC.decode(b'{"n":123456789012345678901234567890}') == {
        "n": 123456789012345678901234567890
    }


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"1 2", b"NaN", b"[Infinity]", b'"\xff"', b'"\\ud800"', b"[" * 100_000, b"1e400",
        b"[" * 101 + b"]" * 101, b'{"a":' * 500 + b"1" + b"}" * 500,
    ],
)  # fmt: skip
def test_what_is_no_json_or_too_deep_does_not_fit(body: bytes) -> None:
    with pytest.raises(BodyMismatch):
        CODEC.decode(body)


def test_a_hundred_levels_and_many_shallow_brackets_fit() -> None:
    assert CODEC.decode(b"[" * 100 + b"]" * 100)
    assert len(CODEC.decode(b"[" + b",".join([b"[]"] * 500) + b"]")) == 500


def test_a_byte_order_mark_is_not_content() -> None:
    assert CODEC.decode(b"\xef\xbb\xbf{}") == {}


@dataclass
class Point:
    x: float


@pytest.mark.parametrize(
    "value",
    [
        math.nan, [math.inf], {"a": (-math.inf,)}, "\ud800", object(), {(1, 2): 3}, {math.nan},
        Point(math.nan), [Point(math.inf)],
    ],
)  # fmt: skip
def test_a_value_that_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(BodyMismatch):
        CODEC.encode(value)


def test_objects_of_data_are_values() -> None:
    assert CODEC.encode([Point(0.5), {1}]) == b'[{"x":0.5},[1]]'


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(BodyMismatch, match="nested deeper"):
        CODEC.encode(ring)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_value_or_do_not_fit(body: bytes) -> None:
    with contextlib.suppress(BodyMismatch):
        CODEC.decode(body)
