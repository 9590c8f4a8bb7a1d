"""When a message that failed comes again, by the policy that an operator gave its group. Pure.

RocketMQ's broker keeps the policy and uses it for nothing; its proxy tells it to clients.
Source: GroupRetryPolicy, CustomizedRetryPolicy, ExponentialRetryPolicy of RocketMQ 5.3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sprocket.message.properties import DELAY_LEVELS
from sprocket.protocol.bodies import GroupConfig

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000}
#: A group's pauses if it does not say more: RocketMQ's delay levels, ms.
_PAUSES_MS = tuple(int(each[:-1]) * _UNITS[each[-1]] for each in DELAY_LEVELS.split())
_INITIAL_MS, _LONGEST_MS, _FACTOR = 5_000, 7_200_000, 2
_PAUSES_MAX = 100
_INT_MAX = (1 << 31) - 1
#: A message that failed for the first time waits for the third pause, as with delay levels.
_FIRST = 2


class Exponential(NamedTuple):
    """Pauses of which each is so many times as long as the one before, ms."""

    initial_ms: int
    longest_ms: int
    factor: int


# A group's policy is kept as its operator wrote it, so each value may be anything.
def exponential(group: GroupConfig) -> Exponential | None:
    """The growing pauses of a group; None if it has a list of pauses."""
    if group.group_retry_policy.get("type") != "EXPONENTIAL":
        return None
    given = group.group_retry_policy.get("exponentialRetryPolicy")
    given = given if isinstance(given, dict) else {}
    return Exponential(
        _positive(given.get("initial"), _INITIAL_MS),
        _positive(given.get("max"), _LONGEST_MS),
        _positive(given.get("multiplier"), _FACTOR),
    )


def customized(group: GroupConfig) -> tuple[int, ...]:
    """The list of a group's pauses, ms; if it has none, RocketMQ's delay levels."""
    given = group.group_retry_policy.get("customizedRetryPolicy")
    pauses = given.get("next") if isinstance(given, dict) else None
    if not isinstance(pauses, list) or not 0 < len(pauses) <= _PAUSES_MAX:
        return _PAUSES_MS
    return tuple(_positive(each, _LONGEST_MS) for each in pauses)


def pause_ms(group: GroupConfig, failures_before: int) -> int:
    """How long a message that has failed stays invisible.

    Source: nextDelayDuration of ExponentialRetryPolicy and CustomizedRetryPolicy.
    """
    times = max(failures_before, 0)
    growing = exponential(group)
    if growing is not None:
        initial_ms, longest_ms, factor = growing
        return min(longest_ms, initial_ms * int(factor ** min(times, 32)))
    pauses = customized(group)
    return pauses[min(times + _FIRST, len(pauses) - 1)]


def _positive(value: Any, otherwise: int) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 < value <= _INT_MAX else otherwise
