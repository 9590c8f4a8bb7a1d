"""Broadcasting: every member gets every message, and keeps its positions itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from sprocket.base.errors import DirectoryInUse, UsageError
from sprocket.client.config import ConsumerConfig
from sprocket.client.group.local_offsets import decode
from sprocket.client.group.offsets import Start
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.protocol.requests.client import GroupMembers
from sprocket.protocol.requests.offset import QueryOffset, UpdateOffset
from sprocket.protocol.requests.pull import COMMIT_OFFSET, PullMessage
from sprocket.protocol.requests.send import SendBack
from sprocket.testing.disk import MemoryDisk
from tests.client.fakes import FakeBroker, play, queue_of, until, world

QUICK: dict[str, Any] = {"rebalance_ms": 500, "route_refresh_ms": 500}


def member(
    broker: FakeBroker, disk: MemoryDisk, got: list[bytes], name: str = "c1", **settings: Any
) -> PushConsumer:
    start: Start = settings.pop("start", "first")
    ordered = settings.pop("ordered", False)
    consumer = PushConsumer(
        "readers",
        nameservers=broker.address,
        start=start,
        ordered=ordered,
        broadcasting=True,
        config=ConsumerConfig(offsets_folder="/home", **settings),
        world=replace(world(name), disk=disk),
    )

    async def keep(message: StoredMessage) -> None:
        got.append(message.body)
        if message.body == b"bad":
            raise ValueError("not this one")

    consumer.subscribe("news", listener=keep)
    return consumer


def kept(disk: MemoryDisk, client_id: str) -> dict[Any, int]:
    raw = disk.read(f"/home/{client_id}/readers/offsets.json")
    return {queue: int(offset) for queue, offset in decode(raw or b"").items()}


def test_every_member_gets_every_message_and_brokers_keep_no_position() -> None:
    async def main() -> None:
        async with FakeBroker({"news": 2}) as broker:
            one: list[bytes] = []
            two: list[bytes] = []
            disk = MemoryDisk()
            async with (
                member(broker, disk, one, "c1", instance="one"),
                member(broker, disk, two, "c2", instance="two"),
            ):
                for number in range(4):
                    broker.put("news", number % 2, body=f"m{number}")
                await until(lambda: len(one) == len(two) == 4)
                await asyncio.sleep(5.1)
            assert sorted(one) == sorted(two) == [b"m0", b"m1", b"m2", b"m3"]
            positions = {queue_of("news", 0): 2, queue_of("news", 1): 2}
            assert kept(disk, "10.0.0.9@one") == kept(disk, "10.0.0.9@two") == positions
            assert not broker.committed
            pulls = [c.read(PullMessage) for c in broker.asked if c.code == PullMessage.code]
            assert not any(pull.sys_flag & COMMIT_OFFSET for pull in pulls)
            assert not any(broker.count(h) for h in (QueryOffset, UpdateOffset, GroupMembers))
            described = broker.heartbeats[-1].consumers[0]
            assert described.message_model == "BROADCASTING"
            assert [each.topic for each in described.subscriptions] == ["news"]

    play(main)


def test_the_client_id_stays_the_same_and_positions_with_it() -> None:
    async def main() -> None:
        async with FakeBroker({"news": 1}) as broker:
            disk = MemoryDisk()
            got: list[bytes] = []
            broker.put("news", body="m0")
            async with member(broker, disk, got, "c1") as consumer:
                assert consumer.client_id == "10.0.0.9@DEFAULT"
                await until(lambda: got)
            broker.put("news", body="m1")
            async with member(broker, disk, got, "c2"):
                await until(lambda: len(got) == 2)
                await asyncio.sleep(1)
            assert got == [b"m0", b"m1"]

    play(main)


def test_a_killed_member_goes_on_where_it_saved() -> None:
    async def main() -> None:
        async with FakeBroker({"news": 1}) as broker:
            disk = MemoryDisk()
            got: list[bytes] = []
            broker.put("news", body="m0")
            consumer = member(broker, disk, got)
            await consumer.start()
            await asyncio.sleep(6)
            broker.put("news", body="m1")
            await until(lambda: len(got) == 2)
            async with member(broker, disk.after_kill(), got, "c2"):
                await until(lambda: len(got) == 3)
            assert got == [b"m0", b"m1", b"m1"]
            await consumer.close()

    play(main)


@pytest.mark.parametrize("start", ["last", "first"])
def test_a_broker_that_is_away_for_a_while_comes_back_with_its_position(start: Start) -> None:
    async def main() -> None:
        async with FakeBroker({"news": 1}) as a, FakeBroker({"news": 1}, name="broker-b") as b:
            a.others = {"broker-b": b.address}
            disk = MemoryDisk()
            got: list[bytes] = []
            async with member(a, disk, got, start=start, **QUICK) as consumer:
                await until(lambda: len(consumer.queues) == 2)
                a.others = {}
                await until(lambda: len(consumer.queues) == 1)
                await asyncio.sleep(30)
                b.put("news", body="while away")
                await asyncio.sleep(30)
                assert kept(disk, "10.0.0.9@DEFAULT")[queue_of("news", 0, "broker-b")] == 0
                a.others = {"broker-b": b.address}
                await until(lambda: got == [b"while away"])

    play(main)


@pytest.mark.parametrize("ordered", [False, True])
def test_what_fails_is_dropped_or_tried_again_here_but_never_given_back(ordered: bool) -> None:
    async def main() -> None:
        async with FakeBroker({"news": 1}) as broker:
            disk = MemoryDisk()
            got: list[bytes] = []
            broker.put("news", body="bad")
            broker.put("news", body="good")
            async with member(broker, disk, got, ordered=ordered, reconsume_max=2):
                await until(lambda: b"good" in got)
                await asyncio.sleep(5.1)
            assert got == [b"bad"] * (3 if ordered else 1) + [b"good"]
            assert kept(disk, "10.0.0.9@DEFAULT") == {queue_of("news"): 2}
            assert not broker.count(SendBack)
            assert not broker.leases

    play(main)


def test_two_processes_with_one_client_id_are_told_so() -> None:
    async def main() -> None:
        async with FakeBroker({"news": 1}) as broker:
            disk = MemoryDisk()
            async with member(broker, disk, [], "c1"):
                second = member(broker, disk, [], "c2")
                with pytest.raises(DirectoryInUse):
                    await second.start()
                assert second.client_id is None

    play(main)


def test_without_a_disk_there_is_no_broadcasting() -> None:
    async def main() -> None:
        consumer = PushConsumer("readers", nameservers="a:1", broadcasting=True, world=world())
        with pytest.raises(UsageError, match="needs a disk"):
            await consumer.start()

    play(main)
