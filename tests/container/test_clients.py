"""What clients do over several broker processes: as in any cluster, also when one is restarted."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sprocket
from sprocket import Message, Outcome, Producer, QueueId, StoredMessage, TransactionalProducer
from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.protocol.requests.admin import AddBroker, RemoveBroker
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.proxy import SERVICE
from sprocket.remoting.pool import Pool
from tests.cli.parts import sprocket as command
from tests.cli.test_containers import free_ports, processes_of
from tests.cli.test_serve import end, first_line, serving
from tests.compat.javaland import until
from tests.support import run

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found by /proc"),
]

BROKERS = {"broker-a-0", "broker-a-1"}
DELAY_S = 2.0


class Running:
    """A name server, two brokers and a proxy that run; their addresses are in the first line."""

    def __init__(self, line: str, parent: int, container: str) -> None:
        self.nameserver = line.split("name server ")[1].split(",")[0]
        self.grpc = line.split("gRPC ")[1].split(",")[0]
        self.container = container
        self._parent = parent

    async def restarted(self, broker: str, number: int) -> None:
        """Has a broker end by a signal, and waits until its next process is on the routes."""
        before = processes_of(self._parent)[broker]
        os.kill(before, number)
        await until(lambda: processes_of(self._parent).get(broker, before) != before)
        await until(self._all_serve)

    async def _all_serve(self) -> bool:
        listed = await asyncio.to_thread(command, "cluster", "-n", self.nameserver)
        return listed.out.count("yes") == len(BROKERS)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    port, container = free_ports(2), free_ports(1)
    words = (
        "standalone", "--processes", "2", "--store", str(tmp_path_factory.mktemp("several")),
        "--nameserver-port", "0", "--broker-port", str(port), "--grpc-port", "0",
        "--set", f"container.port={container}",
        "--set", "broker.transaction_timeout_ms=500", "--set", "broker.transaction_check_ms=500",
    )  # fmt: skip
    with serving(*words) as parent:
        line = first_line(parent)
        yield Running(line, parent.pid, f"127.0.0.1:{container}")
        assert end(parent, signal.SIGTERM)[0] == 0


def make(running: Running, topic: str, *more: str) -> None:
    done = command("topic", "create", topic, "--queues", "2", *more, "-n", running.nameserver)
    assert done.code == 0, done.err


async def read(running: Running, topic: str, count: int) -> list[StoredMessage]:
    """All messages of a topic, once there are so many; later ones too, if they come soon."""
    found: list[StoredMessage] = []
    async with sprocket.PullConsumer("reader", nameservers=running.nameserver) as consumer:
        at = dict.fromkeys(await consumer.queues(topic), 0)

        async def has_enough() -> bool:
            for queue in at:
                pulled = await consumer.pull(queue, at[queue])
                at[queue] = pulled.next_offset
                found.extend(pulled.messages)
            return len(found) >= count

        await until(has_enough)
        await has_enough()
    return found


def test_transactions_are_settled_by_the_broker_of_each_also_after_its_restart(
    running: Running,
) -> None:
    make(running, "paid")

    async def was_written(message: StoredMessage) -> Outcome:
        return Outcome.COMMIT if int(message.body) % 2 else Outcome.ROLLBACK

    async def main() -> list[StoredMessage]:
        halves: dict[int, str] = {}
        names = running.nameserver
        async with TransactionalProducer("shop", nameservers=names) as producer:
            for number in range(24):
                message = Message("paid", b"%d" % number)
                async with producer.transaction(message) as transaction:
                    assert transaction.sent is not None
                    halves[number] = transaction.sent.queue.broker
                    if number < 8:
                        continue
                    transaction.leave_open()
        assert set(halves.values()) == BROKERS
        await running.restarted("broker-a-1", signal.SIGKILL)
        async with TransactionalProducer("shop", nameservers=names, check=was_written):
            return await read(running, "paid", 8 + 8)

    found = run(main())
    expected = [*range(8), *range(9, 24, 2)]
    assert sorted(int(message.body) for message in found) == expected
    assert {message.queue.broker for message in found} == BROKERS


def test_delayed_messages_come_from_each_broker_when_they_are_due_also_after_its_restart(
    running: Running,
) -> None:
    make(running, "late")

    async def main() -> tuple[float, list[StoredMessage]]:
        async with Producer("kitchen", nameservers=running.nameserver) as producer:
            sent_at = time.time()
            for number in range(16):
                body = b"%d" % number
                by_level = Message("late", body, delay_level=2)
                await producer.send(
                    Message("late", body, delay=DELAY_S) if number % 2 else by_level
                )
        await running.restarted("broker-a-0", signal.SIGKILL)
        return sent_at, await read(running, "late", 16)

    sent_at, found = run(main())
    assert sorted(int(message.body) for message in found) == list(range(16))
    assert {message.queue.broker for message in found} == BROKERS
    assert all(message.stored_ms / 1000 >= sent_at + DELAY_S for message in found)


def test_offsets_are_kept_by_each_broker(running: Running) -> None:
    make(running, "counted")

    async def positions() -> dict[QueueId, int | None]:
        async with sprocket.PullConsumer("counters", nameservers=running.nameserver) as consumer:
            queues = await consumer.queues("counted")
            return {queue: await consumer.committed(queue) for queue in queues}

    async def main() -> None:
        async with sprocket.PullConsumer("counters", nameservers=running.nameserver) as consumer:
            queues = await consumer.queues("counted")
            assert {queue.broker for queue in queues} == BROKERS
            for place, queue in enumerate(queues):
                await consumer.commit(queue, place * 10)
        kept = await positions()
        assert sorted(kept.values(), key=str) == [0, 10, 20, 30]
        for broker in sorted(BROKERS):
            await running.restarted(broker, signal.SIGTERM)
        assert await positions() == kept

    run(main())


def test_keys_of_an_ordered_topic_keep_their_queues_while_a_broker_is_away(
    running: Running, tmp_path: Path
) -> None:
    make(running, "ledger", "--message-type", "FIFO")
    (tmp_path / "b.conf").write_text("brokerName=broker-a-1\n")

    async def queue_of(producer: Producer, key: str) -> QueueId | None:
        """Where a message with this key goes; None if it is refused."""
        try:
            return (await producer.send(Message("ledger", b"x"), key=key, timeout_ms=5_000)).queue
        except SprocketError:
            return None

    async def queues_of(keys: list[str]) -> dict[str, QueueId | None]:
        async with Producer("clerk", nameservers=running.nameserver) as producer:
            found = await asyncio.gather(*(queue_of(producer, key) for key in keys))
            return dict(zip(keys, found, strict=True))

    async def main() -> None:
        keys = [f"k{number}" for number in range(12)]
        before = await queues_of(keys)
        assert {queue.broker for queue in before.values() if queue is not None} == BROKERS
        async with Pool() as pool:
            removal = RemoveBroker(
                broker_name="broker-a-1", broker_cluster_name="DefaultCluster", broker_id=0
            )
            await pool.ask(running.container, removal, deadline=Deadline.after(60))
            away = await queues_of(keys)
            assert away == {
                key: None if queue is None or queue.broker == "broker-a-1" else queue
                for key, queue in before.items()
            }
            back = AddBroker(config_path=str(tmp_path / "b.conf"))
            await pool.ask(running.container, back, deadline=Deadline.after(60))
        assert await queues_of(keys) == before

    run(main())


def test_the_proxy_gives_messages_to_all_brokers(running: Running) -> None:
    grpc = pytest.importorskip("grpc")
    make(running, "modern")
    topic = pb.Resource(name="modern")

    def call(name: str, request: Any, kind: Any) -> Any:
        method = channel.unary_unary(
            f"{SERVICE}{name}",
            request_serializer=lambda each: each.SerializeToString(),
            response_deserializer=kind.FromString,
        )
        return method(request, timeout=60, metadata=(("x-mq-client-id", "one"),))

    with grpc.insecure_channel(running.grpc) as channel:
        route = call("QueryRoute", pb.QueryRouteRequest(topic=topic), pb.QueryRouteResponse)
        assert {queue.broker.name for queue in route.message_queues} == BROKERS
        for number in range(8):
            properties = pb.SystemProperties(message_id=f"id-{number}", message_type=pb.NORMAL)
            message = pb.Message(topic=topic, body=b"%d" % number, system_properties=properties)
            answer = call(
                "SendMessage", pb.SendMessageRequest(messages=[message]), pb.SendMessageResponse
            )
            assert answer.status.code == pb.OK, answer
    found = run(read(running, "modern", 8))
    assert sorted(int(message.body) for message in found) == list(range(8))
    assert {message.queue.broker for message in found} == BROKERS
