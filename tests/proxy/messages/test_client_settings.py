"""The settings that clients get."""

from __future__ import annotations

from typing import Any

import pytest

from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages.client_settings import (
    answered_settings,
    attempts_max,
    pause_ms,
    retry_policy,
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
    ("policy", "pauses"),
    [
        ({"type": "CUSTOMIZED"}, [10_000, 30_000, 60_000]),
        ({"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1, 2, 3, 4]}}, [3, 4, 4]),
        ({"type": "EXPONENTIAL"}, [5_000, 10_000, 20_000]),
        (
            {
                "type": "EXPONENTIAL",
                "exponentialRetryPolicy": {"initial": 100, "max": 250, "multiplier": 2},
            },
            [100, 200, 250],
        ),
    ],
)
def test_pauses_follow_the_groups_policy(policy: dict[str, Any], pauses: list[int]) -> None:
    group = GroupConfig(group_retry_policy=policy)
    assert [pause_ms(group, attempts) for attempts in range(3)] == pauses


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"type": 7},
        {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": "soon"}},
        {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": ["x", -1, True, 1 << 70]}},
        {"type": "CUSTOMIZED", "customizedRetryPolicy": 7},
        {"type": "EXPONENTIAL", "exponentialRetryPolicy": {"initial": "x", "multiplier": 0}},
        {"type": "EXPONENTIAL", "exponentialRetryPolicy": []},
    ],
)
def test_a_policy_may_be_anything(policy: dict[str, Any]) -> None:
    group = GroupConfig(group_retry_policy=policy)
    retry_policy(group)
    assert pause_ms(group, 10**9) > 0


def test_there_is_one_delivery_at_least() -> None:
    assert attempts_max(GroupConfig(retry_max_times=-1)) == 1
    assert attempts_max(GroupConfig(retry_max_times=1 << 40)) == (1 << 31) - 1
