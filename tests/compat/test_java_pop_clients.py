"""Our consumers that pop, against Java's broker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sprocket import HandleExpired, Later, Message, Producer, PushConsumer, SimpleConsumer
from sprocket.client.config import ConsumerConfig, ProducerConfig
from sprocket.client.pop_config import SimpleConfig
from sprocket.message.queue import QueueId
from tests.compat.javaland import JavaBroker, JavaNameServer, mqadmin, until
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java

BROKER = "broker-a"
PATIENT = ConsumerConfig(
    rebalance_ms=1000, route_refresh_ms=2000, heartbeat_ms=5000, call_timeout_ms=PATIENT_MS
)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the name server of a Java broker."""
    work: Path = tmp_path_factory.mktemp("pops")
    with (
        JavaNameServer(work) as servers,
        JavaBroker(work, servers.address, name=BROKER),
    ):
        yield servers.address


def made(names: str, topic: str) -> None:
    mqadmin("updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", "2", "-w", "2", namesrv=names)


def producer(names: str) -> Producer:
    config = ProducerConfig(send_timeout_ms=PATIENT_MS, call_timeout_ms=PATIENT_MS)
    return Producer("p", nameservers=names, config=config)


def simple(names: str, group: str) -> SimpleConsumer:
    config = SimpleConfig(call_timeout_ms=PATIENT_MS, ack_timeout_ms=PATIENT_MS)
    return SimpleConsumer(group, nameservers=names, start="first", config=config)


async def send(names: str, topic: str, count: int, **named: Any) -> None:
    async with producer(names) as sender:
        for number in range(count):
            await sender.send(Message(topic, b"%03d" % number), **named)


def test_a_simple_consumer_receives_acknowledges_hides_and_buries(names: str) -> None:
    topic, group = "JavaSimple", "simple"
    made(names, topic)

    async def story() -> None:
        async with simple(names, group) as one:
            one.subscribe(topic)
            assert await one.receive(wait_ms=1_000) == []
            await send(names, topic, 20)
            got: list[Any] = []
            while len(got) < 20:
                got += await one.receive(8, invisible_ms=600_000, wait_ms=20_000)
            assert len({message.body for message in got}) == 20
            await one.ack(got[:15])
            await one.ack(got[15])
            again, dead, kept = got[16], got[17], got[18]
            await one.change_invisible_time(again, 1_000)
            await one.forward_to_dead_letters(dead)
            await one.change_invisible_time(kept, 700_000)
            await one.ack(kept)
            back: list[Any] = []
            while not back:
                back = await one.receive(wait_ms=20_000, invisible_ms=2_000)
            assert [message.body for message in back] == [again.body]
            assert back[0].handle.kind != "0", "it came by the retry topic"
            await asyncio.sleep(2.5)
            with pytest.raises(HandleExpired):
                await one.ack(back)
        async with simple(names, "readers-of-the-dead") as reader:
            reader.subscribe(f"%DLQ%{group}")
            found: list[Any] = []

            async def is_there() -> bool:
                found.extend(await reader.receive(wait_ms=2_000))
                return bool(found)

            for _ in range(30):
                mqadmin(
                    "updateTopicPerm", "-c", "DefaultCluster", "-t", f"%DLQ%{group}", "-p", "6",
                    namesrv=names,
                )  # fmt: skip
                if await is_there():
                    break
            assert [message.body for message in found] == [dead.body]

    run(story())


@pytest.mark.parametrize("ordered", [False, True])
def test_a_push_consumer_pops_each_message_and_those_that_failed_again(
    names: str, ordered: bool
) -> None:
    topic, group = f"JavaPushed{ordered}", f"pushed-{ordered}"
    made(names, topic)

    async def story() -> None:
        got: list[tuple[bytes, int]] = []

        async def listen(message: Any) -> Any:
            got.append((message.body, message.reconsume_times))
            fails = message.body == b"003" and not message.reconsume_times
            return Later(1) if fails else None

        consumer = PushConsumer(
            group, nameservers=names, start="first", mode="pop", ordered=ordered, config=PATIENT
        )
        async with consumer:
            consumer.subscribe(topic, listener=listen)
            await send(names, topic, 20, key="one queue")
            await until(lambda: len(got) >= 21)
            assert Counter(body for body, _ in got) == {
                b"%03d" % number: 1 + (number == 3) for number in range(20)
            }
            if ordered:
                bodies = [body for body, _ in got]
                assert bodies == sorted(bodies)

    run(story())


def test_a_group_pops_when_operators_say_so(names: str) -> None:
    topic, group = "JavaModes", "modes"
    made(names, topic)
    mqadmin("updateSubGroup", "-c", "DefaultCluster", "-g", group, namesrv=names)

    async def story() -> None:
        got: Counter[bytes] = Counter()

        async def listen(message: Any) -> None:
            got[message.body] += 1

        consumer = PushConsumer(
            group, nameservers=names, start="first", mode="broker", config=PATIENT
        )
        async with consumer:
            consumer.subscribe(topic, listener=listen)
            await until(lambda: QueueId(topic, BROKER, 1) in consumer.queues)
            await asyncio.to_thread(
                mqadmin, "setConsumeMode", "-c", "DefaultCluster", "-t", topic, "-g", group,
                "-m", "POP", "-q", "0", namesrv=names,
            )  # fmt: skip
            await until(lambda: QueueId(topic, BROKER, -1) in consumer.queues)
            await send(names, topic, 10)
            await until(lambda: len(got) == 10)

    run(story())
