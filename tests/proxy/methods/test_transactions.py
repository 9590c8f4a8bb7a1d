"""Transactions: committed, rolled back, and asked about."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.proxy.world import (
    TOPIC,
    Client,
    World,
    message,
    play,
    producer_settings,
    proxy_before,
)

WAYS = pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])
QUICK = BrokerConfig(transaction_timeout_ms=1_000, transaction_check_ms=1_000)


async def end(
    client: Client,
    transaction_id: str,
    resolution: pb.TransactionResolution,
    source: pb.TransactionSource = pb.SOURCE_CLIENT,
) -> int:
    request = pb.EndTransactionRequest(
        topic=pb.Resource(name=TOPIC),
        message_id="01ABCD",
        transaction_id=transaction_id,
        resolution=resolution,
        source=source,
    )
    return int((await client.ask("EndTransaction", request)).status.code)


async def half(client: Client, body: bytes = b"hello") -> str:
    reply = await client.send(message(body, message_type=pb.TRANSACTION))
    assert reply.status.code == pb.OK
    return str(reply.entries[0].transaction_id)


@WAYS
def test_a_commit_delivers_and_a_rollback_does_not(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        first, second = await half(client, b"1"), await half(client, b"2")
        assert (await client.receive(hold=5)).messages == []
        assert await end(client, first, pb.COMMIT) == pb.OK
        assert await end(client, second, pb.ROLLBACK) == pb.OK
        got = await client.receive(hold=5)
        assert got.bodies == [b"1"]
        assert got.messages[0].system_properties.message_type == pb.TRANSACTION
        for done in (first, second):
            for resolution in (pb.COMMIT, pb.ROLLBACK):
                assert await end(client, done, resolution) == 50001
        assert (await client.receive(hold=5)).messages == []

    play(test, inner=inner)


@WAYS
def test_a_producer_is_asked_what_it_did_not_say(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        await client.receive(hold=5)
        await client.connect(producer_settings())
        waiting = Client(world.proxy, "consumer@1").receiving(hold=20)
        await asyncio.sleep(0.5)
        await half(client)
        told = await client.told()
        assert not waiting.done()
        asked = told.recover_orphaned_transaction_command
        assert (asked.message.body, asked.message.topic.name) == (b"hello", TOPIC)
        assert asked.message.system_properties.message_id == "01ABCD"
        code = await end(client, asked.transaction_id, pb.COMMIT, pb.SOURCE_SERVER_CHECK)
        assert code == pb.OK
        assert (await waiting).bodies == [b"hello"]

    play(test, inner=inner, broker=QUICK)


def test_another_proxy_repeats_an_end_and_refuses_one_that_contradicts() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        first, second = await half(client, b"1"), await half(client, b"2")
        assert await end(client, first, pb.COMMIT) == pb.OK
        assert await end(client, second, pb.ROLLBACK) == pb.OK
        async with proxy_before(world.cluster, ProxyConfig(port=8082)) as proxied:
            other = Client(proxied.proxy)
            assert await end(other, first, pb.ROLLBACK) == 50001
            assert await end(other, second, pb.COMMIT) == 50001
            assert await end(other, first, pb.COMMIT) == pb.OK
            assert await end(other, second, pb.ROLLBACK) == pb.OK
        assert (await client.receive(hold=5)).bodies == [b"1"]

    play(test)


def test_an_end_that_failed_may_be_repeated() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        found = await half(client)
        machine = world.cluster.brokers[0]
        machine.pause()
        assert await end(client, found, pb.COMMIT) == pb.PROXY_TIMEOUT
        machine.wake()
        assert await end(client, found, pb.COMMIT) == pb.OK
        assert await end(client, found, pb.COMMIT) == 50001
        assert (await client.receive(hold=5)).bodies == [b"hello"]

    play(test)


def test_an_end_that_is_not_known_yet_leaves_the_transaction_open() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        found = await half(client)
        assert await end(client, found, pb.TRANSACTION_RESOLUTION_UNSPECIFIED) == pb.OK
        assert await end(client, found, pb.COMMIT) == pb.OK
        assert (await client.receive(hold=5)).bodies == [b"hello"]

    play(test)


def test_any_proxy_ends_a_transaction_at_any_time() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        found = await half(client)
        await asyncio.sleep(40)  # RocketMQ's proxy would have forgotten it
        async with proxy_before(world.cluster, ProxyConfig(port=8082)) as other:
            assert await end(Client(other.proxy), found, pb.COMMIT) == pb.OK
        assert (await client.receive(hold=5)).bodies == [b"hello"]

    play(test, broker=BrokerConfig(transaction_timeout_ms=600_000))


def test_wrong_ids_are_refused() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="TRANSACTION")
        assert await end(client, "", pb.COMMIT) == pb.INVALID_TRANSACTION_ID
        assert await end(client, "x", pb.COMMIT) == 50001
        assert await end(client, "elsewhere@1@1", pb.COMMIT) == pb.BAD_REQUEST
        assert await end(client, "broker-0@FFFF@0", pb.COMMIT) == 50001

    play(test)
