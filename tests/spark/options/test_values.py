"""Texts of options become values."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.options import values


def test_a_time_that_looks_like_seconds_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    parse = values.milliseconds(1, 86_400_000)
    assert parse("pullTimeoutMs", "30000") == 30_000
    assert not caplog.messages
    assert parse("pullTimeoutMs", "30") == 30
    assert caplog.messages == [
        "option pullTimeoutMs is 30 ms: the unit is milliseconds, not seconds"
    ]


def test_an_address_that_is_none_is_told_why() -> None:
    with pytest.raises(UsageError, match="option namesrvAddr is host:port without a scheme"):
        values.addresses("namesrvAddr", "http://n:9876")


def test_a_size_has_the_units_of_spark() -> None:
    sizes = ["64m", "1 KiB", "2g", "700", "5MB"]
    found = [values.size("maxBytesPerTrigger", one) for one in sizes]
    assert found == [64 << 20, 1024, 2 << 30, 700, 5 << 20]


@pytest.mark.parametrize("wrong", ["0", "-1m", "much", "1.5g", "64 mm", ""])
def test_what_is_no_size_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="option maxBytesPerTrigger takes a size such as 64m"):
        values.size("maxBytesPerTrigger", wrong)
