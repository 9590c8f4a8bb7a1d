"""Dispatches a push consumer's messages to its listeners, or to loops that iterate over them.

The first subscription decides between listeners and loops, and the consumer's mode decides how they
are delivered. Messages that are fetched before this is known wait here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
#: See `Dispatcher.open`.
AroundRedelivery = Callable[[RedeliveryPolicy, int], RedeliveryPolicy]

#: How many times concurrent consumption redelivers a message, unless configured otherwise.
_RECONSUME_MAX = 16


class Dispatcher:
    """Dispatches the messages of one consumer.

    Args:
        group: the consumer group.
        config: the consumer's settings.
        subscriptions: by topic, with the listeners; the owner may change them.
        ordered: whether each queue's messages are delivered in order.
        broadcasting: whether failed messages are dropped instead of sent back.
        counters: count the listener calls.
        pauses: the paused topics.
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
        self._around: AroundRedelivery | None = None
        self._delivery: Delivery | None = None
        #: Whether messages are iterated over; None before the first subscription.
        self._is_iterated: bool | None = None
        #: Windows with messages that were fetched before the strategy was known.
        self._early: list[Window] = []

    @property
    def iterated(self) -> IteratedDelivery:
        """The strategy for iterating.

        Raises:
            UsageError: messages go to listeners, or nothing is subscribed.
        """
        if not isinstance(self._delivery, IteratedDelivery):
            raise UsageError("to iterate over messages, subscribe topics without a listener")
        return self._delivery

    def check(self, listener: Listener | None) -> None:
        """Checks whether a subscription may have this listener; None: it is iterated over.

        Raises:
            UsageError: another subscription differs in this, or ordered consumption has no
                listener.
        """
        is_iterated = listener is None
        if self._is_iterated not in (None, is_iterated):
            raise UsageError("messages go to listeners or are iterated over, not both")
        if is_iterated and self._is_ordered:
            raise UsageError("ordered consumption needs listeners")

    def choose(self, listener: Listener | None) -> None:
        """Sets the strategy by a subscription's listener, or its lack of one."""
        self._is_iterated = listener is None
        self._make()

    def open(self, session: Session, around: AroundRedelivery | None = None) -> None:
        """Starts to deliver, as soon as the strategy is known.

        Args:
            around: takes what happens to failed messages that were pulled, and the number of
                failures after which a message is dead; returns what happens to all messages.
        """
        self._session, self._around = session, around
        self._make()

    def offer(self, window: Window) -> None:
        """Is called with a window that has messages to deliver."""
        if self._delivery is not None:
            self._delivery.offer(window)
        else:
            self._early.append(window)

    async def finish(self, window: Window) -> None:
        """Returns when no message of a window is in flight; for ordered consumption only."""
        if isinstance(self._delivery, OrderedDelivery):
            await self._delivery.finish(window)

    def close(self) -> Delivery | None:
        """Accepts no more windows; returns the strategy, which the caller has to stop."""
        self._session = None
        self._early.clear()
        delivery, self._delivery = self._delivery, None
        return delivery

    def _make(self) -> None:
        """Makes the strategy once the session and the first subscription are there."""
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
        pulled = Redelivery(session, self._group, reconsume_max=times, timeout_ms=timeout_ms)
        return pulled if self._around is None else self._around(pulled, times)
