"""Sends and recalls: where messages go, and what senders hear."""

from __future__ import annotations

import pytest

from sprocket.admin import static_topics
from sprocket.admin.caller import Caller
from sprocket.broker.config import BrokerConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.times import timestamp
from sprocket.remoting.pool import Pool
from tests.proxy.world import Client, World, message, play

WAYS = pytest.mark.parametrize("inner", [False, True], ids=["over connections", "in the process"])


@WAYS
def test_a_message_is_stored_as_it_was_sent(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=3)
        sent = message(b"hello", tag="paid", keys=["k1", "k2"])
        sent.user_properties["colour"] = "blue"
        reply = await client.send(sent)
        assert reply.status.code == pb.OK
        (entry,) = reply.entries
        assert (entry.status.code, entry.message_id, entry.offset) == (pb.OK, "01ABCD", 0)
        (got,) = (await client.receive()).messages
        system = got.system_properties
        assert (got.body, dict(got.user_properties)) == (b"hello", {"colour": "blue"})
        assert (system.tag, list(system.keys), system.message_id) == (
            "paid",
            ["k1", "k2"],
            "01ABCD",
        )
        assert (system.born_timestamp.seconds, system.born_host) == (1_000_000, "laptop")
        assert (system.message_type, system.delivery_attempt) == (pb.NORMAL, 1)

    play(test, inner=inner)


@WAYS
def test_messages_take_the_queues_in_turn_and_a_group_stays_in_its_own(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=4)
        await world.make_topic("fifo", queues=4, kind="FIFO")
        for _ in range(8):
            await client.send(message())
        got = (await client.receive()).messages
        numbers = [each.system_properties.queue_id for each in got]
        assert sorted(numbers) == [0, 0, 1, 1, 2, 2, 3, 3]
        for at in range(4):
            await client.send(message(b"%d" % at, topic="fifo", message_group="customer-1"))
        got = (await client.receive(topic="fifo")).messages
        assert len({each.system_properties.queue_id for each in got}) == 1
        assert [each.body for each in got] == [b"0", b"1", b"2", b"3"]

    play(test, inner=inner)


@WAYS
def test_a_batch_has_an_entry_for_each_message(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        reply = await client.send(*(message(b"%d" % n, message_id=f"ID{n}") for n in range(3)))
        assert reply.status.code == pb.OK
        assert [each.message_id for each in reply.entries] == ["ID0", "ID1", "ID2"]
        assert [each.offset for each in reply.entries] == [0, 1, 2]
        got = await client.receive()
        assert got.bodies == [b"0", b"1", b"2"]
        assert [each.system_properties.message_id for each in got.messages] == ["ID0", "ID1", "ID2"]

    play(test, inner=inner)


def test_refusals_have_their_codes() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await world.make_topic("fifo", kind="FIFO")
        await world.make_topic("closed", permission=4)
        wrong = [
            ([], 40016),
            ([message(topic="unknown")], 40402),
            ([message(topic="fifo")], 40014),
            ([message(message_group="g")], 40014),
            ([message(topic="closed")], 40300),
            ([message(topic="TBW102")], 40002),
            ([message(b"")], 41302),
            ([message(), message(topic="fifo", message_group="g")], 40014),
        ]
        for messages, code in wrong:
            reply = await client.send(*messages)
            assert (reply.status.code, len(reply.entries)) == (code, 0), messages

    play(test)


def test_without_the_check_of_types_any_message_goes_anywhere() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic("fifo", kind="FIFO")
        assert (await client.send(message(topic="fifo"))).status.code == pb.OK

    play(test, config=ProxyConfig(port=8081, check_types=False))


def test_a_client_must_say_who_it_is() -> None:
    async def test(world: World, client: Client) -> None:
        del client.metadata["x-mq-client-id"]
        assert (await client.send(message())).status.code == 40017

    play(test)


def test_a_broker_that_is_away_is_avoided() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=1)
        first, second = world.cluster.brokers
        assert (await client.send(message())).status.code == pb.OK
        first.kill()
        codes = [(await client.send(message())).status.code for _ in range(6)]
        assert codes.count(pb.OK) >= 4
        assert codes[-3:] == [pb.OK] * 3
        assert second.is_running

    play(test, brokers=2)


def test_a_broker_that_does_not_answer_costs_the_time_of_a_call() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        await client.send(message())
        world.cluster.brokers[0].pause()
        assert (await client.send(message())).status.code == pb.PROXY_TIMEOUT
        world.cluster.brokers[0].wake()

    play(test)


@WAYS
def test_a_delayed_message_comes_at_its_time_and_can_be_recalled(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="DELAY")
        now_ms = world.cluster.clocks[0][1].now_ms()
        due = timestamp(now_ms + 20_000)
        first = await client.send(message(b"1", message_id="A1", delivery_timestamp=due))
        second = await client.send(message(b"2", message_id="A2", delivery_timestamp=due))
        assert (await client.receive(hold=10)).messages == []
        recalled = await client.ask(
            "RecallMessage",
            pb.RecallMessageRequest(
                topic=pb.Resource(name="orders"), recall_handle=first.entries[0].recall_handle
            ),
        )
        assert (recalled.status.code, recalled.message_id) == (pb.OK, "A1")
        got = await client.receive(hold=20)
        assert got.bodies == [b"2"]
        assert got.messages[0].system_properties.message_type == pb.DELAY
        assert second.entries[0].recall_handle

    play(test, inner=inner, broker=BrokerConfig(recall=True))


def test_a_wrong_recall_handle_is_refused() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(kind="DELAY")
        request = pb.RecallMessageRequest(topic=pb.Resource(name="orders"), recall_handle="x")
        assert (await client.ask("RecallMessage", request)).status.code == 50001

    play(test)


@WAYS
def test_a_static_topic_is_refused_and_harms_no_other(inner: bool) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=1)
        caller = Caller(Pool(), world.names)
        await static_topics.create(caller, "static", queues=2, brokers=(), now_ms=1)
        await client.send(message())
        assert (await client.send(message(topic="static"))).status.code == pb.FORBIDDEN
        assert (await client.send(message())).status.code == pb.OK
        assert len((await client.receive()).messages) == 2

    play(test, inner=inner)
