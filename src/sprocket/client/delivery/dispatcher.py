"""Where a push consumer's messages go: to its listeners, or into a loop over them.

Which of both, the first subscription tells, and how, the consumer's kind. What was fetched before
that is known waits here.
"""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Listener, Subscription
from sprocket.client.config import ConsumerConfig
from sprocket.client.delivery.deliver import ConcurrentDelivery, OrderedDelivery
from sprocket.client.delivery.iterate import IteratedDelivery
from sprocket.client.delivery.redeliver import NoRedelivery, Redelivery, RedeliveryPolicy
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.client.session.session import Session

Delivery = ConcurrentDelivery | OrderedDelivery | IteratedDelivery

#: Tries after the first, in concurrent consumption, unless the configuration says otherwise.
_RECONSUME_MAX = 16


class Dispatcher:
    """One consumer's way out.

    Args:
        subscriptions: by topic, as they are at any time: they know the listeners.
        ordered: each queue's messages one after the other.
        broadcasting: nothing is given back.
    """

    def __init__(
        self,
        group: str,
        config: ConsumerConfig,
        *,
        subscriptions: Mapping[str, Subscription],
        ordered: bool,
        broadcasting: bool,
        counters: Counters,
        pauses: Pauses,
    ) -> None:
        self._group = group
        self._config = config
        self._subscriptions = subscriptions
        self._is_ordered = ordered
        self._is_broadcasting = broadcasting
        self._counters = counters
        self._pauses = pauses
        self._session: Session | None = None
        self._delivery: Delivery | None = None
        #: Whether messages are iterated over; None until the first subscription tells.
        self._is_iterated: bool | None = None
        #: Windows that had something before there was a subscription to say where it goes.
        self._early: list[Window] = []

    @property
    def iterated(self) -> IteratedDelivery:
        """What messages are iterated over by.

        Raises:
            UsageError: they go to listeners, or nothing is subscribed.
        """
        if not isinstance(self._delivery, IteratedDelivery):
            raise UsageError("to iterate over messages, subscribe topics without a listener")
        return self._delivery

    def check(self, listener: Listener | None) -> None:
        """Whether a subscription may have this listener, or none: to be iterated over.

        Raises:
            UsageError: another one says otherwise, or it is ordered and has no listener.
        """
        is_iterated = listener is None
        if self._is_iterated not in (None, is_iterated):
            raise UsageError("messages go to listeners or are iterated over, not both")
        if is_iterated and self._is_ordered:
            raise UsageError("ordered consumption needs listeners")

    def choose(self, listener: Listener | None) -> None:
        """A subscription has this listener, or none."""
        self._is_iterated = listener is None
        self._make()

    def open(self, session: Session) -> None:
        """The consumer has begun."""
        self._session = session
        self._make()

    def offer(self, window: Window) -> None:
        """A window has something to deliver."""
        if self._delivery is not None:
            self._delivery.offer(window)
        else:
            self._early.append(window)

    async def finish(self, window: Window) -> None:
        """Returns when nothing of a window is under way any more."""
        if isinstance(self._delivery, OrderedDelivery):
            await self._delivery.finish(window)

    def close(self) -> Delivery | None:
        """Takes nothing more, and gives what delivered: whoever has more to do stops it."""
        self._session = None
        self._early.clear()
        delivery, self._delivery = self._delivery, None
        return delivery

    def _make(self) -> None:
        """Makes what delivers, once it is known where to and through whom."""
        if self._session is None or self._delivery is not None or self._is_iterated is None:
            return
        redelivery, config = self._redelivery(self._session), self._config
        if self._is_iterated:
            seconds = config.reoffer_ms / 1000
            self._delivery = IteratedDelivery(redelivery, seconds, counters=self._counters)
        elif self._is_ordered:
            self._delivery = OrderedDelivery(
                self._subscriptions, redelivery, config, counters=self._counters
            )
        else:
            self._delivery = ConcurrentDelivery(
                self._subscriptions,
                redelivery,
                config,
                counters=self._counters,
                pauses=self._pauses,
            )
        for window in self._early:
            self._delivery.offer(window)
        self._early.clear()

    def _redelivery(self, session: Session) -> RedeliveryPolicy:
        if self._is_broadcasting:
            return NoRedelivery()
        config = self._config
        times = _RECONSUME_MAX if config.reconsume_max is None else config.reconsume_max
        timeout_ms = config.call_timeout_ms
        return Redelivery(session, self._group, reconsume_max=times, timeout_ms=timeout_ms)
