"""A consumer group's name is refused where it is given, by the rule of brokers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.topic import fault_of_consumer_group
from sprocket.spark.options import values

LONGEST = "g" * 120


@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer, PullConsumer])
def test_a_group_whose_retry_topic_would_be_no_topic_is_refused(
    kind: Callable[..., object],
) -> None:
    assert fault_of_consumer_group(LONGEST) is None
    kind(LONGEST, nameservers="names:9876")
    with pytest.raises(UsageError, match="at most 120"):
        kind(LONGEST + "g", nameservers="names:9876")


def test_spark_refuses_it_too() -> None:
    assert values.group("group", LONGEST) == LONGEST
    with pytest.raises(UsageError, match="at most 120"):
        values.group("group", LONGEST + "g")


def test_a_producer_group_has_no_retry_topic() -> None:
    Producer("p" * 255, nameservers="names:9876")
    with pytest.raises(UsageError, match="longer than"):
        Producer("p" * 256, nameservers="names:9876")
