"""Replication with Java's broker, both ways: logs equal byte for byte."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from sprocket import Message, Producer
from sprocket.base.deadline import Deadline
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.sender import Sent
from sprocket.clientcore.replies import SendStatus
from sprocket.protocol.requests.offset import OffsetReply, QueryOffset
from sprocket.remoting.pool import Pool
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaBroker,
    JavaDriver,
    free_port,
    mqadmin,
    require_java,
    wait_until,
)
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer
from tests.support import PATIENT_MS, run

pytestmark = pytest.mark.java

BROKER, TOPIC = "broker-a", "copied"
PATIENT = ProducerConfig(send_timeout_ms=PATIENT_MS)


@pytest.fixture
def names(tmp_path: Path) -> SprocketNameServer:
    require_java()
    return SprocketNameServer(tmp_path)


def send(names: SprocketNameServer, *sizes: int) -> list[Sent]:
    """Sends messages with bodies of these sizes, one after the other."""

    async def main() -> list[Sent]:
        async with Producer("senders", nameservers=[names.address], config=PATIENT) as producer:
            return [
                await producer.send(
                    Message(TOPIC, Random(number).randbytes(size), tag="a", keys=[f"k{number}"])
                )
                for number, size in enumerate(sizes)
            ]

    return run(main())


def log_of(store: Path) -> bytes:
    """The files of a log, up to the last byte that is not zero."""
    files = sorted(each for each in (store / "commitlog").iterdir() if each.name.isdigit())
    return b"".join(each.read_bytes() for each in files).rstrip(b"\0")


def until_equal(master: Path, slave: Path) -> bytes:
    """The log of both, once they are the same."""

    def are_equal() -> bool:
        return (slave / "commitlog").exists() and log_of(slave) == log_of(master)

    wait_until(are_equal)
    return log_of(master)


#: With these the log has two files.
MANY = (*range(1, 100), *([100_000] * 170), *range(1, 100))


def test_a_java_slave_copies_our_log_and_counts_as_a_copy(
    names: SprocketNameServer, tmp_path: Path
) -> None:
    ha_port = free_port()
    settings = {"broker.role": "SYNC_MASTER", "broker.replication_port": ha_port}
    ours = SprocketBroker(tmp_path, names.address, name=BROKER, settings=settings)
    ours.settings = {**ours.settings, "broker.copies_min": 1}
    with names, ours:
        (early,) = send(names, 10)
        assert early.status is SendStatus.SLAVE_NOT_AVAILABLE
        with JavaBroker(tmp_path, names.address, name=BROKER, broker_id=1) as java:
            until_equal(ours.store, java.store)
            assert {each.status for each in send(names, *MANY)} == {SendStatus.OK}
            assert len(until_equal(ours.store, java.store)) > 16 * 1024 * 1024
            shown = mqadmin("haStatus", "-b", ours.address, namesrv=names.address)
            assert "#MasterAddr" in shown
            assert "#InSyncSlaveNum\t1" in shown
        (late,) = send(names, 10)
        assert late.status is SendStatus.SLAVE_NOT_AVAILABLE
        with java:
            until_equal(ours.store, java.store)


def test_our_slave_copies_a_java_masters_log(names: SprocketNameServer, tmp_path: Path) -> None:
    with names, JavaBroker(tmp_path, names.address, name=BROKER) as java:
        send(names, 10)
        settings = {"broker.role": "SLAVE", "broker.id": 1}
        ours = SprocketBroker(tmp_path / "slave", names.address, name=BROKER, settings=settings)
        with ours:
            until_equal(java.store, ours.store)
            send(names, *MANY)
            assert len(until_equal(java.store, ours.store)) > 16 * 1024 * 1024
            ours.stop()
            send(names, *range(1, 50))
            ours.start()
            until_equal(java.store, ours.store)


def committed(broker: SprocketBroker) -> int:
    """The sum of a group's offsets at one broker."""

    async def main() -> int:
        async with Pool() as pool:
            found = 0
            for number in range(8):
                header = QueryOffset(
                    consumer_group="g", topic=TOPIC, queue_id=number, set_zero_if_not_found=True
                )
                deadline = Deadline.after_ms(PATIENT_MS)
                reply = await pool.call(broker.address, header, deadline=deadline)
                found += reply.read(OffsetReply).offset if not reply.code else 0
            return found

    return run(main())


@pytest.mark.parametrize("setting", ["slave_reads", "acting_master"])
def test_a_java_consumer_reads_and_commits_at_our_slave_while_its_master_is_away(
    setting: str, tmp_path: Path
) -> None:
    require_java()
    names = SprocketNameServer(tmp_path, settings={"nameserver.acting_masters": "true"})
    settings = {f"broker.{setting}": "true", "broker.registration_ms": 2_000}
    ours = SprocketBroker(tmp_path, names.address, name=BROKER, settings=settings)
    as_slave = {**settings, "broker.role": "SLAVE", "broker.id": 1}
    slave = SprocketBroker(tmp_path / "slave", names.address, name=BROKER, settings=as_slave)
    driver = JavaDriver(work=tmp_path / "driver", properties=QUICK_REBALANCE)
    consumer = {
        "name": "c", "group": "g", "namesrv": names.address, "topic": TOPIC, "from": "first",
    }  # fmt: skip
    with names, ours, slave, driver:
        send(names, *range(1, 41))
        until_equal(ours.store, slave.store)
        ours.kill()
        driver.call("consumer.start", **consumer)
        driver.wait_messages(40)
        wait_until(lambda: committed(slave) == 40)
        if setting == "acting_master":  # nobody is there who could commit at the master
            driver.call("consumer.stop", name="c")
        ours.start()
        wait_until(lambda: committed(ours) == 40)
        if setting == "acting_master":
            driver.call("consumer.start", **consumer)
        send(names, *range(41, 51))
        consumed = driver.wait_messages(50)
        assert sorted(len(each["body"]) for each in consumed) == list(range(1, 51))
