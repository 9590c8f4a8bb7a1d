"""The figures of a broker that the console remembers, read from its state. Pure.

RocketMQ's brokers give texts. A rate is three of them: over ten seconds, a minute, ten minutes.
Source: StoreStatsService.getRuntimeInfo, AdminBrokerProcessor.prepareRuntimeInfo of RocketMQ 5.x.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

#: Our names, and the keys of brokers; the first that is there counts.
_KEYS = {
    "put": ("putTps",),
    "get": ("getTransferredTps", "getTransferedTps"),
    "disk": ("commitLogDiskRatio",),
    "behind": ("dispatchBehindBytes",),
}


def figures_of(state: Mapping[str, str]) -> dict[str, float]:
    """`put` and `get` in messages per second, `disk` as a share of 1, `behind` in bytes."""
    found = {}
    for name, keys in _KEYS.items():
        for key in keys:
            value = number_of(state.get(key))
            if value is not None:
                found[name] = value
                break
    return found


def number_of(text: str | None) -> float | None:
    """The first number of a text; None if there is none."""
    try:
        value = float((text or "").split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return None
    return value if math.isfinite(value) else None
