"""The audit topic: what it has of each request, when it cannot be written, and who may read it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from dataclasses import replace

import pytest

from sprocket.audit.config import AuditConfig
from sprocket.base.errors import ConfigError
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.broker.sending.audit_topic import AuditTopic
from sprocket.message.message import StoredMessage
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import REFUSED, allow, make_user, play_closed
from tests.broker.groups import group
from tests.broker.parts import CONFIG, ROOT, STORE, SUCCESS, Asker, another, new_disk, play

TOPIC = "who-did-what"


async def entries(asker: Asker) -> list[tuple[str, object]]:
    """The request of each entry, and the topic or count that it names."""
    found = []
    for body in await asker.bodies(TOPIC):
        row = json.loads(body)
        found.append((row["request"], row["named"].get("topic", row["named"].get("count"))))
    return found


def test_each_change_is_a_message_at_once_and_reading_and_sending_are_none() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("orders")
        assert await entries(asker) == [("UPDATE_AND_CREATE_TOPIC", "orders")]
        await asker.send("orders")
        assert await asker.code(DeleteTopic(topic="orders")) == SUCCESS
        assert await asker.code(DeleteTopic(topic=TOPIC)) != SUCCESS
        tagged = await asker.pull(TOPIC, tags="DELETE_TOPIC_IN_BROKER")
        first: StoredMessage = tagged.messages[0]
        row = json.loads(first.body)
        assert (row["server"], row["result"], row["named"]) == (
            "broker-a", 0, {"topic": "orders"}
        )  # fmt: skip
        assert row["address"]
        assert first.properties["UNIQ_KEY"]
        assert [name for name, _ in await entries(asker)] == [
            "UPDATE_AND_CREATE_TOPIC", "DELETE_TOPIC_IN_BROKER", "DELETE_TOPIC_IN_BROKER",
        ]  # fmt: skip

    play(test, audit_topic=TOPIC)


def test_nobody_but_the_broker_writes_there() -> None:
    async def test(asker: Asker) -> None:
        send = SendMessageV2(producer_group="p", topic=TOPIC, queue_id=0, born_timestamp=1)
        reply = await asker.call(send, b"{}")
        assert (reply.code, reply.remark) == (
            REFUSED, f"Sending message to topic[{TOPIC}] is forbidden."
        )  # fmt: skip
        assert await entries(asker) == []

    play(test, audit_topic=TOPIC)


@pytest.mark.parametrize("topic", ["a topic", "%RETRY%g", "%DLQ%g", "rmq_sys_x", "TBW102", ""])
def test_its_name_is_one_of_its_own(topic: str) -> None:
    with pytest.raises(ConfigError, match="audit_topic"):
        Broker(
            BrokerConfig(audit_topic=topic), store=STORE, root=ROOT, disk=MemoryDisk(),
            clock=LoopClock(), entropy=SeededEntropy(1),
        )  # fmt: skip


class FullDisk(FaultyDisk):
    """A disk on which no file of the log can be made while it is full."""

    is_full = False

    def before_zero(self, path: str) -> None:
        if self.is_full and "/commitlog/" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def test_while_the_store_takes_nothing_requests_go_on_and_entries_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sprocket.broker.sending.audit_topic.WAITING_BYTES_MAX", 2_000)
    disk = FullDisk()
    disk.make_directory(ROOT)
    count = 12

    async def test(asker: Asker) -> None:
        filler = SendMessageV2(producer_group="p", topic="filler", queue_id=0, born_timestamp=1)
        await asker.create("filler")
        disk.is_full = True
        while await asker.code(filler, bytes(10_000)) == SUCCESS:
            pass
        while await asker.code(filler, b"") == SUCCESS:
            pass
        before = await entries(asker)
        for number in range(count):
            await asker.create(f"t{number}")
        assert await entries(asker) == before
        disk.is_full = False
        await asyncio.sleep(30)
        made = [named for name, named in await entries(asker) if name.startswith("UPDATE")]
        kept = [f"t{number}" for number in range(len(made) - 1)]
        assert made == ["filler", *kept]
        assert ("ENTRIES_LOST", count - len(kept)) in await entries(asker)
        assert 0 < len(kept) < count
        await asker.create("later")
        assert (await entries(asker))[-1] == ("UPDATE_AND_CREATE_TOPIC", "later")

    play(test, disk, store=replace(STORE, log_file_bytes=64 * 1024), audit_topic=TOPIC)


def test_files_and_topic_have_the_same_entries_or_there_is_one_of_both() -> None:
    async def records(disk: MemoryDisk, audit: AuditConfig | None) -> list[bytes]:
        broker = Broker(
            replace(CONFIG, audit_topic=TOPIC), store=STORE, root=ROOT, disk=disk,
            clock=LoopClock(), entropy=SeededEntropy(1), audit=audit,
        )  # fmt: skip
        async with broker:
            asker = Asker(broker)
            async with asker.pool:
                for number in range(3):
                    await asker.create(f"t{number}")
                return await asker.bodies(TOPIC)

    both, one = new_disk(), new_disk()
    bodies = simulate(lambda network: records(both, AuditConfig(enabled=True)))
    assert bodies == (both.read(f"{ROOT}/audit/broker/audit.jsonl") or b"").splitlines()
    assert len(bodies) == 3
    assert len(simulate(lambda network: records(one, None))) == 3
    assert "audit" not in one.names(ROOT)


def test_at_a_closed_broker_who_has_the_right_to_the_topic_reads_it() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        await root.create("orders")
        ann = await make_user(root, "ann")
        async with another(nobody, ann) as asker:
            await allow(root, "ann", ("Group:g", "Sub"), ("Topic:orders", "Sub"))
            assert (await asker.pull(TOPIC)).code == REFUSED
            assert (await nobody.pull(TOPIC)).code == REFUSED
            await allow(root, "ann", (f"Topic:{TOPIC}", "Sub"))
            pulled = await asker.pull(TOPIC)
        rows = [json.loads(each.body) for each in pulled.messages]
        assert ("AUTH_CREATE_USER", "root") in [(row["request"], row["user"]) for row in rows]
        assert b"secret" not in b"".join(each.body for each in pulled.messages)

    play_closed(test, audit_topic=TOPIC)


def test_what_a_slave_was_asked_waits_until_it_is_a_master() -> None:
    async def test(network: Network) -> None:
        async with group(network, audit_topic=TOPIC) as found:
            master, slave = found.askers
            await master.create("orders")
            await found.equal()
            assert await slave.code(DeleteTopic(topic="orders")) != SUCCESS
            await asyncio.sleep(5)
            assert await entries(master) == [("UPDATE_AND_CREATE_TOPIC", "orders")]
            recorder = slave.broker._now._recorder
            assert isinstance(recorder, AuditTopic)
            assert recorder.lost == 0

    simulate(test)
