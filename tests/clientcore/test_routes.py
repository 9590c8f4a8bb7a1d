from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    NoPermission,
    ProtocolError,
    RouteNotFound,
    SprocketError,
    TopicNotFound,
)
from sprocket.clientcore.routes import NameServers, nearest, no_route, promise, read_route
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import BrokerData, MappingInfo, QueueData, Route


def route_of(*queues: QueueData, **addresses: dict[int, str]) -> Route:
    brokers = [
        BrokerData(broker_name=name, broker_addrs=numbers) for name, numbers in addresses.items()
    ]
    return Route(broker_datas=brokers, queue_datas=list(queues))


def queues(broker: str, reads: int = 2, writes: int = 2, permission: int = 6) -> QueueData:
    return QueueData(
        broker_name=broker, read_queue_nums=reads, write_queue_nums=writes, perm=permission
    )


@settings(deadline=None)
@given(order=st.permutations(["a", "b", "c"]))
def test_queues_are_sorted_however_the_name_server_lists_them(order: list[str]) -> None:
    listed = route_of(*(queues(name) for name in order), **{n: {0: f"{n}:1"} for n in order})
    read = read_route("t", listed)
    expected = tuple(QueueId("t", name, number) for name in "abc" for number in range(2))
    assert read.writable == read.readable == expected


def test_permissions_and_numbers_of_queues_count() -> None:
    read = read_route(
        "t",
        route_of(
            queues("a", reads=3, writes=1),
            queues("b", permission=4),
            queues("c", permission=2),
            a={0: "a:1"},
            b={0: "b:1"},
            c={0: "c:1"},
        ),
    )
    assert [str(queue) for queue in read.writable] == ["t@a:0", "t@c:0", "t@c:1"]
    assert [str(queue) for queue in read.readable] == [
        "t@a:0", "t@a:1", "t@a:2", "t@b:0", "t@b:1",
    ]  # fmt: skip


def test_a_broker_of_slaves_only_can_be_read_and_not_written() -> None:
    read = read_route("t", route_of(queues("a"), a={1: "slave:1"}))
    assert read.writable == ()
    assert len(read.readable) == 2


def test_queues_of_a_broker_without_address_do_not_exist() -> None:
    read = read_route("t", route_of(queues("a"), queues("gone"), a={0: "a:1"}))
    assert {queue.broker for queue in read.readable} == {"a"}


def test_an_ordered_topic_keeps_its_queues_while_a_broker_is_away() -> None:
    route = route_of(queues("a"), a={0: "a:1"})
    route.order_topic_conf = "a:1;b:2;nonsense;c:x"
    assert [str(q) for q in read_route("t", route).writable] == ["t@a:0", "t@b:0", "t@b:1"]


def test_a_promised_topic_has_no_more_queues_than_the_client_wants() -> None:
    template = read_route("TBW102", route_of(queues("a", writes=8), a={0: "a:1"}))
    made = promise("new", template, 4)
    assert [str(queue) for queue in made.writable] == [f"new@a:{n}" for n in range(4)]
    assert made.is_promised


def test_an_order_configuration_sets_the_order_of_the_queues_too() -> None:
    """Java's producers number the queues as the configuration lists them."""
    route = route_of(queues("a"), queues("b"), a={0: "a:1"}, b={0: "b:1"})
    route.order_topic_conf = "b:2;a:1;b:2"
    read = read_route("t", route)
    assert [str(q) for q in read.writable] == ["t@b:0", "t@b:1", "t@a:0"]
    assert [q.broker for q in read.readable] == ["a", "a", "b", "b"]


def test_a_wish_for_a_process_that_is_away_gets_the_one_of_lowest_number() -> None:
    assert nearest({0: "m:1", 1: "s:1"}) == (0, "m:1")
    assert nearest({0: "m:1", 1: "s:1"}, 1) == (1, "s:1")
    assert nearest({2: "s:2", 1: "s:1"}) == (1, "s:1")
    assert nearest({}) is None
    assert nearest(None) is None


def test_the_name_server_that_answered_is_asked_first_from_then_on() -> None:
    servers = NameServers(["a", "b", "c"], first=4)
    assert list(servers) == ["b", "c", "a"]
    servers.answered("a")
    assert list(servers) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([TopicNotFound(), CallTimeout()], RouteNotFound),
        ([CallTimeout(), TopicNotFound()], RouteNotFound),
        ([CallTimeout(), ProtocolError()], ConnectFailed),
    ],
)
def test_a_topic_does_not_exist_if_one_name_server_says_so_and_none_knows_it(
    failures: list[SprocketError], expected: type[SprocketError]
) -> None:
    assert type(no_route("t", failures)) is expected


def test_a_static_topic_has_its_logical_queues_wherever_they_are() -> None:
    route = route_of(queues("a"), queues("b", 0, 0), a={0: "a:1", 1: "a:2"}, b={0: "b:1"})
    route.topic_queue_mapping_by_broker = {
        "a": MappingInfo(bname="a", curr_id_map={0: 0}, epoch=1, topic="t", total_queues=3),
        "b": MappingInfo(bname="b", curr_id_map={1: 0}, epoch=1, topic="t", total_queues=3),
    }
    read = read_route("t", route)
    name = "__syslo__global__"
    expected = tuple(QueueId("t", name, number) for number in range(3))
    assert read.writable == read.readable == expected
    found = [read.addresses.get(queue.place) for queue in expected]
    assert found == [{0: "a:1", 1: "a:2"}, {0: "b:1"}, None]
    assert read.addresses["a"] == {0: "a:1", 1: "a:2"}


def test_a_name_server_s_refusal_is_final() -> None:
    """As a server that is away it would be tried again for minutes."""
    refused = NoPermission("User:a has no permission to access Topic:t from 10.0.0.1")
    assert no_route("t", [CallTimeout(), refused, ConnectFailed()]) is refused
    assert isinstance(no_route("t", [refused, TopicNotFound()]), RouteNotFound)
