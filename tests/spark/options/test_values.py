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


@pytest.mark.parametrize("wrong", ["0", "-1m", "much", "1.5g", "64 mm", "1ib", ""])
def test_what_is_no_size_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="option maxBytesPerTrigger takes a size such as 64m"):
        values.size("maxBytesPerTrigger", wrong)


def test_a_size_is_no_larger_than_spark_counts() -> None:
    with pytest.raises(UsageError, match="option maxBytesPerTrigger must be at most 92233"):
        values.size("maxBytesPerTrigger", "999999999999999t")


@pytest.mark.parametrize(
    "wrong", ["1e3", "1_000", "\u0663", "\uff11\uff12", "0x10", "", "9" * 5000]
)
def test_what_is_no_number_is_refused_and_not_repeated_at_length(wrong: str) -> None:
    with pytest.raises(UsageError, match="option minPartitions takes a whole number") as caught:
        values.whole(1)("minPartitions", wrong)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("wrong", ["(", "*", ".{99999999999}", "(" * 50_000, " "])
def test_a_pattern_that_cannot_be_used_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="option subscribePattern is"):
        values.pattern("subscribePattern", wrong)


def test_a_broker_has_a_name_of_one_line() -> None:
    assert values.brokers("transactionBrokers", "a, b,a") == ("a", "b")
    with pytest.raises(UsageError, match="option transactionBrokers: a broker's name"):
        values.brokers("transactionBrokers", "broker-a\nbroker-b")
