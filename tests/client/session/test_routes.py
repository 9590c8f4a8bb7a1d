from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, RouteNotFound
from sprocket.client.session.routes import Routes, promise, read_route
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import BrokerData, QueueData, Route
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.remoting.pool import Pool
from tests.client.fakes import FakeBroker, play


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


def test_the_next_name_server_is_asked_when_one_is_gone_or_knows_less() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as knows, FakeBroker() as knows_less, Pool() as pool:
            servers = ["127.0.0.1:1", knows_less.address, knows.address]
            routes = Routes(pool, servers, first=0, timeout_ms=3000)
            assert len((await routes.of("t", Deadline.after(5))).readable) == 1
            await routes.fetch("t", Deadline.after(5))
            assert knows_less.count(RouteOfTopic) == 1, "it stays with the one that answered"
            with pytest.raises(RouteNotFound):
                await routes.of("nothing", Deadline.after(5))

    play(main)


def test_without_any_name_server_the_old_route_stays() -> None:
    async def main() -> None:
        async with Pool() as pool:
            async with FakeBroker({"t": 1}) as server:
                routes = Routes(pool, [server.address], first=0, timeout_ms=500)
                found = await routes.of("t", Deadline.after(5))
            await routes.refresh()
            assert routes.known("t") == found
            with pytest.raises(ConnectFailed, match="no name server"):
                await routes.fetch("other", Deadline.after(5))

    play(main)


def test_a_topic_that_vanishes_for_a_moment_keeps_its_route() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as server, Pool() as pool:
            routes = Routes(pool, [server.address], first=0, timeout_ms=500)
            found = await routes.of("t", Deadline.after(5))
            del server.topics["t"]
            await routes.refresh()
            assert await routes.of("t", Deadline.after(5)) == found

    play(main)


def test_all_who_ask_at_once_share_one_question_and_changes_are_told() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as server, Pool() as pool:
            routes = Routes(pool, [server.address], first=0, timeout_ms=500)
            changed: list[str] = []
            routes.on_change = changed.append
            await asyncio.gather(*(routes.of("t", Deadline.after(5)) for _ in range(20)))
            assert server.count(RouteOfTopic) == 1
            await routes.refresh()
            server.topics["t"] = 2
            await routes.refresh()
            assert changed == ["t", "t"]
            assert routes.address("broker-a") == server.address

    play(main)
