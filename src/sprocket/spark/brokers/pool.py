"""The connections of one process: one to each server, made when needed, kept until it breaks.

Planner, reader and writer ask through the same piece. It knows where brokers are from the routes
that it asked for. Blocking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from sprocket.base.errors import RouteNotFound, TopicNotFound, TransportError
from sprocket.protocol.bodies import Route
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.signing import Signer
from sprocket.spark.brokers.connection import Wire

TIMEOUT_S = 10.0


class Wires:
    """Connections to name servers and brokers. Use it with `with`, or `close` it.

    Args:
        nameservers: `host:port` of each; the first that answers is asked.
        signer: signs requests, for brokers with access control.
        addresses: where brokers are, by name, as far as it is known already.
        timeout_s: for connecting, and for each answer unless said otherwise.

    Attributes:
        addresses: of brokers, by name, as the routes told.
    """

    def __init__(
        self,
        nameservers: Sequence[str],
        *,
        signer: Signer | None = None,
        addresses: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._nameservers = nameservers
        self._signer = signer
        self._timeout_s = timeout_s
        self._wires: dict[str, Wire] = {}
        self.addresses = dict(addresses or {})

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
        """Hangs up everywhere."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    def to(self, broker: str) -> Wire:
        """The connection to a broker.

        Raises:
            RouteNotFound: no route told of it.
            ConnectFailed: it does not answer.
        """
        address = self.addresses.get(broker)
        if address is None:
            raise RouteNotFound(f"no address is known of broker {broker}")
        return self._at(address)

    def hang_up(self, wire: Wire) -> None:
        """Ends a connection; the next to that server is made anew."""
        if self._wires.get(wire.address) is wire:
            del self._wires[wire.address]
        wire.close()

    def hang_up_on(self, broker: str) -> None:
        """Ends the connection to a broker, if there is one."""
        wire = self._wires.get(self.addresses.get(broker, ""))
        if wire is not None:
            self.hang_up(wire)

    def ask_nameserver(self, header: Header) -> Command:
        """The answer of the first name server that gives one.

        Raises:
            ReplyError: it said no.
            TransportError: none answered.
        """
        failure: TransportError | None = None
        for address in self._nameservers:
            try:
                wire = self._at(address)
                try:
                    return wire.ask(header)
                except TransportError:
                    self.hang_up(wire)
                    raise
            except TransportError as error:
                failure = failure or error
        assert failure is not None, "no name server is configured"
        raise failure

    def route(self, topic: str) -> Route:
        """Which brokers have a topic; where they are is remembered.

        Raises:
            RouteNotFound: no broker has it.
            TransportError: no name server answered.
        """
        try:
            reply = self.ask_nameserver(RouteOfTopic(topic=topic, accept_standard_json_only=True))
        except TopicNotFound:
            raise RouteNotFound(f"no broker has topic {topic}") from None
        route = Route.decode(reply.body)
        for data in route.broker_datas:
            if data.broker_addrs:
                self.addresses[data.broker_name] = data.broker_addrs[min(data.broker_addrs)]
        return route

    def _at(self, address: str) -> Wire:
        wire = self._wires.get(address)
        if wire is None:
            wire = Wire(address, timeout_s=self._timeout_s, signer=self._signer)
            self._wires[address] = wire
        return wire
