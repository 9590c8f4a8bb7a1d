"""Asks the masters of other brokers, which hold older parts of logical queues.

Source: RpcClientImpl, BrokerOuterAPI of RocketMQ 5.3.
"""

from __future__ import annotations

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, ReplyError, SprocketError, TransportError
from sprocket.broker.settings import BrokerSettings
from sprocket.protocol.bodies import Route
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.remoting.pool import Pool

#: How long another broker may take for an answer, s. Source: BrokerConfig.forwardTimeout.
_SECONDS = 3.0
_ROUTE_SECONDS = 2.0


class OtherBrokers:
    """The other brokers of the name servers' routes.

    Args:
        pool: the broker's own connections to others.
    """

    def __init__(self, pool: Pool, settings: BrokerSettings) -> None:
        self._pool = pool
        self._settings = settings
        #: Addresses of masters, by broker name.
        self._masters: dict[str, str] = {}

    async def ask(self, broker: str, topic: str, header: Header) -> Command:
        """The reply of a broker's master, whatever its code.

        Only a master is asked: a slave may lack the newest messages, and whoever believed that
        there are no more would skip them.

        Args:
            topic: one that the broker has.

        Raises:
            TransportError: no name server knows its master, or that does not answer.
        """
        deadline = Deadline.after(_SECONDS)
        address = self._masters.get(broker) or await self._find(broker, topic)
        try:
            return await self._pool.call(address, header, deadline=deadline)
        except TransportError:
            self._masters.pop(broker, None)
            raise

    async def _find(self, broker: str, topic: str) -> str:
        """Asks the name servers one after the other.

        Raises:
            ConnectFailed: none of them knows the master.
        """
        asked = RouteOfTopic(topic=topic, accept_standard_json_only=True)
        nameservers = self._settings.config.nameservers
        failure: SprocketError | None = None
        for nameserver in nameservers:
            deadline = Deadline.after(_ROUTE_SECONDS / len(nameservers))
            try:
                reply = await self._pool.ask(nameserver, asked, deadline=deadline)
                route = Route.decode(reply.body)
            except SprocketError as error:
                failure = error
                continue
            for each in route.broker_datas:
                if MASTER in each.broker_addrs:
                    self._masters[each.broker_name] = each.broker_addrs[MASTER]
            if broker in self._masters:
                return self._masters[broker]
        raise ConnectFailed(
            f"broker {broker}, which holds a part of topic {topic}, has no master on any route"
        ) from failure

    def refused(self, broker: str, error: ReplyError) -> None:
        """Forgets where a broker's master is, which answered that it is none."""
        self._masters.pop(broker, None)
