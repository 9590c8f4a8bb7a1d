"""The connections of one process: one to each server, made when needed, kept until it breaks.

Planner, reader and writer use the same class. It takes the addresses of brokers from the routes
that it requests; `clientcore` interprets a route, as for every other client. Blocking: see
docs/decisions/0011-blocking-connections.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sprocket.base.errors import (
    ProtocolError,
    RouteNotFound,
    SprocketError,
    TransportError,
    UsageError,
)
from sprocket.clientcore.routes import (
    NameServers,
    TopicRoute,
    nearest,
    no_route,
    promise,
    read_route,
)
from sprocket.message.topic import TEMPLATE
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.signing import Signer
from sprocket.spark.brokers.alternatives import first_answer
from sprocket.spark.brokers.connection import BlockingConnection

if TYPE_CHECKING:
    from sprocket.remoting.tls.dialling import TlsDialler
    from sprocket.remoting.tls.settings import ClientTls

TIMEOUT_S = 10.0


class ConnectionPool:
    """Connections to name servers and brokers. Use it with `with`, or `close` it.

    Args:
        nameservers: `host:port` of each.
        signer: signs requests, for brokers with access control.
        tls: how connections speak TLS; None for plain ones.
        addresses: the addresses of brokers that are known already, by name.
        timeout_s: for connecting, and for each reply unless the call has another.
    """

    def __init__(
        self,
        nameservers: Sequence[str],
        *,
        signer: Signer | None = None,
        tls: ClientTls | None = None,
        addresses: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._nameservers = NameServers(nameservers)
        self._signer = signer
        self._dialler: TlsDialler | None = None
        if tls is not None:  # most tasks need not load it
            from sprocket.remoting.tls.dialling import TlsDialler

            self._dialler = TlsDialler(tls)
        self._timeout_s = timeout_s
        self._wires: dict[str, BlockingConnection] = {}
        #: By broker name, from number to address, from the newest route with the broker.
        self._numbers = {name: {MASTER: address} for name, address in (addresses or {}).items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._wires.values():
            connection.close()
        self._wires.clear()

    @property
    def addresses(self) -> dict[str, str]:
        """By broker name, the address from which that broker is read."""
        found = {name: nearest(numbers) for name, numbers in self._numbers.items()}
        return {name: one[1] for name, one in found.items() if one is not None}

    def to(self, broker: str, *, is_for_sending: bool = False) -> BlockingConnection:
        """The connection to a broker.

        Args:
            is_for_sending: it must be the master; if false, a slave serves while the master is
                away.

        Raises:
            RouteNotFound: no route has its address.
            ConnectFailed: it does not accept the connection.
        """
        found = nearest(self._numbers.get(broker))
        if found is None or (is_for_sending and found[0] != MASTER):
            raise RouteNotFound(f"no address is known of broker {broker}")
        return self._at(found[1])

    def hang_up(self, connection: BlockingConnection) -> None:
        """Closes a connection; the next request to that server makes a new one."""
        if self._wires.get(connection.address) is connection:
            del self._wires[connection.address]
        connection.close()

    def hang_up_on(self, broker: str) -> None:
        """Closes all connections to a broker."""
        for address in self._numbers.get(broker, {}).values():
            if (connection := self._wires.get(address)) is not None:
                self.hang_up(connection)

    def ask_nameservers(self, header: Header) -> Command:
        """The reply of the first name server that gives a successful one.

        Raises:
            ReplyError, TransportError: the failure of the last one, if all failed.
        """
        return self._first_answer(header, lambda failures: failures[-1])

    def route(self, topic: str) -> TopicRoute:
        """The topic's route; the pool keeps the addresses in it.

        Raises:
            RouteNotFound: no broker has the topic.
            UsageError: the topic is static.
            ConnectFailed: no name server replied.
        """
        # Tasks that read get the addresses with their plan, and need not import all bodies.
        from sprocket.protocol.bodies import Route

        header = RouteOfTopic(topic=topic, accept_standard_json_only=True)
        reply = self._first_answer(header, partial(no_route, topic))
        route = read_route(topic, Route.decode(reply.body))
        if any(queue.is_logical for queue in route.readable[:1]):
            raise UsageError(f"topic {topic} is static; Spark knows no logical queues")
        self._numbers.update((name, some) for name, some in route.addresses.items() if some)
        return route

    def route_for_sending(self, topic: str, new_queues: int) -> TopicRoute:
        """The topic's route, or the one that it will have after a send has created it.

        Args:
            new_queues: the most queues that a new topic gets on each broker.

        Raises:
            RouteNotFound: no broker has the topic and none creates topics, or it accepts no
                messages.
            ConnectFailed: no name server replied.
        """
        try:
            route = self.route(topic)
        except RouteNotFound:
            route = promise(topic, self._template(topic), new_queues)
        if not route.writable:
            raise RouteNotFound(f"no broker takes messages for topic {topic}")
        return route

    def _template(self, topic: str) -> TopicRoute:
        """The route of the topic from which brokers create others."""
        try:
            return self.route(TEMPLATE)
        except RouteNotFound:
            raise RouteNotFound(
                f"no broker has topic {topic!r}, and none creates topics by itself: "
                f"sprocket topic create {topic}"
            ) from None

    def _first_answer(
        self, header: Header, error: Callable[[list[SprocketError]], SprocketError]
    ) -> Command:
        failures: list[SprocketError] = []
        places = list(self._nameservers)
        found = first_answer(places, partial(self._ask_nameserver, header), failures=failures)
        for address in places:  # a thread that is given up may still use its connection
            self._wires.pop(address, None)
        if found is None:
            raise error(failures)
        address, (reply, connection) = found
        self._wires[address] = connection
        self._nameservers.answered(address)
        return reply

    def _ask_nameserver(self, header: Header, address: str) -> tuple[Command, BlockingConnection]:
        connection = self._wires.get(address) or self._connected(address)
        try:
            return connection.ask(header), connection
        except (TransportError, ProtocolError):
            connection.close()
            raise

    def _at(self, address: str) -> BlockingConnection:
        connection = self._wires.get(address)
        if connection is None:
            connection = self._wires[address] = self._connected(address)
        return connection

    def _connected(self, address: str) -> BlockingConnection:
        return BlockingConnection(
            address, timeout_s=self._timeout_s, signer=self._signer, dialler=self._dialler
        )
