"""Where a push consumer's messages come from: queues that it holds, and what it pops.

The membership decides what is read, at each rebalance. It fetches the queues that are pulled
itself, and has the rest popped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import UsageError
from sprocket.client.assign import average, circle, strategy_of
from sprocket.client.base.subscription import Subscription
from sprocket.client.config import ConsumerConfig
from sprocket.client.delivery.dispatcher import Dispatcher
from sprocket.client.delivery.redeliver import RedeliveryPolicy
from sprocket.client.fetching.consume_mode import BROADCASTING, POPPING, SHARING
from sprocket.client.fetching.feed_parts import FeedParts
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters, Statistics, WindowStatistics
from sprocket.client.group.local_offsets import LocalOffsets
from sprocket.client.group.lookup import Lookup, RouteLookup
from sprocket.client.group.membership import Membership
from sprocket.client.group.offsets import Start, StartPosition
from sprocket.client.group.remote_requests import MemberInfo, RemoteRequests
from sprocket.client.group.shares import MembershipOptions
from sprocket.client.popping.ack_queue import AckQueue
from sprocket.client.popping.group_pauses import GroupPauses
from sprocket.client.popping.pop_client import INIT_MODES, PopClient
from sprocket.client.popping.pop_feed import PopFeedParts
from sprocket.client.popping.pop_lookup import AssignedLookup, PopLookup
from sprocket.client.popping.pop_redelivery import PopRedelivery
from sprocket.client.popping.popping import Popping
from sprocket.client.session.session import Session
from sprocket.message.queue import QueueId

#: How a push consumer gets its messages: it pulls the queues that the members share, or pops, or
#: the brokers decide.
Mode = Literal["pull", "pop", "broker"]
MODES = ("pull", "pop", "broker")

#: What heartbeats say of a consumer, by its mode and whether it is broadcasting.
_CONSUME_MODES = {("pull", True): BROADCASTING, ("pop", False): POPPING}


class SourceOptions(NamedTuple):
    """What does not change about a push consumer; its parameters explain it."""

    group: str
    config: ConsumerConfig
    start: Start
    ordered: bool
    broadcasting: bool
    mode: Mode
    nameservers: tuple[str, ...]


def check_mode(options: SourceOptions) -> None:
    """Checks what a consumer's mode needs.

    Raises:
        UsageError: there is no such mode, or it does not go with something else.
    """
    mode, start = options.mode, options.start
    if mode not in MODES:
        raise UsageError(f"a consumer's mode is {', '.join(MODES)}, not {mode!r}")
    if mode == "pull":
        return
    if options.broadcasting:
        raise UsageError("broadcasting pulls: a popped message goes to one member")
    if mode == "pop" and start not in INIT_MODES:
        raise UsageError(f"a group that pops starts 'first' or 'last', not at {start!r}")
    if mode == "broker" and strategy_of(options.config.assign) not in (average, circle):
        raise UsageError("brokers assign queues by the strategies AVG and AVG_BY_CIRCLE")


class MessageSource:
    """Reads messages for a push consumer.

    Args:
        session: connections and routes.
        options: facts about the consumer.
        subscriptions: by topic; the owner may change it.
        dispatcher: delivers the messages.
        counters, pauses: as for the parts.
        local: where a broadcasting consumer stores its offsets.
    """

    def __init__(
        self,
        session: Session,
        options: SourceOptions,
        subscriptions: Mapping[str, Subscription],
        dispatcher: Dispatcher,
        *,
        counters: Counters,
        pauses: Pauses,
        local: LocalOffsets | None,
    ) -> None:
        self._options = options
        self._config = config = options.config
        self._subscriptions = subscriptions
        self._popping: Popping | None = None
        self._group_pauses: GroupPauses | None = None
        membership_options = MembershipOptions(local=local)
        if options.mode == "pull":
            dispatcher.open(session)
        else:
            popping = self._popping = self._open(session, dispatcher, counters, pauses)
            membership_options = MembershipOptions(lookup=partial(self._lookup, popping))
        parts = FeedParts(
            session,
            options.group,
            config,
            dispatcher.offer,
            counters,
            finish=dispatcher.finish if options.ordered else None,
            renewal_ms=config.lease_renewal_ms,
            mode=_CONSUME_MODES.get((options.mode, options.broadcasting), SHARING),
            pauses=pauses,
        )
        beginning = StartPosition.of(options.start)
        self._membership = Membership(subscriptions, beginning, parts, options=membership_options)

    @property
    def queues(self) -> list[QueueId]:
        """What is held or popped, sorted; the number -1 stands for all queues of a broker."""
        popped = [] if self._popping is None else self._popping.queues
        return sorted([*self._membership.queues, *popped])

    @property
    def windows(self) -> list[WindowStatistics]:
        """Statistics of all windows."""
        popped = [] if self._popping is None else self._popping.windows
        return [*self._membership.windows, *popped]

    def requests(
        self, session: Session, statistics: Callable[[], Statistics], began_ms: int
    ) -> RemoteRequests:
        """What answers the requests of operators."""
        options = self._options
        info = MemberInfo(
            options.group, self._config, options.ordered, options.nameservers, began_ms,
            _CONSUME_MODES.get((options.mode, options.broadcasting), SHARING).consume_type,
        )  # fmt: skip
        return RemoteRequests(
            self._membership,
            self._subscriptions,
            info,
            statistics=statistics,
            clock=session.world.clock,
        )

    async def start(self) -> None:
        """Joins the group."""
        await self._membership.start()

    def subscribed(self, fresh: Sequence[str]) -> None:
        """Applies changed subscriptions; `fresh` as for `Membership.subscribed`."""
        self._membership.subscribed(fresh)
        if self._popping is not None:
            self._popping.update()

    async def stop_fetching(self) -> None:
        """Reads no more; popped messages that were not delivered become visible again at once."""
        await self._membership.stop_fetching()
        if self._popping is not None:
            await self._popping.stop()

    async def leave(self) -> None:
        """Sends acknowledgements and offsets of what is done, and leaves the group."""
        if self._popping is not None:
            await self._popping.close(Deadline.after_ms(self._config.call_timeout_ms))
        if self._group_pauses is not None:
            await self._group_pauses.close()
        await self._membership.leave()

    def _open(
        self, session: Session, dispatcher: Dispatcher, counters: Counters, pauses: Pauses
    ) -> Popping:
        options, config = self._options, self._config
        pops = PopClient(session, options.group, config.call_timeout_ms)
        parts = PopFeedParts(
            session,
            config,
            pops,
            AckQueue(pops),
            dispatcher.offer,
            counters,
            pauses,
            INIT_MODES["last" if options.start == "last" else "first"],
            finish=dispatcher.finish if options.ordered else None,
        )
        popping = Popping(parts, self._subscriptions)
        group_pauses = self._group_pauses = GroupPauses(session, options.group)

        def around(pulled: RedeliveryPolicy, reconsume_max: int) -> RedeliveryPolicy:
            return PopRedelivery(
                pops,
                popping.window_of,
                pulled=pulled,
                pauses=group_pauses,
                reconsume_max=reconsume_max,
                timeout_ms=config.call_timeout_ms,
            )

        dispatcher.open(session, around)
        return popping

    def _lookup(self, popping: Popping, routed: RouteLookup) -> Lookup:
        if self._options.mode == "pop":
            return PopLookup(routed, popping.assign)
        name = "AVG" if strategy_of(self._config.assign) is average else "AVG_BY_CIRCLE"
        return AssignedLookup(routed, popping.assign, name)
