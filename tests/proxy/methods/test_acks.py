"""What clients do with the messages that they got."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.times import duration
from tests.proxy.world import (
    GROUP,
    TOPIC,
    Client,
    World,
    consumer_settings,
    message,
    play,
    proxy_before,
)

WAYS = pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])


async def change(client: Client, handle: str, milliseconds: int) -> Any:
    return await client.ask(
        "ChangeInvisibleDuration",
        pb.ChangeInvisibleDurationRequest(
            group=pb.Resource(name=GROUP),
            topic=pb.Resource(name=TOPIC),
            receipt_handle=handle,
            message_id="01ABCD",
            invisible_duration=duration(milliseconds),
        ),
    )


async def give_up(client: Client, handle: str) -> int:
    reply = await client.ask(
        "ForwardMessageToDeadLetterQueue",
        pb.ForwardMessageToDeadLetterQueueRequest(
            group=pb.Resource(name=GROUP),
            topic=pb.Resource(name=TOPIC),
            receipt_handle=handle,
            message_id="01ABCD",
        ),
    )
    return int(reply.status.code)


@WAYS
def test_each_entry_has_its_own_code(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message())
        (handle,) = (await client.receive(invisible=10)).handles
        assert await client.ack(handle, "x", handle) == [pb.OK, 50001, pb.OK]
        reply = await client.ask(
            "AckMessage",
            pb.AckMessageRequest(group=pb.Resource(name=GROUP), topic=pb.Resource(name=TOPIC)),
        )
        assert reply.status.code == 50001
        await asyncio.sleep(11)
        assert await client.ack(handle) == [pb.INVALID_RECEIPT_HANDLE]

    play(test, inner=inner)


@WAYS
def test_a_changed_time_counts_and_gives_another_handle(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message())
        (handle,) = (await client.receive(invisible=10)).handles
        longer = await change(client, handle, 60_000)
        assert longer.status.code == pb.OK
        assert longer.receipt_handle != handle
        assert (await client.receive(hold=20)).messages == []
        shorter = await change(client, longer.receipt_handle, 1_000)
        assert shorter.status.code == pb.OK
        assert (await client.receive(hold=20)).bodies == [b"hello"]
        assert (await change(client, shorter.receipt_handle, 1_000)).status.code == 40013
        assert (await change(client, handle, 43_200_001)).status.code == 40011
        assert (await change(client, "x", 1_000)).status.code == 50001

    play(test, inner=inner)


@WAYS
def test_a_client_goes_on_to_use_the_handle_that_it_got(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings(kind=pb.PUSH_CONSUMER))
        await client.send(message())
        (handle,) = (await client.receive(renew=True)).handles
        for _ in range(20):  # two minutes: it is renewed meanwhile
            await client.ask("Heartbeat", pb.HeartbeatRequest(group=pb.Resource(name=GROUP)))
            await asyncio.sleep(6)
        assert (await change(client, handle, 1_000)).status.code == pb.OK
        got = await client.receive(renew=True, hold=20)
        assert got.bodies == [b"hello"]
        await asyncio.sleep(50.5)
        assert await client.ack(*got.handles) == [pb.OK]

    play(test, inner=inner)


@WAYS
def test_a_message_that_is_given_up_is_a_dead_letter(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_group()
        await client.send(message())
        (handle,) = (await client.receive(invisible=10)).handles
        assert await give_up(client, handle) == pb.OK
        assert (await client.receive(hold=20)).messages == []
        assert await world.count(f"%DLQ%{GROUP}") == 1
        without_place = " ".join(handle.split(" ")[:8])
        assert await give_up(client, without_place) == pb.INVALID_RECEIPT_HANDLE
        assert await give_up(client, "x") == 50001

    play(test, inner=inner)


def test_a_handle_of_an_unknown_broker_is_refused() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message())
        (handle,) = (await client.receive(invisible=10)).handles
        words = handle.split(" ")
        words[5] = "elsewhere"
        assert await client.ack(" ".join(words)) == [pb.BAD_REQUEST]

    play(test)


def test_a_proxy_that_is_new_acknowledges_too() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message())
        (handle,) = (await client.receive(invisible=10)).handles
        async with proxy_before(world.cluster, ProxyConfig(port=8082)) as other:
            assert await Client(other.proxy).ack(handle) == [pb.OK]
        assert (await client.receive(hold=20)).messages == []

    play(test)
