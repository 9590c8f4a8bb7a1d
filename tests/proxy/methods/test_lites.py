"""Lite topics through the service: subscriptions, receives, acknowledgements, and who is told."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.broker.lite.lites import PARENT
from tests.proxy.world import Client, World, consumer_settings, message, play

GROUP = "workers"
WAYS = pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])


async def begin(world: World, client: Client, **attributes: str) -> None:
    """Makes topic and group, and connects a client that consumes lite topics."""
    await world.make_topic(PARENT, queues=4, kind="LITE")
    await bind(world, **attributes)
    await connect(client)


async def bind(world: World, name: str = GROUP, **attributes: str) -> None:
    given = {"+lite.bind.topic": PARENT}
    given |= {f"+{key.replace('_', '.')}": value for key, value in attributes.items()}
    await world.make_group(name, attributes=given, retry_max_times=3)


async def connect(client: Client, *, kind: pb.ClientType = pb.LITE_PUSH_CONSUMER) -> pb.Settings:
    answer = await client.connect(consumer_settings(GROUP, PARENT, kind=kind))
    return answer.settings


async def sync(
    client: Client, action: pb.LiteSubscriptionAction, *lites: str,
    option: pb.OffsetOption | None = None, group: str = GROUP,
) -> int:  # fmt: skip
    request = pb.SyncLiteSubscriptionRequest(
        action=action, topic=pb.Resource(name=PARENT), group=pb.Resource(name=group),
        lite_topic_set=lites, version=1,
    )  # fmt: skip
    if option is not None:
        request.offset_option.CopyFrom(option)
    reply = await client.ask("SyncLiteSubscription", request)
    code: int = reply.status.code
    return code


async def send(client: Client, lite: str, body: bytes) -> pb.SendMessageResponse:
    return await client.send(
        message(body, topic=PARENT, message_type=pb.LITE, lite_topic=lite, message_id=body.hex())
    )


async def receive(client: Client, **more: object) -> tuple[list[bytes], list[str]]:
    got = await client.receive(topic=PARENT, group=GROUP, **more)
    return got.bodies, got.handles


@WAYS
def test_a_client_gets_messages_of_its_lite_topics(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        assert await sync(client, pb.PARTIAL_ADD, "a", "b") == pb.OK
        waiting = client.receiving(topic=PARENT, hold=20)
        await asyncio.sleep(3)
        assert (await send(client, "c", b"no")).status.code == pb.OK
        reply = await send(client, "a", b"yes")
        assert reply.status.code == pb.OK
        got = await waiting
        assert got.bodies == [b"yes"]
        system = got.messages[0].system_properties
        assert (system.lite_topic, system.message_type) == ("a", pb.LITE)
        assert (system.queue_offset, system.delivery_attempt) == (0, 1)
        assert dict(got.messages[0].user_properties) == {}
        assert got.messages[0].topic.name == PARENT
        assert await client.ack(*got.handles, topic=PARENT) == [pb.OK]
        assert (await receive(client))[0] == []

    play(test, inner=inner)


@WAYS
def test_what_fails_comes_again_and_then_is_a_dead_letter(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        await sync(client, pb.PARTIAL_ADD, "a")
        await send(client, "a", b"1")
        for attempt in (1, 2, 3, 4):
            got = await client.receive(topic=PARENT, hold=20)
            assert got.messages[0].system_properties.delivery_attempt == attempt
            request = pb.ChangeInvisibleDurationRequest(
                group=pb.Resource(name=GROUP), topic=pb.Resource(name=PARENT),
                receipt_handle=got.handles[0], lite_topic="a",
            )  # fmt: skip
            request.invisible_duration.seconds = 2
            reply = await client.ask("ChangeInvisibleDuration", request)
            assert reply.status.code == pb.OK
        assert (await receive(client, hold=20))[0] == []
        await asyncio.sleep(1)
        assert await world.count(f"%DLQ%{GROUP}") == 1
        await send(client, "a", b"2")
        assert (await receive(client))[0] == [b"2"]

    play(test, inner=inner)


def test_a_message_stays_invisible_while_its_client_lives() -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        await sync(client, pb.PARTIAL_ADD, "a")
        await send(client, "a", b"1")
        got = await client.receive(topic=PARENT, renew=True)
        for _ in range(20):
            await asyncio.sleep(10)
            client.tell(pb.TelemetryCommand(settings=consumer_settings(
                GROUP, PARENT, kind=pb.LITE_PUSH_CONSUMER
            )))  # fmt: skip
            await client.told()
            assert await sync(client, pb.COMPLETE_ADD, "a") == pb.OK
        assert (await receive(client))[0] == []
        assert await client.ack(*got.handles, topic=PARENT) == [pb.OK]
        await send(client, "a", b"2")
        assert (await receive(client))[0] == [b"2"]

    play(test)


@WAYS
def test_a_client_is_told_that_another_has_its_lite_topic_now(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client, lite_sub_model="Exclusive")
        other = Client(world.proxy, "other@1")
        await connect(other)
        await sync(client, pb.PARTIAL_ADD, "a", "b")
        await sync(other, pb.PARTIAL_ADD, "a")
        told = await client.told()
        assert told.notify_unsubscribe_lite_command.lite_topic == "a"
        await send(client, "a", b"1")
        assert (await receive(client))[0] == []
        assert (await receive(other))[0] == [b"1"]

    play(test, inner=inner)


@WAYS
def test_a_client_that_is_gone_subscribes_nothing(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        await sync(client, pb.PARTIAL_ADD, "a")
        other = Client(world.proxy, "other@1")
        await connect(other)
        await sync(other, pb.PARTIAL_ADD, "a")
        reply = await client.ask(
            "NotifyClientTermination",
            pb.NotifyClientTerminationRequest(group=pb.Resource(name=GROUP)),
        )
        assert reply.status.code == pb.OK
        await asyncio.sleep(1)
        (machine,) = world.cluster.brokers
        subscriptions = machine.server._parts.lite._control._subscriptions
        assert [each.client_id for each in subscriptions.clients()] == ["other@1"]
        await send(other, "a", b"1")
        assert (await receive(other))[0] == [b"1"]

    play(test, inner=inner)


def test_settings_say_how_many_lite_topics_a_client_may_subscribe() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(PARENT, kind="LITE")
        await bind(world, lite_sub_client_quota="7")
        for kind in (pb.LITE_PUSH_CONSUMER, pb.LITE_SIMPLE_CONSUMER):
            settings = await connect(client, kind=kind)
            subscription = settings.subscription
            assert (subscription.lite_subscription_quota, subscription.max_lite_topic_size) == (
                7, 64,
            )  # fmt: skip

    play(test)


def test_the_reasons_of_brokers_have_codes_of_their_own() -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        assert await sync(client, pb.PARTIAL_ADD, "a", "b") == pb.OK
        assert await sync(client, pb.PARTIAL_ADD, "c") == pb.LITE_SUBSCRIPTION_QUOTA_EXCEEDED
        assert await sync(client, pb.PARTIAL_ADD, "a b") == pb.ILLEGAL_LITE_TOPIC
        assert await sync(client, pb.PARTIAL_REMOVE, "a b") == pb.OK
        assert await sync(client, pb.COMPLETE_ADD, "x", group="a b") == pb.ILLEGAL_CONSUMER_GROUP
        assert (await send(client, "a", b"1")).status.code == pb.OK
        reply = await send(client, "b", b"2")
        assert reply.status.code == pb.LITE_TOPIC_QUOTA_EXCEEDED
        assert (await send(client, "a b", b"3")).status.code == pb.ILLEGAL_LITE_TOPIC
        plain = await client.send(message(topic=PARENT))
        assert plain.status.code == pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        await world.make_topic("plain")
        wrong = await client.send(message(topic="plain", lite_topic="a"))
        assert wrong.status.code == pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE

    play(test, broker=BrokerConfig(lite_subscriptions_max=2, lite_topics_max=1))


def test_a_subscription_may_begin_with_old_messages() -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        await sync(client, pb.PARTIAL_ADD, "a")
        await send(client, "a", b"1")
        bodies, handles = await receive(client)
        assert bodies == [b"1"]
        await client.ack(*handles, topic=PARENT)
        other = Client(world.proxy, "other@1")
        await connect(other)
        option = pb.OffsetOption(policy=pb.MIN)
        assert await sync(other, pb.PARTIAL_ADD, "a", option=option) == pb.OK
        assert (await receive(other))[0] == [b"1"]

    play(test)


def test_a_group_in_order_has_one_assignment_for_a_broker() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(PARENT, queues=4, kind="LITE")
        await world.make_group(
            GROUP, attributes={"+lite.bind.topic": PARENT}, consume_message_orderly=True
        )
        reply = await client.ask(
            "QueryAssignment",
            pb.QueryAssignmentRequest(
                topic=pb.Resource(name=PARENT), group=pb.Resource(name=GROUP)
            ),
        )
        assert len(reply.assignments) == 1

    play(test)


def test_what_was_not_acknowledged_comes_again_after_a_kill_of_the_broker() -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        await sync(client, pb.PARTIAL_ADD, "a", "b")
        await send(client, "a", b"1")
        await send(client, "b", b"2")
        bodies, handles = await receive(client, invisible=30)
        assert bodies == [b"1", b"2"]
        assert await client.ack(handles[0], topic=PARENT) == [pb.OK]
        (machine,) = world.cluster.brokers
        machine.kill()
        await machine.start()
        await asyncio.sleep(5)
        assert await sync(client, pb.COMPLETE_ADD, "a", "b") == pb.OK
        assert (await receive(client))[0] == []
        assert (await receive(client, hold=20, invisible=30))[0] in ([], [b"2"])
        await asyncio.sleep(30)
        await send(client, "a", b"3")
        got, handles = [], []
        while len(got) < 2:
            bodies, more = await receive(client, hold=20)
            got += bodies
            await client.ack(*more, topic=PARENT)
        assert sorted(got) == [b"2", b"3"]

    play(test)


def test_all_brokers_give_what_they_have() -> None:
    async def test(world: World, client: Client) -> None:
        await begin(world, client)
        names = [f"n{number}" for number in range(12)]
        for machine in world.cluster.brokers[1:]:
            world.cluster.brokers.insert(0, world.cluster.brokers.pop())
            await bind(world)
            del machine
        await sync(client, pb.PARTIAL_ADD, *names)
        for name in names:
            assert (await send(client, name, name.encode())).status.code == pb.OK
        got: list[bytes] = []
        while len(got) < len(names):
            bodies, handles = await receive(client, hold=5)
            got += bodies
            assert set(await client.ack(*handles, topic=PARENT)) <= {pb.OK}
        assert sorted(got) == sorted(name.encode() for name in names)

    play(test, brokers=2)
