from __future__ import annotations

import pytest

from sprocket.base.whole_numbers import whole_number


@pytest.mark.parametrize(("text", "number"), [("17", 17), (" +5 ", 5), ("-3", -3), ("007", 7)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "1e3", "1.0", "1_000", "0x10", "\u0663", "\uff11", "\u00b2", "9" * 5000, "1\0"],
)
def test_what_only_python_or_nobody_takes_for_a_number_is_none(text: str) -> None:
    assert whole_number(text) is None
