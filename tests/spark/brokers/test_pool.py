from __future__ import annotations

import pytest

from sprocket.base.errors import ConnectFailed, RouteNotFound, UsageError
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import BrokerData, MappingInfo, QueueData, Route
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.spark.brokers.pool import ConnectionPool
from tests.spark.support import FakeBroker, Shelf, serving

NOBODY = "127.0.0.1:1"


def test_the_next_name_server_is_asked_when_one_is_gone_or_knows_less() -> None:
    knows_less, knows = FakeBroker({}), FakeBroker({QueueId("t", "broker-a", 0): Shelf()})
    with serving(knows_less), serving(knows):
        with ConnectionPool([NOBODY, knows_less.address, knows.address]) as wires:
            assert [str(queue) for queue in wires.route("t").readable] == ["t@broker-a:0"]
            asked: list[Command] = []
            knows_less.fault = lambda request: asked.append(request)  # type: ignore[func-returns-value]
            wires.route("t")
            assert not asked, "it stays with the one that answered"
            with pytest.raises(RouteNotFound, match="nothing"):
                wires.route("nothing")
            assert len(asked) == 1
        with ConnectionPool([NOBODY]) as wires, pytest.raises(ConnectFailed, match="route of 't'"):
            wires.route("t")


def test_a_broker_without_master_is_read_and_not_written() -> None:
    server = FakeBroker({})
    with serving(server), ConnectionPool([server.address]) as wires:
        route = Route(
            broker_datas=[BrokerData(broker_name="a", broker_addrs={1: server.address})],
            queue_datas=[QueueData(broker_name="a", perm=6, read_queue_nums=1, write_queue_nums=1)],
        )
        # An ordered topic keeps its queues while their broker is away.
        ordered = Route(
            broker_datas=route.broker_datas, queue_datas=route.queue_datas, order_topic_conf="a:1"
        )
        bodies = {"plain": route.encode(), "ordered": ordered.encode()}
        server.fault = lambda request: (
            Reply(body=bodies[request.fields["topic"]])
            if request.code == RouteOfTopic.code and request.fields["topic"] in bodies
            else None
        )
        with pytest.raises(RouteNotFound, match="takes messages"):
            wires.route_for_sending("plain", 4)
        assert wires.route_for_sending("ordered", 4).writable == (QueueId("ordered", "a", 0),)
        assert wires.to("a").address == server.address
        with pytest.raises(RouteNotFound):
            wires.to("a", is_for_sending=True)


def test_a_static_topic_is_refused_in_clear_words() -> None:
    server = FakeBroker({})
    mapping = MappingInfo(bname="a", curr_id_map={0: 0}, epoch=1, topic="t", total_queues=1)
    route = Route(topic_queue_mapping_by_broker={"a": mapping})
    server.fault = lambda request: Reply(body=route.encode())
    with (
        serving(server),
        ConnectionPool([server.address]) as wires,
        pytest.raises(UsageError, match="static"),
    ):
        wires.route("t")
