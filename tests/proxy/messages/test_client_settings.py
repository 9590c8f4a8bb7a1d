"""The settings that clients get."""

from __future__ import annotations

from typing import Any

import pytest

from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages.client_settings import (
    answered_settings,
    attempts_max,
)
from sprocket.proxy.messages.times import ms_of
from tests.proxy.world import consumer_settings, producer_settings

CONFIG = ProxyConfig()


def test_a_producer_gets_the_proxys_settings() -> None:
    made = answered_settings(producer_settings("a", "b"), CONFIG, None)
    assert [topic.name for topic in made.publishing.topics] == ["a", "b"]
    assert made.publishing.max_body_size == 4 << 20
    assert made.publishing.validate_message_type
    backoff = made.backoff_policy.exponential_backoff
    assert made.backoff_policy.max_attempts == 3
    assert (ms_of(backoff.initial), ms_of(backoff.max), backoff.multiplier) == (10, 1_000, 2.0)
    assert made.HasField("metric")
    assert not made.metric.on


def test_a_consumer_gets_its_groups_settings() -> None:
    group = GroupConfig(group_name="g", consume_message_orderly=True, retry_max_times=2)
    made = answered_settings(consumer_settings(), CONFIG, group)
    assert made.subscription.fifo
    assert made.subscription.receive_batch_size == 32
    assert ms_of(made.subscription.long_polling_timeout) == 20_000
    assert made.backoff_policy.max_attempts == 3


def test_a_consumers_own_settings_count_if_its_group_is_unknown() -> None:
    given = consumer_settings()
    given.subscription.fifo = True
    given.backoff_policy.max_attempts = 5
    made = answered_settings(given, CONFIG, None)
    assert made.subscription.fifo
    assert made.backoff_policy.max_attempts == 5
    assert ms_of(made.subscription.long_polling_timeout) == 20_000
    assert len(made.backoff_policy.customized_backoff.next) == 18


@pytest.mark.parametrize(
    ("policy", "initial", "longest", "factor"),
    [
        ({"type": "EXPONENTIAL"}, 5_000, 7_200_000, 2),
        (
            {
                "type": "EXPONENTIAL",
                "exponentialRetryPolicy": {"initial": 100, "max": 250, "multiplier": 3},
            },
            100, 250, 3,
        ),
    ],
)  # fmt: skip
def test_a_groups_growing_pauses_are_told(
    policy: dict[str, Any], initial: int, longest: int, factor: int
) -> None:
    made = answered_settings(consumer_settings(), CONFIG, GroupConfig(group_retry_policy=policy))
    backoff = made.backoff_policy.exponential_backoff
    found = (ms_of(backoff.initial), ms_of(backoff.max), backoff.multiplier)
    assert found == (initial, longest, factor)


def test_a_groups_list_of_pauses_is_told() -> None:
    policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1, 2_500]}}
    made = answered_settings(consumer_settings(), CONFIG, GroupConfig(group_retry_policy=policy))
    found = made.backoff_policy.customized_backoff.next
    assert [ms_of(each) for each in found] == [1, 2_500]


def test_there_is_one_delivery_at_least() -> None:
    assert attempts_max(GroupConfig(retry_max_times=-1)) == 1
    assert attempts_max(GroupConfig(retry_max_times=1 << 40)) == (1 << 31) - 1
