"""Routes and shares as clients get them."""

from __future__ import annotations

import pytest

from sprocket.protocol.bodies import BrokerData, QueueData, Route
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.queues import assignments, route_queues

TOPIC = pb.Resource(name="t")
HERE = pb.Endpoints(scheme=pb.IPv4, addresses=[pb.Address(host="10.0.0.1", port=8081)])


def route(read: int, write: int, permission: int = 6, numbers: tuple[int, ...] = (0,)) -> Route:
    data = QueueData(broker_name="a", perm=permission, read_queue_nums=read, write_queue_nums=write)
    addresses = dict.fromkeys(numbers, "10.0.0.2:10911")
    return Route(
        broker_datas=[BrokerData(broker_name="a", broker_addrs=addresses)], queue_datas=[data]
    )


def queues(found: Route) -> list[pb.MessageQueue]:
    return list(route_queues(found, TOPIC, attribute="NORMAL", endpoints=HERE))


@pytest.mark.parametrize(
    ("read", "write", "permission", "expected"),
    [
        (2, 2, 6, [pb.READ_WRITE] * 2),
        (3, 2, 6, [pb.READ, pb.READ_WRITE, pb.READ_WRITE]),
        (1, 2, 6, [pb.WRITE, pb.READ_WRITE]),
        (2, 2, 4, [pb.READ] * 2),
        (2, 2, 2, [pb.WRITE] * 2),
        (0, 0, 0, [pb.NONE]),
        (-5, -5, 6, []),
    ],
)
def test_each_queue_has_its_permission(
    read: int, write: int, permission: int, expected: list[int]
) -> None:
    assert [each.permission for each in queues(route(read, write, permission))] == expected


def test_every_process_of_a_broker_is_at_the_proxy() -> None:
    found = queues(route(1, 1, numbers=(0, 2)))
    assert [(each.broker.name, each.broker.id) for each in found] == [("a", 0), ("a", 2)]
    assert all(each.broker.endpoints == HERE for each in found)
    assert [list(each.accept_message_types) for each in found] == [[pb.NORMAL]] * 2


def test_a_broken_name_server_makes_no_millions_of_queues() -> None:
    assert len(queues(route(1 << 60, 1 << 60))) == 16_384


def shares(found: Route, *, is_fifo: bool) -> list[int]:
    made = assignments(found, TOPIC, is_fifo=is_fifo, endpoints=HERE)
    return [each.message_queue.id for each in made]


def test_a_member_receives_from_each_broker_or_from_each_queue_in_order() -> None:
    assert shares(route(3, 3), is_fifo=False) == [-1]
    assert shares(route(3, 3), is_fifo=True) == [0, 1, 2]


@pytest.mark.parametrize("found", [route(3, 3, 2), route(0, 3), route(3, 3, numbers=(1,))])
def test_nobody_receives_where_nothing_can_be_read(found: Route) -> None:
    assert shares(found, is_fifo=False) == []
