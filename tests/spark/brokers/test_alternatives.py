"""Servers are asked side by side: one that is silent costs a moment, not the whole deadline."""

from __future__ import annotations

import threading

import pytest

from sprocket.base.errors import CallTimeout, SprocketError
from sprocket.spark.brokers.alternatives import first_answer


def test_a_silent_one_does_not_keep_the_others_waiting() -> None:
    never = threading.Event()

    def ask(place: str) -> str:
        if place == "silent":
            assert never.wait(60)
        return place.upper()

    try:
        assert first_answer(["silent", "good"], ask, failures=[]) == ("good", "GOOD")
    finally:
        never.set()


def test_one_that_fails_is_followed_at_once_and_its_error_is_kept() -> None:
    failures: list[SprocketError] = []

    def ask(place: int) -> int:
        if place < 3:
            raise CallTimeout(str(place))
        return place

    assert first_answer([1, 2, 3], ask, failures=failures) == (3, 3)
    assert [str(each) for each in failures] == ["1", "2"]
    failures.clear()
    assert first_answer([1, 2], ask, failures=failures) is None
    assert first_answer([1], ask, failures=failures) is None
    assert len(failures) == 3


def test_other_errors_are_raised() -> None:
    def ask(place: int) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        first_answer([1, 2], ask, failures=[])
