"""What brokers elsewhere are told of a proxy's clients."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.protocol.bodies import ConsumerConnection, ProducerConnection, RunningInfo
from sprocket.protocol.codes import version_name
from sprocket.protocol.requests.client import (
    ConsumerConnections,
    ConsumerRunning,
    ProducerConnections,
)
from sprocket.proxy.clients import broker_members
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.proxy.world import (
    GROUP,
    TOPIC,
    Client,
    World,
    consumer_settings,
    play,
    producer_settings,
    proxy_before,
)


async def heartbeat(client: Client, group: str = GROUP) -> None:
    request = pb.HeartbeatRequest(group=pb.Resource(name=group))
    assert (await client.ask("Heartbeat", request)).status.code == pb.OK


async def connection(world: World, group: str = GROUP) -> ConsumerConnection | None:
    reply = await world.broker(ConsumerConnections(consumer_group=group))
    return None if reply.code else ConsumerConnection.decode(reply.body)


async def consumers(world: World, group: str = GROUP) -> list[str]:
    found = await connection(world, group)
    return sorted(each.client_id for each in found.connection_set) if found else []


async def producers(world: World, topic: str = TOPIC) -> list[str]:
    reply = await world.broker(ProducerConnections(producer_group=topic))
    found = [] if reply.code else ProducerConnection.decode(reply.body).connection_set
    return sorted(each.client_id for each in found)


async def some_clients(world: World, client: Client) -> Client:
    """Two consumers of one group, `me@1` and another one."""
    await world.make_topic()
    await client.receive(hold=5)
    await client.connect(consumer_settings())
    other = Client(world.proxy, "other@1", **{"x-mq-language": "JAVA"})
    await other.connect(consumer_settings())
    await asyncio.sleep(1)
    return other


@pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])
def test_operators_see_what_each_client_says_of_itself(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await some_clients(world, client)
        found = await connection(world)
        assert found is not None
        mine, other = sorted(found.connection_set, key=lambda each: each.client_id)
        assert (mine.client_id, mine.client_addr, mine.language) == (
            "me@1", "10.9.8.7:1234", "GO",
        )  # fmt: skip
        assert version_name(mine.version) == "5.1.4"
        assert (other.client_id, other.language) == ("other@1", "JAVA")
        assert (found.consume_type, found.message_model) == ("CONSUME_POP", "CLUSTERING")
        assert found.subscription_table[TOPIC].sub_string == "*"

    play(test, inner=inner)


def test_clients_stay_known_while_they_live_and_no_longer() -> None:
    async def test(world: World, client: Client) -> None:
        other = await some_clients(world, client)
        for _ in range(30):  # longer than a broker knows a client that is silent
            await heartbeat(client)
            await heartbeat(other)
            await asyncio.sleep(10)
        assert await consumers(world) == ["me@1", "other@1"]
        await client.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest())
        await asyncio.sleep(1)
        assert await consumers(world) == ["other@1"]
        other.disconnect()
        await asyncio.sleep(30)
        assert await consumers(world) == []

    play(test)


@pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])
def test_a_client_that_changes_its_group_and_topics_leaves_the_former_ones(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await some_clients(world, client)
        client.disconnect()
        await client.connect(consumer_settings("others"))
        await asyncio.sleep(1)
        assert (await consumers(world), await consumers(world, "others")) == (["other@1"], ["me@1"])
        client.disconnect()
        await client.connect(producer_settings("a", "b"))
        await asyncio.sleep(1)
        assert await consumers(world, "others") == []
        client.disconnect()
        await client.connect(producer_settings("b", "c"))
        await asyncio.sleep(1)
        found = [await producers(world, topic) for topic in ("a", "b", "c")]
        assert found == [[], ["me@1"], ["me@1"]]

    play(test, inner=inner)


def test_a_broker_that_was_started_again_learns_of_all_clients() -> None:
    async def test(world: World, client: Client) -> None:
        other = await some_clients(world, client)
        world.cluster.brokers[0].kill()
        await world.cluster.brokers[0].start()
        for _ in range(6):
            await heartbeat(client)
            await heartbeat(other)
            await asyncio.sleep(10)
        assert await consumers(world) == ["me@1", "other@1"]

    play(test)


def test_the_clients_of_a_proxy_that_stood_still_are_known_when_it_goes_on() -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network)
        await cluster.start()
        async with proxy_before(cluster, ProxyConfig(port=8081)) as world:
            client = Client(world.proxy)
            other = await some_clients(world, client)
            network.cut_off("broker-0")
            for _ in range(20):
                await heartbeat(client)
                await heartbeat(other)
                await asyncio.sleep(10)
            network.heal()
            for _ in range(6):
                await heartbeat(client)
                await heartbeat(other)
                await asyncio.sleep(10)
            assert await consumers(world) == ["me@1", "other@1"]

    simulate(main)


def test_clients_of_two_proxies_are_members_of_one_group_and_leave_with_their_proxy() -> None:
    async def test(world: World, client: Client) -> None:
        await some_clients(world, client)
        async with proxy_before(world.cluster, ProxyConfig(port=8082)) as second:
            third = Client(second.proxy, "third@1")
            await third.receive(hold=5)
            await third.connect(consumer_settings())
            await asyncio.sleep(1)
            assert await consumers(world) == ["me@1", "other@1", "third@1"]
        assert await consumers(world) == ["me@1", "other@1"]

    play(test)


def test_many_clients_are_told_in_many_lists_and_are_gone_with_the_connection() -> None:
    async def main(network: Network) -> None:
        cluster = Cluster(network)
        await cluster.start()
        async with proxy_before(cluster, ProxyConfig(port=8081)) as world:
            await world.make_topic()
            await Client(world.proxy).receive(hold=5)
            for at in range(350):
                await Client(world.proxy, f"many@{at}").connect(consumer_settings())
            await asyncio.sleep(2)
            assert len(await consumers(world)) == 350
            network.break_connections("broker-0")
            await asyncio.sleep(0.05)

    simulate(main)


def test_a_broker_that_is_silent_keeps_no_other_from_learning_of_clients() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        world.cluster.brokers[1].pause()
        for number in range(3):
            await Client(world.proxy, f"new@{number}").connect(consumer_settings())
            await asyncio.sleep(0.7)
            assert await consumers(world) == [f"new@{at}" for at in range(number + 1)]
        world.cluster.brokers[1].wake()

    play(test, brokers=2)


def test_a_question_reaches_the_client_that_was_named() -> None:
    async def test(world: World, client: Client) -> None:
        other = await some_clients(world, client)
        for asked in (client, other, client):
            name = asked.metadata["x-mq-client-id"]
            header = ConsumerRunning(consumer_group=GROUP, client_id=name, jstack_enable=True)
            waiting = asyncio.ensure_future(world.broker(header))
            told = await asked.told()
            nonce = told.print_thread_stack_trace_command.nonce
            trace = pb.ThreadStackTrace(nonce=nonce, thread_stack_trace=f"{name} waits")
            asked.tell(pb.TelemetryCommand(status=pb.Status(code=pb.OK), thread_stack_trace=trace))
            assert RunningInfo.decode((await waiting).body).jstack == f"{name} waits"

    play(test)


def test_a_broker_without_lists_of_clients_has_the_proxy_as_a_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_members.ProxiedClients, "code", 30_999)

    async def test(world: World, client: Client) -> None:
        other = await some_clients(world, client)
        (name,) = await consumers(world)
        assert name.startswith("proxy@")
        for _ in range(30):
            await heartbeat(client)
            await asyncio.sleep(10)
        assert await consumers(world) == [name]
        await client.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest())
        await other.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest())
        await asyncio.sleep(1)
        assert await consumers(world) == []

    play(test)
