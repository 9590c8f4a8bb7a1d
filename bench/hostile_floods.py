"""Attacks by rate: right requests, as many as a server takes, beside an innocent client.

`hostile` plays them. What the innocent client then waits is a matter of fair turns. Each gives what
the server took a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench import hostile_doors as doors
from bench.brokers import Node, create_topic
from bench.hostile_doors import Attack
from bench.load import drive, frame, pull_fields, send_fields
from bench.pop import pop_fields
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.messages import rocketmq_pb2 as pb

SECONDS = 5.0
_TOPIC = "BenchFlood"
_CALLS = 2_000


def _driven(
    port: int, requests: list[tuple[bytes, bytes]], *, connections: int, in_flight: int
) -> float:
    began, answered = time.monotonic(), 0
    while time.monotonic() < began + SECONDS:
        seen = drive(
            port, requests * 64, total=20_000, connections=connections, in_flight=in_flight
        )
        answered += seen.answered + seen.refused
    return answered / (time.monotonic() - began)


def topic(node: Node) -> None:
    """The topic of the flood, with messages."""
    create_topic(node, _TOPIC, 4)
    requests = [frame(310, send_fields(_TOPIC, number), b"x" * 256) for number in range(4)]
    drive(node.broker_port, requests, total=4_000)


def sends(connections: int, in_flight: int) -> Callable[[Attack], float]:
    """Sends, so many in flight over all connections."""

    def play(attack: Attack) -> float:
        requests = [frame(310, send_fields(_TOPIC, number), b"x" * 256) for number in range(4)]
        port = attack.node.broker_port
        return _driven(port, requests, connections=connections, in_flight=in_flight)

    return play


def pulls(attack: Attack) -> float:
    """Pulls of 32 messages, 256 in flight on 4 connections."""
    requests = [frame(11, pull_fields(_TOPIC, number, 0, 32)) for number in range(4)]
    return _driven(attack.node.broker_port, requests, connections=4, in_flight=256)


def pops(attack: Attack) -> float:
    """Pops of a topic, 256 in flight on 4 connections; what they take is not acknowledged."""
    requests = [frame(200050, pop_fields(_TOPIC, f"bench_pop{number}")) for number in range(4)]
    return _driven(attack.node.broker_port, requests, connections=4, in_flight=256)


def routes(attack: Attack) -> float:
    """Questions for a route, 256 in flight on 4 connections, at the name server in the process."""
    requests = [frame(105, {"topic": _TOPIC})]
    return _driven(attack.node.nameserver_port, requests, connections=4, in_flight=256)


def grpc_calls(attack: Attack) -> float:
    """Whole calls for a route; a connection is made again after 2,000 of them."""
    request = pb.QueryRouteRequest(topic=pb.Resource(name=_TOPIC))
    request.endpoints.scheme = pb.IPv4
    content = request.SerializeToString()
    block = doors.headers("QueryRoute", **{"x-mq-client-id": "flood"})
    parts = [doors.HELLO]
    for number in range(1, 2 * _CALLS, 2):
        parts.append(wire.frame(wire.HEADERS, 4, number, block))
        parts.append(wire.frame(wire.DATA, 1, number, doors.message(content)))
    return doors.flood(attack, [b"".join(parts)], doors.GRPC.port) * _CALLS
