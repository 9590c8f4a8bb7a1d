"""QueryRoute and QueryAssignment.

Source: RouteActivity of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from ipaddress import ip_address

from sprocket.message.lite import BIND_TOPIC
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.queues import assignments, route_queues
from sprocket.proxy.messages.statuses import status

#: Addresses of the proxy that a client may name.
_ADDRESSES_MAX = 64


class RouteMethods:
    """Says where the queues of topics are: all of them behind this proxy."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    async def route(self, call: GrpcCall, request: pb.QueryRouteRequest) -> pb.QueryRouteResponse:
        """The queues of a topic.

        Raises:
            CallRefused: the topic cannot be one.
            SprocketError: it is unknown, or nobody answers.
        """
        name = checks.topic_name(request.topic)
        topic = await self._brokers.topic(name)
        attribute = await self._brokers.type_of(name)
        made = pb.QueryRouteResponse(status=status(pb.OK))
        made.message_queues.extend(
            route_queues(
                topic.route,
                request.topic,
                attribute=attribute,
                endpoints=_endpoints(call, request.endpoints),
            )
        )
        return made

    async def assignment(
        self, call: GrpcCall, request: pb.QueryAssignmentRequest
    ) -> pb.QueryAssignmentResponse:
        """What a member of a group receives from.

        Raises:
            CallRefused: topic or group cannot be one.
            SprocketError: the topic is unknown, or nobody answers.
        """
        name, group = checks.topic_name(request.topic), checks.group_name(request.group)
        topic = await self._brokers.topic(name)
        config = await self._brokers.group(group, name)
        found = list(
            assignments(
                topic.route,
                request.topic,
                is_fifo=_is_fifo(config),
                endpoints=_endpoints(call, request.endpoints),
            )
        )
        if not found:
            return pb.QueryAssignmentResponse(status=status(pb.FORBIDDEN, "no readable queue"))
        return pb.QueryAssignmentResponse(status=status(pb.OK), assignments=found)


def _is_fifo(group: GroupConfig | None) -> bool:
    """Whether members of a group receive from each queue by itself: not from lite topics."""
    return (
        group is not None and group.consume_message_orderly and BIND_TOPIC not in group.attributes
    )


def _endpoints(call: GrpcCall, given: pb.Endpoints) -> pb.Endpoints:
    """Where the client reaches this proxy: as it says, or else by the address that it called."""
    if given.addresses:
        return pb.Endpoints(scheme=given.scheme, addresses=given.addresses[:_ADDRESSES_MAX])
    host, _, port = call.metadata.get(":authority", "").rpartition(":")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else 0
    if not host:
        return pb.Endpoints(scheme=pb.IPv4)
    address = pb.Address(host=host.strip("[]"), port=number)
    return pb.Endpoints(scheme=_scheme(address.host), addresses=[address])


def _scheme(host: str) -> pb.AddressScheme:
    try:
        return pb.IPv6 if ip_address(host).version == 6 else pb.IPv4
    except ValueError:
        return pb.DOMAIN_NAME
