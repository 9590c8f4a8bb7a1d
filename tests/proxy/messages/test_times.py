"""Milliseconds there and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.proxy.messages.times import duration, ms_of, timestamp

MS = st.integers(-(2**40), 2**45)


@given(MS)
def test_milliseconds_come_back(milliseconds: int) -> None:
    assert ms_of(duration(milliseconds)) == milliseconds
    assert ms_of(timestamp(milliseconds)) == milliseconds
