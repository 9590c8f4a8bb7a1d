"""When groups get messages again that failed."""

from __future__ import annotations

from typing import Any

import pytest

from sprocket.clientcore.retry_policy import customized, exponential, pause_ms
from sprocket.protocol.bodies import GroupConfig


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
    assert exponential(group) or customized(group)
    assert pause_ms(group, 10**9) > 0
