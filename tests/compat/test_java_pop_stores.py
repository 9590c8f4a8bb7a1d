"""A store with messages in flight that moves between our node and Java's broker.

One of them gives messages out, and takes some acknowledgements; the other takes one more, by a
handle of the first, and has all records of what is in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import PopHandle, kind_of, read_offsets, topic_of
from sprocket.message.record import scan
from sprocket.message.topic import revive_topic
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.group import CreateGroup
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.protocol.requests.pop import AckMessage, PopMessage, PopReply
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from tests.compat.javaland import free_broker_port
from tests.compat.moving import Javas, Ours
from tests.support import run

pytestmark = pytest.mark.java

TOPIC, GROUP, MESSAGES, HIDDEN_MS = "Moves", "movers", 6, 20_000
#: Pops in order.
ORDERED = "marchers"
OURS = {"broker.offset_save_ms": 100, "store.timer_file_bytes": 1000 * 52}
#: Without `popConsumerFSServiceInit`, which `Javas` switches off, nothing is given back.
JAVAS = {
    "flushConsumerOffsetInterval": 100, "timerWheelEnable": True, "brokerName": "broker-a",
    "popConsumerFSServiceInit": True,
}  # fmt: skip
Host = Ours | Javas


class Popper:
    """A client of whichever broker listens at the port."""

    def __init__(self, port: int) -> None:
        self._address = f"127.0.0.1:{port}"
        self._pool = Pool()

    async def close(self) -> None:
        await self._pool.close()

    async def ask(self, header: Header, body: bytes = b"") -> Command:
        return await self._pool.call(self._address, header, body=body, deadline=Deadline.after(60))

    async def fill(self) -> None:
        topic = CreateTopic(
            topic=TOPIC, default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG",
        )  # fmt: skip
        (await self.ask(topic)).checked()
        for group in (GROUP, ORDERED):
            (await self.ask(CreateGroup(), GroupConfig(group_name=group).encode())).checked()
        for number in range(MESSAGES):
            sent = SendMessageV2(producer_group="p", topic=TOPIC, queue_id=0, born_timestamp=1)
            (await self.ask(sent, b"%d" % number)).checked()

    async def pop(self, group: str = GROUP) -> list[tuple[StoredMessage, PopHandle]]:
        header = PopMessage(
            consumer_group=group, topic=TOPIC, queue_id=-1, max_msg_nums=32,
            invisible_time=HIDDEN_MS, poll_time=0, born_time=0, init_mode=0,
            order=group == ORDERED,
        )  # fmt: skip
        reply = await self.ask(header)
        if reply.code:
            return []
        known = reply.read(PopReply)
        starts = read_offsets(known.start_offset_info or "")
        found = []
        for message in scan(bytes(reply.body)):
            text, kind = message.properties.get("POP_CK"), kind_of(message.topic)
            number = message.queue.number
            found.append((message, PopHandle.parse(text) if text else PopHandle(
                starts[kind, number][0], known.pop_time, known.invisible_time, known.revive_qid,
                kind, "broker-a", number, message.queue_offset,
            )))  # fmt: skip
        return found

    async def revived(self) -> int:
        """How many records the revive queues have."""
        ends = [
            await self.ask(MaxOffset(topic=revive_topic("DefaultCluster"), queue_id=number))
            for number in range(8)
        ]
        return sum(int(end.fields["offset"]) for end in ends)

    async def ack(self, handle: PopHandle) -> None:
        header = AckMessage(
            consumer_group=GROUP, topic=topic_of(TOPIC, GROUP, handle.kind),
            queue_id=handle.queue_number, extra_info=handle.encode(), offset=handle.offset,
        )  # fmt: skip
        (await self.ask(header)).checked()


def hosts(work: Path, begins: str) -> tuple[Host, Host, int]:
    """Who gives out, who goes on, and the port of both."""
    store, port = work / "store", free_broker_port()
    ours = Ours(work / "ours", store, port, OURS)
    javas = Javas(work / "java", store, port, JAVAS)
    return (ours, javas, port) if begins == "ours" else (javas, ours, port)


async def trying(action: Callable[[], Awaitable[None]]) -> None:
    """Waits until an action of a broker that starts succeeds."""

    async with asyncio.timeout(120):
        while True:
            try:
                return await action()
            except SprocketError:
                await asyncio.sleep(0.3)


async def begun(popper: Popper, first: Host, *, in_order: bool = False) -> list[PopHandle]:
    """Messages in flight at a host, two of them acknowledged; it is stopped. All handles."""
    first.start()
    await trying(popper.fill)
    found: list[tuple[StoredMessage, PopHandle]] = []
    while len(found) < MESSAGES:  # Java acknowledges a send before its queue shows it
        found += await popper.pop()
    assert [message.body for message, _ in found] == [b"%d" % n for n in range(MESSAGES)]
    for _, handle in found[:2]:
        await popper.ack(handle)
    if in_order:
        assert len(await popper.pop(ORDERED)) == MESSAGES
    await asyncio.sleep(1)
    first.stop()
    return [handle for _, handle in found]


def test_ours_gives_back_what_java_gave_out(tmp_path: Path) -> None:
    first, second, port = hosts(tmp_path, "java")

    async def story() -> None:
        popper, again = Popper(port), list[bytes]()
        handles = await begun(popper, first)
        second.start()
        await trying(lambda: popper.ack(handles[2]))

        async def come() -> None:
            again.extend(message.body for message, _ in await popper.pop())

        async with asyncio.timeout(180):
            while len(again) < 3:
                await asyncio.sleep(0.5)
                await come()
        await asyncio.sleep(3)
        await come()
        assert sorted(again) == [b"3", b"4", b"5"]
        await popper.close()
        second.stop()

    told(story, first, second)


def test_java_gives_back_what_ours_gave_out(tmp_path: Path) -> None:
    """It takes a handle of ours, gives nothing out before its time, and then what is left; the
    records of a pop in order, which are ours alone, do not disturb it, and it knows the lock."""
    first, second, port = hosts(tmp_path, "ours")

    async def story() -> None:
        popper, again = Popper(port), list[bytes]()
        handles = await begun(popper, first, in_order=True)
        second.start()
        await trying(lambda: popper.ack(handles[2]))
        assert await popper.pop() == []

        async def come() -> None:
            again.extend(message.body for message, _ in await popper.pop())

        async with asyncio.timeout(180):
            while len(again) < 3:
                await asyncio.sleep(0.5)
                await come()
        assert sorted(again) == [b"3", b"4", b"5"]
        assert await popper.revived() >= 5
        ordered = await popper.pop(ORDERED)
        assert next(message.body for message, _ in ordered) == b"0"
        await popper.close()
        second.stop()

    told(story, first, second)


def told(story: Callable[[], Coroutine[None, None, None]], *all_hosts: Host) -> None:
    """Runs a story, and ends its hosts."""
    try:
        run(story())
    finally:
        for host in all_hosts:
            host.close()
