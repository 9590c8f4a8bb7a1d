from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.base.errors import (
    ClosedError,
    HandleExpired,
    NoPermission,
    RemoteProtocolError,
    RequestNotSupported,
    RouteNotFound,
    UsageError,
)
from sprocket.client.pop_config import SimpleConfig
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.message.message import StoredMessage
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pop import AckMessage, AckMessages, PopMessage, PopReply
from tests.client import fakes
from tests.client.fakes import FakeBroker, until, world
from tests.client.pop_cluster import GROUP, TOPIC, PopCluster, play


def bodies(messages: list[Any]) -> list[bytes]:
    return sorted(message.body for message in messages)


async def receive_all(one: Any, **named: Any) -> list[Any]:
    got: list[Any] = []
    while messages := await one.receive(wait_ms=4_000, **named):
        got += messages
        await one.ack(messages)
    return got


def test_what_is_acknowledged_does_not_come_again_and_the_rest_does_after_its_time() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(*(b"%d" % n for n in range(10)))
        one = await pops.simple()
        got: list[Any] = []
        while len(got) < 10:
            got += await one.receive(4, invisible_ms=10_000)
        assert bodies(got) == [b"%d" % n for n in range(10)]
        await one.ack(got[:7])
        await one.ack(got[7])
        assert await one.receive(wait_ms=1_000) == []
        late = await receive_all(one, invisible_ms=10_000)
        late += await receive_all(one, invisible_ms=10_000)
        late += await receive_all(one, invisible_ms=10_000)
        assert bodies(late) == bodies(got[8:])
        assert {message.reconsume_times for message in late} == {1}
        about = one.consumer.statistics().topics[TOPIC]
        assert (about.pulled, about.consumed) == (12, 10)

    play(main)


def test_a_receive_waits_and_returns_as_soon_as_a_message_comes() -> None:
    async def main(pops: PopCluster) -> None:
        one = await pops.simple()
        waiting = asyncio.ensure_future(one.receive(wait_ms=10_000))
        await asyncio.sleep(4.0)
        assert not waiting.done()
        await pops.send(b"fresh")
        began = asyncio.get_running_loop().time()
        assert bodies(await waiting) == [b"fresh"]
        assert asyncio.get_running_loop().time() - began < 0.1

    play(main)


def test_members_share_messages_not_queues() -> None:
    async def main(pops: PopCluster) -> None:
        members = [await pops.simple(f"member{n}") for n in range(4)]
        await pops.send(*(b"%d" % n for n in range(12)))
        got = await asyncio.gather(*(member.receive(3) for member in members))
        assert bodies([each for some in got for each in some]) == sorted(
            b"%d" % n for n in range(12)
        )
        assert all(len(some) == 3 for some in got), "four members of two queues"

    play(main)


def test_brokers_take_turns_and_one_that_is_away_is_passed_over() -> None:
    async def main(pops: PopCluster) -> None:
        one = await pops.simple()
        await pops.send(*(b"%d" % n for n in range(20)))
        got = await receive_all(one)
        assert {message.queue.broker for message in got} == {"broker-0", "broker-1", "broker-2"}
        assert len(got) == 20
        waiting = asyncio.ensure_future(one.receive(wait_ms=20_000))
        await asyncio.sleep(6.5)
        await pops.send(b"later")
        began = asyncio.get_running_loop().time()
        await one.ack(await waiting)
        assert asyncio.get_running_loop().time() - began < 3.0, "each broker waits a second"
        pops.cluster.brokers[0].kill()
        await pops.send(*(b"more %d" % n for n in range(6)))
        assert len(await receive_all(one)) == 6
        await pops.cluster.brokers[0].start()

    play(main, brokers=3)


def test_acknowledging_too_late_names_the_messages() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(b"slow", b"quick")
        one = await pops.simple()
        got: list[Any] = []
        while len(got) < 2:
            got += await one.receive(1, invisible_ms=3_000 if got else 60_000)
        quick, slow = got
        await asyncio.sleep(8.0)
        with pytest.raises(HandleExpired, match="1 of 2") as caught:
            await one.ack([quick, slow])
        assert caught.value.messages == (slow,)
        assert caught.value.code == 208
        (again,) = await one.receive()
        assert again.body == slow.body
        with pytest.raises(HandleExpired):
            await one.hide(slow, 1_000)
        await one.ack(again)
        assert await one.receive(wait_ms=1_000) == []

    play(main)


def test_the_invisible_time_can_be_made_longer_and_shorter() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(b"x")
        one = await pops.simple()
        (message,) = await one.receive(invisible_ms=4_000)
        first = message.handle
        for _ in range(4):
            await asyncio.sleep(2.0)
            await one.hide(message, 5_000)
        assert message.handle != first
        assert await one.receive(wait_ms=1) == []
        await one.hide(message, 1)
        (again,) = await one.receive(wait_ms=4_000)
        assert (again.body, again.reconsume_times) == (b"x", 1)
        await one.ack(again)
        assert await one.receive(wait_ms=8_000) == []

    play(main)


def test_a_message_can_be_made_a_dead_letter_also_one_that_came_again() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(b"bad", b"worse")
        one = await pops.simple()
        seen: list[Any] = []
        while len(seen) < 2:
            seen += await one.receive(invisible_ms=2_000)
        await one.bury(seen[0])
        (again,) = await one.receive(wait_ms=8_000)
        await one.bury(again)
        one.consumer.unsubscribe(TOPIC)
        one.consumer.subscribe(f"%DLQ%{GROUP}")
        broker = pops.cluster.brokers[0]
        assert broker.server._store.max_offset(f"%DLQ%{GROUP}", 0) == 2

    play(main)


def test_filters_choose_by_tags_and_sql_and_what_was_not_chosen_is_done() -> None:
    async def main(pops: PopCluster) -> None:
        one = await pops.simple()
        one.consumer.subscribe(TOPIC, tags="a || b")
        await pops.send(b"yes", tag="a")
        await pops.send(b"no", tag="c")
        assert bodies(await receive_all(one)) == [b"yes"]
        one.consumer.subscribe(TOPIC, sql="size > 5")
        await pops.send(b"big", properties={"size": "6"})
        await pops.send(b"small", properties={"size": "5"})
        assert bodies(await receive_all(one)) == [b"big"]

    play(main)


def test_a_receive_that_is_cancelled_or_closed_gives_its_messages_back_at_once() -> None:
    async def main(pops: PopCluster) -> None:
        one, other = await pops.simple("one"), await pops.simple("other")
        loop = asyncio.get_running_loop()

        async def cancelled() -> None:
            task = loop.create_task(one.consumer.receive(wait_ms=60_000, invisible_ms=600_000))
            await asyncio.sleep(1.0)
            task.cancel()

        await one.process.run(cancelled())
        await pops.send(b"x")
        began = loop.time()
        (message,) = await other.receive(wait_ms=30_000)
        assert loop.time() - began < 5.0, "and not after ten minutes"
        await other.ack(message)
        waiting = asyncio.ensure_future(one.receive(wait_ms=60_000))
        await asyncio.sleep(1.0)
        await pops.close(one.consumer)
        with pytest.raises(ClosedError):
            await waiting

    play(main)


def test_acknowledgements_wait_for_a_broker_that_is_away() -> None:
    async def main(pops: PopCluster) -> None:
        await pops.send(b"1", b"2", b"3")
        one = await pops.simple()
        got: list[Any] = []
        while len(got) < 3:
            got += await one.receive()
        broker = pops.cluster.brokers[0]
        broker.kill()
        acking = asyncio.ensure_future(one.ack(got))
        await asyncio.sleep(4.0)
        assert not acking.done()
        await broker.start()
        await acking
        assert await one.receive(wait_ms=70_000) == []

    play(main)


def consumer_of(broker: FakeBroker, **settings: Any) -> SimpleConsumer:
    consumer = SimpleConsumer(
        "readers",
        nameservers=broker.address,
        start="first",
        config=SimpleConfig(**settings),
        world=world(),
    )
    consumer.subscribe("orders")
    return consumer


def popped(broker: FakeBroker, *messages: StoredMessage, **fields: Any) -> Reply:
    records = [broker.queue(each.topic, each.queue.number).records for each in messages]
    body = b"".join(some[each.queue_offset] for some, each in zip(records, messages, strict=True))
    offsets = ",".join(str(each.queue_offset) for each in messages)
    values = {
        "pop_time": 1000, "invisible_time": 60_000, "revive_qid": 3, "rest_num": 0,
        "start_offset_info": "0 0 0", "msg_offset_info": f"0 0 {offsets}",
    }  # fmt: skip
    return Reply(PopReply(**{**values, **fields}), body)


def test_heartbeats_name_a_popping_consumer_and_pops_carry_the_filter() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            stored = broker.put("orders", body="1", TAGS="a")
            other = broker.put("orders", body="2", TAGS="b")
            broker.more[PopMessage.code] = lambda c, p: popped(broker, stored, other)
            acked: list[Command] = []
            broker.more[AckMessage.code] = lambda c, p: acked.append(c) or Reply()
            consumer.subscribe("orders", tags="a")
            (message,) = await consumer.receive(3, invisible_ms=5_000)
            assert message.body == b"1"
            header = broker.last(PopMessage).read(PopMessage)
            assert (header.exp_type, header.exp) == ("TAG", "a")
            assert (header.queue_id, header.max_msg_nums, header.order) == (-1, 3, False)
            (about,) = broker.heartbeats[-1].consumers
            assert about.consume_type == "CONSUME_POP"
            await until(lambda: acked)
            assert acked[0].read(AckMessage).offset == 1, "what does not match is done"

    fakes.play(main)


def test_a_broker_without_batches_gets_acknowledgements_one_by_one() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            stored = [broker.put("orders", body=str(n)) for n in range(3)]
            broker.more[PopMessage.code] = lambda c, p: popped(broker, *stored)
            broker.more[AckMessage.code] = lambda c, p: Reply()
            broker.refuse = lambda c, p: 3 if c.code == AckMessages.code else None
            for _ in range(2):
                await consumer.ack(await consumer.receive())
            assert (broker.count(AckMessages), broker.count(AckMessage)) == (1, 6)

    fakes.play(main)


def test_a_broker_that_does_not_know_pops_is_named_with_what_to_do() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            broker.refuse = lambda c, p: 3 if c.code == PopMessage.code else None
            with pytest.raises(RequestNotSupported, match=r"broker-a .*RocketMQ 5.*LitePullCons"):
                await consumer.receive()
            broker.refuse = lambda c, p: 16 if c.code == PopMessage.code else None
            with pytest.raises(NoPermission):
                await consumer.receive()

    fakes.play(main)


@pytest.mark.parametrize(
    "fields",
    [
        {"start_offset_info": None},
        {"msg_offset_info": None},
        {"msg_offset_info": "0 0 7"},
        {"msg_offset_info": "0 1 0"},
        {"msg_offset_info": "0 0 " + "9" * 400},
        {"start_offset_info": "nonsense"},
        {"msg_offset_info": "1 0 0"},
    ],
)
def test_a_reply_whose_lists_do_not_fit_is_refused(fields: dict[str, Any]) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            stored = broker.put("orders")
            broker.more[PopMessage.code] = lambda c, p: popped(broker, stored, **fields)
            with pytest.raises(RemoteProtocolError):
                await consumer.receive()

    fakes.play(main)


def test_more_messages_than_asked_for_are_refused() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            stored = [broker.put("orders") for _ in range(3)]
            broker.more[PopMessage.code] = lambda c, p: popped(broker, *stored)
            with pytest.raises(RemoteProtocolError, match="2 messages"):
                await consumer.receive(2)
            other = broker.put("others")
            broker.more[PopMessage.code] = lambda c, p: popped(broker, other)
            with pytest.raises(RemoteProtocolError, match="others"):
                await consumer.receive(2)

    fakes.play(main)


def test_a_broker_that_holds_no_pops_is_not_asked_without_end() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            empty = PopReply(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0)
            broker.more[PopMessage.code] = lambda c, p: Reply(empty, code=210)
            assert await consumer.receive(wait_ms=10_000) == []
            assert 10 < broker.count(PopMessage) < 100

    fakes.play(main)


def test_misuse_is_refused_in_words() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            with pytest.raises(UsageError, match="first"):
                SimpleConsumer("readers", nameservers="a:1", start=17)  # type: ignore[arg-type]
            consumer = consumer_of(broker)
            with pytest.raises(ClosedError):
                await consumer.receive()
            async with consumer:
                for wrong in ({"count": 0}, {"invisible_ms": 0}, {"wait_ms": -1}):
                    with pytest.raises(UsageError):
                        await consumer.receive(**wrong)  # type: ignore[arg-type]
                plain = broker.put("orders")
                with pytest.raises(UsageError, match="receive"):
                    await consumer.ack([plain])  # type: ignore[list-item]
                with pytest.raises(UsageError, match="Python"):
                    consumer.subscribe("orders", code=is_wanted)
                consumer.unsubscribe("orders")
                with pytest.raises(UsageError, match="subscribe"):
                    await consumer.receive()
                consumer.subscribe("nothing")
                with pytest.raises(RouteNotFound):
                    await consumer.receive(wait_ms=500)

    fakes.play(main)


def is_wanted(message: Any) -> bool:
    return True
