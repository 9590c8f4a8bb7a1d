"""QueryRoute and QueryAssignment.

Source: RouteActivity of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import islice
from typing import TypeVar

from sprocket.message.lite import BIND_TOPIC
from sprocket.protocol.bodies import GroupConfig, Route
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.queues import assignments, queue_count, route_queues
from sprocket.proxy.messages.statuses import CallRefused, status

M = TypeVar("M")

#: Addresses of the proxy that a client may name.
_ADDRESSES_MAX = 64


#: What a client says of its own is in each queue of the answer.
_ENDPOINTS_BYTES_MAX = 1024
_NAMESPACE_LENGTH_MAX = _HOST_LENGTH_MAX = 255
#: Queues that are listed in one turn of the loop: each takes 3 µs.
_QUEUES_AT_ONCE = 512


class RouteMethods:
    """Says where the queues of topics are: all of them behind this proxy."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._long_lists = asyncio.Semaphore(1)

    # A topic may have thousands of queues, and a client may ask for its route a hundred times in
    # one write. So long lists are made one after the other, with others' turns between.
    async def _listed(self, route: Route, found: Iterator[M]) -> list[M]:
        """What is found in a route."""
        if queue_count(route) <= _QUEUES_AT_ONCE:
            return list(found)
        made: list[M] = []
        async with self._long_lists:
            while some := list(islice(found, _QUEUES_AT_ONCE)):
                made += some
                await asyncio.sleep(0)
        return made

    async def route(self, call: GrpcCall, request: pb.QueryRouteRequest) -> pb.QueryRouteResponse:
        """The queues of a topic.

        Raises:
            CallRefused: the topic cannot be one, or the client says too much of itself.
            SprocketError: it is unknown, or nobody answers.
        """
        name = checks.topic_name(request.topic)
        _check_sizes(request)
        topic = await self._brokers.topic(name)
        attribute = await self._brokers.type_of(name)
        made = pb.QueryRouteResponse(status=status(pb.OK))
        queues = route_queues(
            topic.route,
            request.topic,
            attribute=attribute,
            endpoints=_endpoints(call, request.endpoints),
        )
        made.message_queues.extend(await self._listed(topic.route, queues))
        return made

    async def assignment(
        self, call: GrpcCall, request: pb.QueryAssignmentRequest
    ) -> pb.QueryAssignmentResponse:
        """What a member of a group receives from.

        Raises:
            CallRefused: topic or group cannot be one, or the client says too much of itself.
            SprocketError: the topic is unknown, or nobody answers.
        """
        name, group = checks.topic_name(request.topic), checks.group_name(request.group)
        _check_sizes(request)
        topic = await self._brokers.topic(name)
        config = await self._brokers.group(group, name)
        shares = assignments(
            topic.route,
            request.topic,
            is_fifo=_is_fifo(config),
            endpoints=_endpoints(call, request.endpoints),
        )
        found = await self._listed(topic.route, shares)
        if not found:
            return pb.QueryAssignmentResponse(status=status(pb.FORBIDDEN, "no readable queue"))
        return pb.QueryAssignmentResponse(status=status(pb.OK), assignments=found)


def _check_sizes(request: pb.QueryRouteRequest | pb.QueryAssignmentRequest) -> None:
    if request.endpoints.ByteSize() > _ENDPOINTS_BYTES_MAX:
        text = f"endpoints have at most {_ENDPOINTS_BYTES_MAX} bytes"
        raise CallRefused(pb.BAD_REQUEST, text)
    if len(request.topic.resource_namespace) > _NAMESPACE_LENGTH_MAX:
        text = f"a namespace has at most {_NAMESPACE_LENGTH_MAX} characters"
        raise CallRefused(pb.BAD_REQUEST, text)


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
    if not host or len(host) > _HOST_LENGTH_MAX:
        return pb.Endpoints(scheme=pb.IPv4)
    address = pb.Address(host=host.strip("[]"), port=number)
    return pb.Endpoints(scheme=_scheme(address.host), addresses=[address])


def _scheme(host: str) -> pb.AddressScheme:
    try:
        return pb.IPv6 if ip_address(host).version == 6 else pb.IPv4
    except ValueError:
        return pb.DOMAIN_NAME
