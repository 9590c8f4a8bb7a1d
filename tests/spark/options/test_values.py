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
