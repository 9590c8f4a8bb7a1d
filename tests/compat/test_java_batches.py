"""Topics that keep each batch as one record: the same store under our broker and under Java's, and
Java's clients at ours."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.message.batch import BatchedMessage, encode
from sprocket.message.record import scan
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage, PullReply
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from tests.compat.javaland import QUICK_REBALANCE, JavaDriver, free_broker_port, mqadmin
from tests.compat.moving import Javas, Ours
from tests.compat.sprocketland import SprocketNode
from tests.compat.test_java_pop_stores import trying
from tests.support import run

pytestmark = pytest.mark.java

TOPIC, CHUNKS = "Packs", ((b"a",), (b"b", b"c", b"d"), (b"e",), (b"f", b"g"))
Host = Ours | Javas
OURS = {"store.timer_file_bytes": 1000 * 52}
JAVAS = {"timerWheelEnable": True, "brokerName": "broker-a"}


class Caller:
    """A client of whichever broker listens at the port."""

    def __init__(self, port: int) -> None:
        self._address = f"127.0.0.1:{port}"
        self.pool = Pool()

    async def ask(self, header: Header, body: bytes = b"") -> Command:
        return await self.pool.call(self._address, header, body=body, deadline=Deadline.after(60))

    async def create(self) -> None:
        header = CreateTopic(
            topic=TOPIC, default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG", attributes="+queue.type=BatchCQ",
        )  # fmt: skip
        (await self.ask(header)).checked()

    async def fill(self, prefix: bytes) -> None:
        for chunk in CHUNKS:
            bodies = [prefix + body for body in chunk]
            if len(bodies) == 1:
                header = SendMessageV2(producer_group="p", topic=TOPIC, queue_id=0)
                (await self.ask(header, bodies[0])).checked()
                continue
            batch = SendBatch(
                producer_group="p", topic=TOPIC, queue_id=0, batch=True,
                properties="UNIQ_KEY\x01" + prefix.decode() + "\x02WAIT\x01true\x02",
            )  # fmt: skip
            parts = (BatchedMessage(0, body, "") for body in bodies)
            (await self.ask(batch, encode(parts))).checked()

    async def ends_at(self, end: int) -> None:
        """Waits for the end: Java acknowledges a send before its queue shows it."""
        async with asyncio.timeout(60):
            header = MaxOffset(topic=TOPIC, queue_id=0)
            while int((await self.ask(header)).fields["offset"]) < end:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def bodies(self) -> list[tuple[int, bytes]]:
        """Offset and body of each message."""
        found: list[tuple[int, bytes]] = []
        offset = 0
        while True:
            header = PullMessage(
                consumer_group="g", topic=TOPIC, queue_id=0, queue_offset=offset, max_msg_nums=4,
                sys_flag=SUBSCRIPTION, subscription="*",
            )  # fmt: skip
            reply = await self.ask(header)
            if reply.code:
                return found
            found += [(int(m.queue_offset), m.body) for m in scan(bytes(reply.body))]
            offset = reply.read(PullReply).next_begin_offset


def expected(*prefixes: bytes) -> list[tuple[int, bytes]]:
    return list(
        enumerate(prefix + body for prefix in prefixes for chunk in CHUNKS for body in chunk)
    )


@pytest.mark.parametrize("begins", ["ours", "java"])
def test_a_store_moves_there_and_back(tmp_path: Path, begins: str) -> None:
    store, port = tmp_path / "store", free_broker_port()
    ours = Ours(tmp_path / "ours", store, port, OURS)
    javas = Javas(tmp_path / "java", store, port, JAVAS)
    hosts: list[Host] = [ours, javas, ours] if begins == "ours" else [javas, ours, javas]

    async def story() -> None:
        prefixes: list[bytes] = []
        for host, prefix in zip(hosts, (b"1", b"2", b"3"), strict=True):
            caller = Caller(port)
            host.start()
            try:
                if not prefixes:
                    await trying(caller.create)
                await trying(partial(caller.ends_at, 7 * len(prefixes)))
                assert await caller.bodies() == expected(*prefixes)
                await caller.fill(prefix)
                prefixes.append(prefix)
                await caller.ends_at(7 * len(prefixes))
                assert await caller.bodies() == expected(*prefixes)
                await caller.pool.close()
                host.stop()
            finally:
                host.kill()

    try:
        run(story())
    finally:
        javas.close()


@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
def test_java_s_clients_send_and_consume_batches(tmp_path: Path, version: str) -> None:
    with SprocketNode(tmp_path) as node:
        topic = f"Java{version.replace('.', '')}"
        made = mqadmin(
            *f"updateTopic -b {node.address} -t {topic} -r 1 -w 1 -a +queue.type=BatchCQ".split(),
            namesrv=node.names,
        )
        assert "success" in made
        with JavaDriver(version, work=tmp_path, properties=QUICK_REBALANCE) as driver:
            driver.call("producer.start", group="p", namesrv=node.names)
            driver.call(
                "producer.sendBatch", topic=topic, messages=[{"text": f"{n}"} for n in range(5)]
            )
            driver.call("producer.send", topic=topic, body=b"5")
            driver.call(
                "consumer.start", name="c", group="G", namesrv=node.names, topic=topic,
                fromWhere="CONSUME_FROM_FIRST_OFFSET",
            )  # fmt: skip
            if version == "4.9.8":  # it does not open batches, and gets each as one message
                driver.wait_events("message", 2)
                return
            events = driver.wait_events("message", 6)
            assert sorted(event["body"] for event in events) == [b"%d" % n for n in range(6)]
            assert len({event["queueOffset"] for event in events}) == 6
