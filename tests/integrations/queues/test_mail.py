"""Mail between processes of a simulated cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.integrations.queues.mail import ADDRESS, BOX_BYTES_MAX, BOX_MAX, KEY, Mail, MailBox
from sprocket.integrations.queues.names import tag_of
from sprocket.message.message import Message
from sprocket.testing.cluster import Cluster
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer
from sprocket.testing.process import SimulatedProcess

TOPIC = "mail"


class Reader:
    """A process that reads mail."""

    def __init__(self, process: SimulatedProcess, pulls: PullConsumer, mail: Mail) -> None:
        self.process, self.pulls, self.mail = process, pulls, mail

    async def open(self, *given: Any) -> MailBox:
        return await self.process.run(self.mail.open(*given))

    async def close(self) -> None:
        self.mail.close()
        await self.process.run(self.pulls.close())


class Town:
    """A cluster with a sender of mail."""

    def __init__(self, network: Network) -> None:
        self.cluster = Cluster(network, "town")

    async def begin(self) -> None:
        await self.cluster.start()
        observer = Observer(self.cluster, TOPIC, 1, group="g")
        await observer.create_topic()
        await observer.close()
        await asyncio.sleep(3.0)
        self.sending, world = self.cluster.client("sender")
        names = self.cluster.nameserver_addresses
        self.producer = Producer("p", nameservers=names, world=world)
        await self.sending.run(self.producer.start())

    async def post(self, address: str, body: bytes, key: str = "") -> None:
        properties = {ADDRESS: address, **({KEY: key} if key else {})}
        message = Message(TOPIC, body, tag=tag_of(address), properties=properties)
        await self.sending.run(self.producer.send(message))

    async def reader(self, name: str) -> Reader:
        process, world = self.cluster.client(name)
        names = self.cluster.nameserver_addresses
        pulls = PullConsumer("readers", nameservers=names, world=world)
        await process.run(pulls.start())
        return Reader(process, pulls, Mail(pulls, TOPIC, world.clock.now_ms))


def play(main: Callable[[Town], Awaitable[None]]) -> None:
    async def run(network: Network) -> None:
        town = Town(network)
        await town.begin()
        await main(town)
        await town.sending.run(town.producer.close())
        await town.cluster.stop()

    simulate(run, seed=1)


def bodies(box: MailBox) -> list[bytes]:
    """What a box has; it has that still."""
    found = list(iter(box.take, None))
    for each in reversed(found):
        box.put_back(each)
    return [each.body for each in found]


def test_everybody_who_waits_gets_a_copy_of_what_is_sent_from_then_on() -> None:
    async def main(town: Town) -> None:
        one, other = await town.reader("one"), await town.reader("other")
        await town.post("all", b"early")
        first = await one.open("box", "all")
        await town.post("all", b"1")
        second = await other.open("box", "all")
        await town.post("all", b"2")
        await town.post("nobody", b"3")
        await asyncio.sleep(2.0)
        assert bodies(first) == [b"1", b"2"]
        assert bodies(second) == [b"2"]
        await one.close()
        await other.close()

    play(main)


def test_a_box_that_opens_while_others_wait_misses_nothing() -> None:
    async def main(town: Town) -> None:
        one = await town.reader("one")
        first = await one.open("first", "a")
        await asyncio.sleep(5.0)
        second = await one.open("second", "b")
        await town.post("b", b"1")
        await town.post("a", b"2")
        await asyncio.sleep(1.0)
        assert (bodies(first), bodies(second)) == ([b"2"], [b"1"])
        one.mail.close_box("second")
        await town.post("b", b"3")
        await asyncio.sleep(1.0)
        again = await one.open("second", "b")
        await town.post("b", b"4")
        await asyncio.sleep(1.0)
        assert bodies(again)[-1:] == [b"4"]
        assert bodies(second) == [b"1"]
        await one.close()

    play(main)


def test_keys_choose_among_the_mail_of_an_address() -> None:
    async def main(town: Town) -> None:
        one = await town.reader("one")
        box = await one.open("box", "events", r"task\..*")
        await one.open("box", "events", "ping")
        for key in ("task.done", "worker.here", "ping", "pings"):
            await town.post("events", key.encode(), key)
        await asyncio.sleep(1.0)
        assert bodies(box) == [b"task.done", b"ping"]
        await one.close()

    play(main)


def test_mail_goes_on_after_its_broker_was_killed() -> None:
    async def main(town: Town) -> None:
        one = await town.reader("one")
        box = await one.open("box", "all")
        await town.post("all", b"1")
        await asyncio.sleep(1.0)
        node = town.cluster.brokers[0]
        node.kill()
        await asyncio.sleep(5.0)
        await node.start()
        await asyncio.sleep(10.0)
        await town.post("all", b"2")
        await asyncio.sleep(10.0)
        assert bodies(box) == [b"1", b"2"]
        await one.close()

    play(main)


def test_a_full_box_reads_on_when_something_is_taken_and_others_do_not_wait() -> None:
    async def main(town: Town) -> None:
        one = await town.reader("one")
        full, other = await one.open("full", "a"), await one.open("other", "b")
        bodies_sent = [b"%d" % number for number in range(BOX_MAX + 200)]
        for body in bodies_sent:
            await town.post("a", body)
        await town.post("b", b"1")
        await asyncio.sleep(30.0)
        assert bodies(other) == [b"1"]
        assert BOX_MAX <= len(full) < BOX_MAX + 100
        found = []
        while len(found) < len(bodies_sent):
            while (message := full.take()) is not None:
                found.append(message.body)
            await asyncio.sleep(1.0)
        assert found == bodies_sent
        await one.close()

    play(main)


def test_a_box_is_full_by_the_bytes_of_its_messages_too() -> None:
    async def main(town: Town) -> None:
        one = await town.reader("one")
        box = await one.open("box", "a")
        body = bytes(3 * 1024 * 1024)
        for _ in range(9):
            await town.post("a", body)
        await asyncio.sleep(30.0)
        kept = len(box)
        assert BOX_BYTES_MAX <= kept * len(body) < 9 * len(body)
        assert box.clear() == kept
        await asyncio.sleep(30.0)
        assert len(box) == 9 - kept
        await one.close()

    play(main)


def test_a_box_keeps_what_nobody_takes_and_tells_those_who_wait() -> None:
    async def scenario() -> None:
        box, told = MailBox(), list[str]()
        one, other = lambda: told.append("one"), lambda: told.append("other")
        for number in range(2):
            box.put(number)  # type: ignore[arg-type]
        assert box.take() == 0
        box.put_back(0)  # type: ignore[arg-type]
        assert [box.take(), box.take(), box.take()] == [0, 1, None]
        box.put(5)  # type: ignore[arg-type]
        box.attach(one)
        assert told == ["one"]
        box.attach(other)
        told.clear()
        box.put(7)  # type: ignore[arg-type]
        assert told == ["one", "other"]
        box.detach(one)
        assert box.is_taken
        box.detach(other)
        assert not box.is_taken
        assert box.clear() == 2
        assert box.take() is None

    asyncio.run(scenario())
