"""Receives: what comes, when, to whom, and what becomes of it if its client is gone."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.message.message import Message
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.proxy.world import Client, World, consumer_settings, message, play

WAYS = pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])


def now() -> float:
    return asyncio.get_running_loop().time()


@WAYS
def test_a_receive_waits_until_a_message_arrives(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        began = now()
        waiting = client.receiving(hold=20)
        await asyncio.sleep(7)
        await client.send(message())
        got = await waiting
        assert (got.code, got.bodies) == (pb.OK, [b"hello"])
        assert 7 <= now() - began < 8
        assert await client.ack(*got.handles) == [pb.OK]
        began = now()
        got = await client.receive(hold=6)
        assert (got.code, got.messages) == (pb.MESSAGE_NOT_FOUND, [])
        assert 6 <= now() - began < 7

    play(test, inner=inner)


@WAYS
def test_what_is_not_acknowledged_comes_again(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message(b"1", message_id="A1"))
        await client.send(message(b"2", message_id="A2"))
        first = await client.receive(invisible=10)
        await client.ack(first.handles[0])
        again = await client.receive(hold=20)
        assert again.bodies == [b"2"]
        system = again.messages[0].system_properties
        assert (system.delivery_attempt, system.message_id) == (2, "A2")
        assert again.messages[0].topic.name == "orders"
        assert await client.ack(*again.handles) == [pb.OK]
        assert (await client.receive(hold=20)).messages == []

    play(test, inner=inner)


def test_tags_and_conditions_choose() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        for tag, amount in (("a", "1"), ("b", "2"), ("c", "3")):
            sent = message(tag.encode(), tag=tag)
            sent.user_properties["amount"] = amount
            await client.send(sent)
        assert (await client.receive(tags="a || c")).bodies == [b"a", b"c"]
        assert (await client.receive(group="other", sql="amount > 1")).bodies == [b"b", b"c"]
        assert (await client.receive(group="third", sql="amount >")).code == 40010
        assert (await client.receive(group="third", tags="||")).code == 40010

    play(test)


def test_a_tag_of_the_same_hash_is_not_delivered() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message(b"other", tag="BB"))
        await client.send(message(b"mine", tag="Aa"))
        assert (await client.receive(tags="Aa")).bodies == [b"mine"]
        assert (await client.receive(tags="*", hold=20)).messages == []

    play(test)


def test_a_group_in_order_has_one_in_hand_and_an_attempt_repeats() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="FIFO")
        await world.make_group(consume_message_orderly=True)
        for at in range(3):
            await client.send(message(b"%d" % at, message_group="g"))
        first = await client.receive(count=1, attempt="try-1")
        assert first.bodies == [b"0"]
        assert (await client.receive(count=1, attempt="try-2")).messages == []
        assert (await client.receive(count=1, attempt="try-1")).bodies == [b"0"]
        last = await client.receive(count=1, attempt="try-1")
        assert await client.ack(*last.handles) == [pb.OK]
        assert (await client.receive(count=1)).bodies == [b"1"]

    play(test)


def test_what_failed_often_is_a_dead_letter() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_group(retry_max_times=1)
        await client.send(message())
        assert (await client.receive(invisible=10)).bodies == [b"hello"]
        assert (await client.receive(invisible=10, hold=20)).bodies == [b"hello"]
        assert (await client.receive(hold=20)).messages == []
        assert await world.count("%DLQ%workers") == 1

    play(test)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"topic": "unknown"}, 40402),
        ({"topic": "a b"}, 40002),
        ({"group": "a b"}, 40003),
        ({"group": "CID_RMQ_SYS_x"}, 40003),
        ({"invisible": 9}, 40011),
        ({"invisible": 43_201}, 40011),
        ({"topic": "closed"}, 40300),
        ({"seconds": 4.9}, 40018),
    ],
)
def test_wrong_receives_are_refused(asked: dict[str, object], code: int) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_topic("closed", permission=2)
        assert (await client.receive(**asked)).code == code

    play(test)


def test_a_client_without_an_id_hears_so_and_no_more() -> None:
    async def test(world: World, client: Client) -> None:
        del client.metadata["x-mq-client-id"]
        call = client.receive_call()
        await client.run_receive(call)
        (part,) = call.sent
        assert pb.ReceiveMessageResponse.FromString(part).status.code == 40017

    play(test)


def test_an_old_client_hears_of_a_short_time_in_the_old_way() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        client.metadata["x-mq-client-version"] = "5.0.2"
        assert (await client.receive(seconds=3)).code == pb.BAD_REQUEST

    play(test)


@WAYS
def test_a_receive_whose_client_is_gone_takes_no_message_with_it(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        waiting = client.receiving(hold=20, invisible=3600)
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(1)
        await client.send(message())
        began = now()
        assert (await client.receive(hold=20)).bodies == [b"hello"]
        assert now() - began < (0.5 if inner else 4)

    play(test, inner=inner)


def test_many_receives_that_are_given_up_leave_room() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        for _ in range(30):
            waiting = client.receiving(hold=20)
            await asyncio.sleep(0.01)
            waiting.cancel()
        await asyncio.sleep(0.1)
        assert (await client.receive(hold=5)).code == pb.MESSAGE_NOT_FOUND

    play(test, inner=True, config=ProxyConfig(port=8081, receives_max=2))


def test_too_many_receives_are_refused() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        waiting = [client.receiving(hold=5) for _ in range(2)]
        await asyncio.sleep(1)
        assert (await client.receive(hold=5)).code == pb.TOO_MANY_REQUESTS
        assert [each.code for each in await asyncio.gather(*waiting)] == [40401, 40401]
        assert (await client.receive(hold=5)).code == pb.MESSAGE_NOT_FOUND

    play(test, config=ProxyConfig(port=8081, receives_max=2))


@WAYS
def test_a_message_stays_invisible_while_its_client_lives(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings(kind=pb.PUSH_CONSUMER))
        await client.send(message())
        first = await client.receive(renew=True)
        other = Client(world.proxy, "other@1")
        for _ in range(8):
            assert (await other.receive(hold=20)).messages == []
            await client.ask("Heartbeat", pb.HeartbeatRequest(group=pb.Resource(name="workers")))
        assert await client.ack(*first.handles) == [pb.OK]
        for _ in range(8):
            assert (await other.receive(hold=20)).messages == []

    play(test, inner=inner)


@WAYS
def test_what_a_client_that_is_gone_had_in_hand_comes_soon(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings(kind=pb.PUSH_CONSUMER))
        await client.send(message())
        assert (await client.receive(renew=True)).bodies == [b"hello"]
        client.disconnect()
        began = now()
        other = Client(world.proxy, "other@1")
        got = await other.receive(hold=20)
        while not got.messages:
            got = await other.receive(hold=20)
        assert got.bodies == [b"hello"]
        assert now() - began < 30

    play(test, inner=inner)


def test_what_a_client_had_in_hand_comes_at_once_when_it_says_that_it_is_gone() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.connect(consumer_settings(kind=pb.PUSH_CONSUMER))
        await client.send(message())
        assert (await client.receive(renew=True)).bodies == [b"hello"]
        await client.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest())
        began = now()
        other = Client(world.proxy, "other@1")
        assert (await other.receive(hold=20)).bodies == [b"hello"]
        assert now() - began < 5

    play(test)


def test_a_message_of_rocketmqs_clients_arrives() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        async with world.producer() as producer:
            await producer.send(Message("orders", bytes(10_000), tag="t", properties={"a": "b"}))
        (got,) = (await client.receive()).messages
        assert dict(got.user_properties) == {"a": "b"}
        assert got.system_properties.body_encoding == pb.GZIP

    play(test)


def test_what_comes_for_a_client_that_has_left_is_not_kept_for_it() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        await client.connect(consumer_settings())
        waiting = client.receiving(hold=20, renew=True)
        await asyncio.sleep(1)
        await client.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest())
        await client.send(message())
        assert (await waiting).bodies == [b"hello"]
        await asyncio.sleep(70)  # it is renewed by nobody
        assert (await Client(world.proxy, "other@1").receive(hold=10)).bodies == [b"hello"]

    play(test)


def test_receives_whose_clients_hang_up_count_until_the_broker_answers() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.receive(hold=5)
        for _ in range(2):
            waiting = client.receiving(hold=20)
            await asyncio.sleep(0.5)
            waiting.cancel()
            await asyncio.sleep(0.1)
        assert (await client.receive(hold=5)).code == pb.TOO_MANY_REQUESTS
        await asyncio.sleep(25)
        assert (await client.receive(hold=5)).code == pb.MESSAGE_NOT_FOUND

    play(test, config=ProxyConfig(port=8081, receives_max=2))
