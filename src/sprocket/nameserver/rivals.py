"""Notices two brokers that register under one name, and take each other off the routes in turn.

A broker that comes back at another address replaces itself, and that is all right. Two brokers show
in that the former address registers again. Only the last one to register is on the routes, so
messages of both stay unread: it is reported once, then rarely, and once when it is over. The reply
to the registration has the warning as its remark, which Java's brokers ignore and Sprocket's log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from sprocket.base.troubles import TROUBLES_MAX, Troubles
from sprocket.nameserver.instances import BrokerInfo, BrokerInstances

logger = logging.getLogger(__name__)

#: A name that has had one address for so long belongs to one broker, ms.
_QUIET_MS = 120_000


class _Replacement(NamedTuple):
    """The last time that an address took the place of another one.

    Attributes:
        is_back: whether the new address had been replaced before, so that there are two brokers.
    """

    former: str
    at_ms: int
    is_back: bool


class Rivals:
    """Brokers whose names were registered from more than one address.

    Args:
        now_ms: a clock that never jumps.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._troubles = Troubles(lambda: now_ms() / 1000, logger)
        self._replaced: dict[tuple[str, int], _Replacement] = {}

    def warning(self, info: BrokerInfo, known: BrokerInstances | None) -> str | None:
        """Compares a registration with what is known; returns what the broker is to know.

        Args:
            known: the broker of that name, before this registration.
        """
        if info.version.state:  # its master is elected, and may go to and fro
            return None
        key, now_ms = (info.broker, info.number), self._now_ms()
        instance = None if known is None else known.instances.get(info.number)
        last = self._replaced.get(key)
        if last is not None and now_ms - last.at_ms > _QUIET_MS:
            del self._replaced[key]
            self._troubles.ended(_name(key), f"{_name(key)} is registered from one address again")
            last = None
        if instance is not None and instance.address != info.address:
            is_back = last is not None and last.former == info.address
            last = _Replacement(instance.address, now_ms, is_back)
            if key in self._replaced or len(self._replaced) < TROUBLES_MAX:
                self._replaced[key] = last
        if last is None or not last.is_back:
            return None
        one, other = sorted((last.former, info.address))
        text = (
            f"two brokers register as {_name(key)}, at {one} and {other}: clients reach only the "
            "one that registered last; each broker needs a brokerName of its own"
        )
        self._troubles.failed(_name(key), text)
        return text


def _name(key: tuple[str, int]) -> str:
    return f"broker {key[0]!r} with brokerId {key[1]}"
