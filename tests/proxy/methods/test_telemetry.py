"""Who the clients are, and what brokers and operators see of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.protocol.bodies import ConsumerConnection, ProducerConnection, RunningInfo
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.requests.client import (
    ConsumerConnections,
    ConsumerRunning,
    ProducerConnections,
)
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.status import GrpcError, GrpcStatus
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.proxy.world import (
    GROUP,
    TOPIC,
    Client,
    World,
    consumer_settings,
    play,
    producer_settings,
)


async def heartbeat(client: Client, group: str = GROUP) -> int:
    request = pb.HeartbeatRequest(group=pb.Resource(name=group))
    return int((await client.ask("Heartbeat", request)).status.code)


async def members(world: World, group: str = GROUP) -> list[tuple[str, str]]:
    reply = await world.broker(ConsumerConnections(consumer_group=group))
    if reply.code:
        return []
    found = ConsumerConnection.decode(reply.body)
    return [(each.client_id, each.language or "") for each in found.connection_set]


def test_a_client_gets_settings_and_is_then_known() -> None:
    async def test(world: World, client: Client) -> None:
        assert await heartbeat(client) == pb.UNRECOGNIZED_CLIENT_TYPE
        told = await client.connect(producer_settings())
        assert told.status.code == pb.OK
        assert told.settings.backoff_policy.max_attempts == 3
        assert await heartbeat(client) == pb.OK
        request = pb.NotifyClientTerminationRequest()
        assert (await client.ask("NotifyClientTermination", request)).status.code == pb.OK
        assert await heartbeat(client) == pb.UNRECOGNIZED_CLIENT_TYPE
        again = await client.ask("NotifyClientTermination", request)
        assert again.status.code == pb.UNRECOGNIZED_CLIENT_TYPE

    play(test)


@pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])
def test_a_broker_sees_each_client(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        await client.connect(consumer_settings())
        other = Client(world.proxy, "other@1", **{"x-mq-language": "JAVA"})
        await other.connect(consumer_settings())
        await asyncio.sleep(1)
        assert sorted(await members(world)) == [("me@1", "GO"), ("other@1", "JAVA")]
        await other.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest())
        await asyncio.sleep(1)
        assert await members(world) == [("me@1", "GO")]

    play(test, inner=inner)


@pytest.mark.parametrize("inner", [False, True])
def test_producers_are_groups_of_their_topics(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        await client.connect(producer_settings())
        await asyncio.sleep(1)
        reply = await world.broker(ProducerConnections(producer_group=TOPIC))
        assert len(ProducerConnection.decode(reply.body).connection_set) == 1

    play(test, inner=inner)


def test_signs_of_life_in_quick_succession_cost_a_broker_nothing() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings())
        counts = world.cluster.brokers[0].server._dispatch.counts
        before = counts[RequestCode.HEART_BEAT]
        for _ in range(100):
            assert await heartbeat(client) == pb.OK
        assert counts[RequestCode.HEART_BEAT] == before
        await asyncio.sleep(5)
        assert await heartbeat(client) == pb.OK
        assert counts[RequestCode.HEART_BEAT] == before + 1

    play(test, inner=True)


def test_a_silent_client_is_gone() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings())
        await asyncio.sleep(1)
        client.disconnect()
        await asyncio.sleep(10)
        assert await heartbeat(client) == pb.OK
        await asyncio.sleep(10)
        assert len(await members(world)) == 1
        await asyncio.sleep(15)
        assert await members(world) == []
        assert await heartbeat(client) == pb.UNRECOGNIZED_CLIENT_TYPE

    play(test, inner=True)


def test_an_operator_sees_the_stacks_of_a_consumer() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings())
        await asyncio.sleep(1)
        header = ConsumerRunning(consumer_group=GROUP, client_id="me@1", jstack_enable=True)
        asked = asyncio.ensure_future(world.broker(header))
        told = await client.told()
        nonce = told.print_thread_stack_trace_command.nonce
        trace = pb.ThreadStackTrace(nonce=nonce, thread_stack_trace="main: waits")
        client.tell(pb.TelemetryCommand(status=pb.Status(code=pb.OK), thread_stack_trace=trace))
        reply = await asked
        assert reply.code == 0, reply.remark
        assert RunningInfo.decode(reply.body).jstack == "main: waits"

    play(test, inner=True)


def settings(**more: Any) -> pb.Settings:
    return pb.Settings(**more)


@pytest.mark.parametrize(
    "wrong",
    [
        settings(client_type=pb.PRODUCER),
        settings(client_type=pb.PULL_CONSUMER),
        producer_settings("a b"),
        consumer_settings("a b"),
        settings(client_type=pb.PULL_CONSUMER, subscription=consumer_settings().subscription),
        producer_settings(*["t"] * 5000),
        settings(client_type=pb.PRODUCER, client_properties={"a": "x" * (1 << 20)}),
    ],
)
def test_wrong_settings_end_the_stream(wrong: pb.Settings) -> None:
    async def test(world: World, client: Client) -> None:
        with pytest.raises(GrpcError) as caught:
            await client.connect(wrong)
        assert caught.value.status is GrpcStatus.INVALID_ARGUMENT
        assert len(world.proxy.clients) == 0

    play(test)


def test_a_client_without_an_id_hears_so() -> None:
    async def test(world: World, client: Client) -> None:
        del client.metadata["x-mq-client-id"]
        told = await client.connect(producer_settings())
        assert told.status.code == pb.CLIENT_ID_REQUIRED

    play(test)


def test_names_that_are_no_topics_do_not_reach_brokers() -> None:
    async def test(world: World, client: Client) -> None:
        told = await client.connect(consumer_settings(topic="no topic"))
        assert told.status.code == pb.OK

    play(test, inner=True)


def test_what_is_kept_of_clients_is_bounded() -> None:
    async def test(world: World, client: Client) -> None:
        big = producer_settings(*[f"topic-{at}" for at in range(3000)])
        await client.connect(big)
        for at in range(5):
            other = Client(world.proxy, f"other@{at}")
            with pytest.raises(GrpcError):
                await other.connect(big)
        assert len(world.proxy.clients) == 1
        await client.connect(producer_settings())
        await Client(world.proxy, "other@1").connect(big)
        assert len(world.proxy.clients) == 2

    play(test, config=ProxyConfig(port=8081, settings_bytes_max=1 << 16))


def test_there_are_not_more_clients_than_allowed() -> None:
    async def test(world: World, client: Client) -> None:
        await client.connect(producer_settings())
        await client.connect(producer_settings())
        other = Client(world.proxy, "other@1")
        with pytest.raises(GrpcError):
            await other.connect(producer_settings())
        assert len(world.proxy.clients) == 1

    play(test, config=ProxyConfig(port=8081, clients_max=1))
