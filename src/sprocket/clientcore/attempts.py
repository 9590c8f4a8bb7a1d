"""Whether a failed request is sent again, and after which pause. Pure.

Source: DefaultMQProducerImpl.sendDefaultImpl of RocketMQ 5.x, which has no pauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.errors import SprocketError


def may_pass(error: SprocketError) -> bool:
    """Whether the same request may succeed later, at another broker, or with a new route."""
    return error.retriable or error.refresh_route


class Attempts:
    """The failed attempts of one request.

    Args:
        retries: how many times the request may be sent again.
        pauses: seconds before each attempt at a broker that has failed already.

    Attributes:
        count: how many attempts failed.
        failed_at: the broker of the last failed attempt; empty if no broker was chosen yet.
    """

    __slots__ = ("_brokers", "_pauses", "_retries", "count", "failed_at")

    def __init__(self, retries: int, pauses: Iterator[float]) -> None:
        self._retries = retries
        self._pauses = pauses
        self._brokers: set[str] = set()
        self.count = 0
        self.failed_at = ""

    def another(self, error: SprocketError, broker: str = "") -> bool:
        """Counts a failed attempt, and returns whether to try again.

        Args:
            broker: the broker of the attempt; empty if none could be chosen.
        """
        self.count += 1
        self.failed_at = broker
        self._brokers.add(broker)
        return self.count <= self._retries and may_pass(error)

    def pause(self, broker: str = "") -> float:
        """Seconds to wait before the next attempt, which goes to this broker.

        A broker that has not failed is tried at once, because the failures of others do not concern
        it. One that has failed gets time to recover: without a pause all attempts would be used up
        within the milliseconds in which it refuses connections.
        """
        return next(self._pauses) if broker in self._brokers else 0.0
