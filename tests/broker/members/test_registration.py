"""What name servers are told, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from sprocket.protocol.bodies import RegisterBody
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.admin import UpdateBrokerConfig
from sprocket.protocol.requests.route import RegisterBroker, UnregisterBroker
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.testing.loop import simulate
from tests.broker.parts import SUCCESS, Asker, serving, settle

OWN_TOPICS = 13


class Listener:
    """A name server that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[RegisterBroker] = []
        self.topics: list[dict[str, int]] = []
        self.left: list[UnregisterBroker] = []
        self.peers: set[Peer] = set()
        self.code = 0
        self.seconds = 0.0

    def answer(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        self.peers.add(peer)
        if self.seconds:
            return self._late(command)
        return self._now(command)

    async def _late(self, command: Command) -> Reply:
        await asyncio.sleep(self.seconds)
        return self._now(command)

    def _now(self, command: Command) -> Reply:
        if command.code == UnregisterBroker.code:
            self.left.append(command.read(UnregisterBroker))
            return Reply()
        self.told.append(command.read(RegisterBroker))
        table = RegisterBody.decode(command.body).topics.topic_config_table
        self.topics.append({name: topic.perm for name, topic in table.items()})
        return Reply(code=self.code)


@asynccontextmanager
async def listening(listener: Listener, port: int) -> AsyncIterator[str]:
    async with Server(one_by_one(listener.answer), port=port) as server:
        yield server.address


def test_all_name_servers_hear_everything_at_the_start_and_the_end() -> None:
    async def main() -> None:
        one, two = Listener(), Listener()
        async with listening(one, 9876) as first, listening(two, 9877) as second:
            async with serving(nameservers=(first, second), cluster="C", name="b", id=0) as asker:
                for listener in (one, two):
                    (told,) = listener.told
                    assert (told.broker_name, told.cluster_name, told.broker_id) == ("b", "C", 0)
                    assert told.broker_addr == asker.broker.address
                    assert told.ha_server_addr == "127.0.0.1:10912"
                    assert len(listener.topics[0]) == OWN_TOPICS
            for listener in (one, two):
                assert [left.broker_name for left in listener.left] == ["b"]

    simulate(lambda network: main())


def test_a_change_is_told_alone_and_at_once_and_the_whole_again_in_rounds() -> None:
    async def main() -> None:
        listener = Listener()
        async with listening(listener, 9876) as address, serving(nameservers=(address,)) as asker:
            await asker.create("T", permission=4)
            await settle()
            assert listener.topics[1:] == [{"T": 4}]
            await asyncio.sleep(31)
            assert len(listener.topics[2]) == OWN_TOPICS + 1
            assert await asker.code(DeleteTopic(topic="T")) == SUCCESS
            await settle()
            assert len(listener.topics[3]) == OWN_TOPICS

    simulate(lambda network: main())


def test_a_new_topic_is_at_the_name_servers_when_its_maker_is_told() -> None:
    async def main() -> None:
        listener = Listener()
        async with listening(listener, 9876) as address, serving(nameservers=(address,)) as asker:
            await asker.create("T")
            assert listener.topics[-1] == {"T": 6}
            await asker.send("U")
            assert listener.topics[-1] == {"U": 6}
            await asker.beat("g", topics={"T": "*"})
            assert listener.topics[-1] == {"%RETRY%g": 6}

    simulate(lambda network: main())


def test_a_name_server_that_hangs_holds_the_maker_of_a_topic_up_for_a_moment_only() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        listener = Listener()
        async with listening(listener, 9876) as address, serving(nameservers=(address,)) as asker:
            listener.seconds = 60
            began = loop.time()
            await asker.send("T")
            assert 1 <= loop.time() - began < 1.1
            await asker.send("T")
            assert loop.time() - began < 1.2

    simulate(lambda network: main())


def test_many_changes_at_once_are_told_together() -> None:
    async def main() -> None:
        listener = Listener()
        async with listening(listener, 9876) as address, serving(nameservers=(address,)) as asker:
            await asyncio.gather(*(asker.create(f"T{number}") for number in range(50)))
            await settle(100)
            assert len(listener.topics) < 10
            assert {name for told in listener.topics[1:] for name in told} == {
                f"T{number}" for number in range(50)
            }

    simulate(lambda network: main())


def test_a_name_server_that_refused_hears_everything_again_soon() -> None:
    async def main() -> None:
        listener = Listener()
        listener.code = 1
        async with listening(listener, 9876) as address, serving(nameservers=(address,)) as asker:
            await asker.create("T")
            await settle()
            listener.code = 0
            await asyncio.sleep(3)
            assert len(listener.topics[-1]) == OWN_TOPICS + 1

    simulate(lambda network: main())


def test_a_name_server_that_comes_back_is_told_at_once_and_others_did_not_wait_for_it() -> None:
    async def main() -> None:
        steady, lost = Listener(), Listener()
        loop = asyncio.get_running_loop()
        async with listening(steady, 9876) as first:
            async with listening(lost, 9877) as second:
                broker = serving(nameservers=(first, second))
                asker = await broker.__aenter__()
            began = loop.time()
            await asker.create("T")
            await settle()
            assert steady.topics[-1] == {"T": 6}
            again = Listener()
            async with listening(again, 9877):
                await asyncio.sleep(5)
                assert len(again.topics[0]) == OWN_TOPICS + 1
                assert loop.time() - began < 10
                await broker.__aexit__(None, None, None)

    simulate(lambda network: main())


def test_a_broker_starts_although_no_name_server_answers() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")

    async def main() -> None:
        async with serving(nameservers=("127.0.0.1:9876",)) as asker:
            await test(asker)

    simulate(lambda network: main())


def test_a_broker_that_may_not_be_written_says_so_in_its_routes() -> None:
    async def main() -> None:
        listener = Listener()
        async with listening(listener, 9876) as address, serving(nameservers=(address,)) as asker:
            await asker.create("T")
            assert await asker.code(UpdateBrokerConfig(), b"brokerPermission=4\n") == SUCCESS
            await settle()
            assert listener.topics[-1]["T"] == 4
            assert len(listener.topics[-1]) == OWN_TOPICS + 1

    simulate(lambda network: main())
