from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, RouteNotFound
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.client.session.reachability import Reachability
from sprocket.client.session.routes import RouteCache
from sprocket.message.message import Message, StoredMessage
from sprocket.protocol.command import Command
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer
from tests.client.fakes import FakeBroker, play, queue_of, until, world


def test_the_next_name_server_is_asked_when_one_is_gone_or_knows_less() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as knows, FakeBroker() as knows_less, Pool() as pool:
            servers = ["127.0.0.1:1", knows_less.address, knows.address]
            routes = RouteCache(pool, servers, first=0, timeout_ms=3000)
            assert len((await routes.of("t", Deadline.after(5))).readable) == 1
            await routes.fetch("t", Deadline.after(5))
            assert knows_less.count(RouteOfTopic) == 1, "it stays with the one that answered"
            with pytest.raises(RouteNotFound):
                await routes.of("nothing", Deadline.after(5))

    play(main)


class Mute(FakeBroker):
    """It accepts everything, and answers nothing."""

    async def _answer(self, command: Command, peer: Peer) -> Any:
        await asyncio.get_running_loop().create_future()


def test_a_mute_name_server_costs_a_quarter_of_a_second_once() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with FakeBroker({"t": 1}) as knows, Mute() as mute, Pool() as pool:
            for first in range(2):
                servers = [mute.address, knows.address]
                routes = RouteCache(pool, servers, first=first, timeout_ms=3000)
                began = loop.time()
                await routes.of("t", Deadline.after(5))
                assert loop.time() - began < 0.4
                began = loop.time()
                await routes.fetch("t", Deadline.after(5))
                assert loop.time() - began < 0.1, "it stays with the one that answered"
                began = loop.time()
                with pytest.raises(RouteNotFound):
                    await routes.fetch("nothing", Deadline.after(5))
                assert loop.time() - began < 1.5

    play(main)


def test_a_mute_name_server_or_broker_delays_neither_sends_nor_messages() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def one_round(name: str, servers: list[str]) -> None:
            arrived = asyncio.Event()

            async def take(message: StoredMessage) -> None:
                arrived.set()

            producer = Producer("p", nameservers=servers, world=world(f"p{name}"))
            consumer = PushConsumer(f"g{name}", nameservers=servers, world=world(f"c{name}"))
            consumer.subscribe("orders", listener=take)
            await producer.start()
            await consumer.start()
            await until(lambda: queue_of("orders") in consumer.queues, 5)
            await producer.send(Message("orders", b"x"), queue=queue_of("orders"))
            await arrived.wait()
            clients.extend([producer, consumer])

        clients: list[Producer | PushConsumer] = []
        async with FakeBroker({"orders": 1}) as broker, Mute(name="broker-0") as mute:
            broker.others["broker-0"] = mute.address
            for seed in range(4):
                began = loop.time()
                await one_round(f"{seed}", [mute.address, broker.address])
                assert loop.time() - began < 2
            for client in clients:
                await client.close()

    play(main)


def test_without_any_name_server_the_old_route_stays() -> None:
    async def main() -> None:
        async with Pool() as pool:
            async with FakeBroker({"t": 1}) as server:
                routes = RouteCache(pool, [server.address], first=0, timeout_ms=500)
                found = await routes.of("t", Deadline.after(5))
            await routes.refresh()
            assert routes.known("t") == found
            with pytest.raises(ConnectFailed, match="no name server"):
                await routes.fetch("other", Deadline.after(5))

    play(main)


def test_a_topic_that_vanishes_for_a_moment_keeps_its_route() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as server, Pool() as pool:
            routes = RouteCache(pool, [server.address], first=0, timeout_ms=500)
            found = await routes.of("t", Deadline.after(5))
            del server.topics["t"]
            await routes.refresh()
            assert await routes.of("t", Deadline.after(5)) == found

    play(main)


def test_all_who_ask_at_once_share_one_question_and_changes_are_told() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as server, Pool() as pool:
            routes = RouteCache(pool, [server.address], first=0, timeout_ms=500)
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


def test_a_broker_without_a_master_is_reported_until_a_route_has_one_again() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as knows, Pool() as pool:
            reachability = Reachability(asyncio.get_running_loop().time)
            routes = RouteCache(
                pool, [knows.address], first=0, timeout_ms=3000, reachability=reachability
            )
            reachability.failed(f"broker {queue_of('t').broker}", ConnectFailed("no route has it"))
            await routes.of("t", Deadline.after(5))
            assert not reachability.troubles.is_any

    play(main)
