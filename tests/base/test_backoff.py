"""Pauses between attempts."""

from __future__ import annotations

from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.backoff import pauses
from sprocket.testing.entropy import SeededEntropy


def test_pauses_double_up_to_the_longest() -> None:
    assert list(islice(pauses(1.0, 5.0), 5)) == [1.0, 2.0, 4.0, 5.0, 5.0]


@settings(deadline=None, max_examples=60)
@given(st.integers(), st.floats(0.01, 10), st.floats(0.01, 100))
def test_drawn_pauses_stay_in_their_upper_half(seed: int, first: float, longest: float) -> None:
    entropy = SeededEntropy(seed)
    plain = islice(pauses(first, longest), 6)
    for pause, drawn in zip(plain, pauses(first, longest, entropy=entropy), strict=False):
        assert pause / 2 <= drawn <= pause
