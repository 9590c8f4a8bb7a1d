"""A group of Java's broker and ours under RocketMQ's controller: the lead goes from one to the
other and back, and the logs stay equal byte for byte."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket import Message, Producer, PullConsumer
from sprocket.base.errors import SprocketError
from sprocket.client.config import ProducerConfig
from tests.compat.javaland import (
    JavaBroker,
    JavaController,
    Settings,
    free_port,
    mqadmin,
    require_java,
    wait_until,
)
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer
from tests.support import run

pytestmark = pytest.mark.java

CLUSTER, NAME, TOPIC = "DefaultCluster", "broker-a", "shared"
EAGER = ProducerConfig(send_timeout_ms=10_000)


class MixedGroup:
    """A name server, a controller, a broker of Java's and one of ours."""

    def __init__(self, work: Path) -> None:
        self.names = SprocketNameServer(work)
        self.controller = JavaController(
            work,
            settings={"scanNotActiveBrokerInterval": 1_000, "scanInactiveMasterInterval": 1_000},
        )
        java: Settings = {
            "enableControllerMode": True,
            "controllerAddr": self.controller.address,
            "allAckInSyncStateSet": True,
            "brokerRole": "SLAVE",
            "brokerId": -1,
            "syncBrokerMetadataPeriod": 1_000,
            "checkSyncStateSetPeriod": 1_000,
            "registerNameServerPeriod": 10_000,
        }
        self.java = JavaBroker(work, self.names.address, name=NAME, broker_id=9, settings=java)
        ha_port = free_port()
        ours: Settings = {
            "broker.elector": f"controller://{self.controller.address}",
            "broker.role": "SYNC_MASTER",
            "broker.copies_min": 1,
            "broker.replication_port": ha_port,
        }
        self.ours = SprocketBroker(work / "ours", self.names.address, name=NAME, settings=ours)

    def view(self) -> tuple[str, set[str]]:
        """The address of the master, and of those that are in sync, as the controller has them."""
        shown = mqadmin("getSyncStateSet", "-a", self.controller.address, "-b", NAME)
        master = re.search(r"#MasterAddr\t(\S+)", shown)
        in_sync = re.findall(r"(?m)^InSyncReplica:\t.*?brokerAddress='?([\d.:]+)", shown)
        return "" if master is None else master[1], set(in_sync)

    def both_in_sync(self, master: str) -> None:
        def are() -> bool:
            return self.view() == (master, {self.java.address, self.ours.address})

        wait_until(are)

    def elect(self, address: str) -> None:
        """As an operator does."""
        words = ("-a", self.controller.address, "-bn", NAME, "-c", CLUSTER)
        number = self.number(address)
        assert f"#BrokerMasterAddr\t{address}" in mqadmin("electMaster", *words, "-b", number)

    def number(self, address: str) -> str:
        store = self.java.store if address == self.java.address else self.ours.store
        return (store / "brokerIdentity").read_text().rpartition("#")[2]


@pytest.fixture
def group(tmp_path: Path) -> Iterator[MixedGroup]:
    require_java()
    made = MixedGroup(tmp_path)
    with made.names, made.controller:
        yield made


def log_of(store: Path) -> bytes:
    """The files of a log, up to the last byte that is not zero."""
    files = sorted(each for each in (store / "commitlog").iterdir() if each.name.isdigit())
    return b"".join(each.read_bytes() for each in files).rstrip(b"\0")


def until_equal(group: MixedGroup) -> None:
    wait_until(lambda: log_of(group.ours.store) == log_of(group.java.store))


def send(group: MixedGroup, *bodies: bytes) -> list[bytes]:
    """Sends until all are acknowledged; returns the bodies in the order of their sending."""

    async def main() -> None:
        async with Producer("p", nameservers=[group.names.address], config=EAGER) as producer:
            for body in bodies:
                for _ in range(12):
                    try:
                        await producer.send(Message(TOPIC, body))
                    except SprocketError as error:
                        last = error
                    else:
                        break
                else:
                    raise last

    run(main())
    return list(bodies)


def stored(group: MixedGroup) -> set[bytes]:
    """All bodies that consumers can read."""

    async def main() -> set[bytes]:
        found = set()
        async with PullConsumer("c", nameservers=[group.names.address]) as consumer:
            for queue in await consumer.queues(TOPIC):
                offset, end = 0, await consumer.max_offset(queue)
                while offset < end:
                    pulled = await consumer.pull(queue, offset)
                    found |= {each.body for each in pulled.messages}
                    offset = pulled.next_offset
        return found

    return run(main())


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%d" % number * (number % 50 + 1) for number in range(first, first + count)]


def test_the_lead_goes_from_javas_broker_to_ours_and_back(group: MixedGroup) -> None:
    with group.java, group.ours:
        group.both_in_sync(group.java.address)
        sent = send(group, *numbered(0, 100))
        until_equal(group)
        group.elect(group.ours.address)
        group.both_in_sync(group.ours.address)
        sent += send(group, *numbered(100, 100))
        until_equal(group)
        shown = mqadmin("getBrokerEpoch", "-b", NAME, namesrv=group.names.address)
        assert len(re.findall(r"#Epoch: EpochEntry\{epoch=1, startOffset=0", shown)) == 2, shown
        assert len(re.findall(r"epoch=2", shown)) == 2, shown
        group.elect(group.java.address)
        group.both_in_sync(group.java.address)
        sent += send(group, *numbered(200, 100))
        until_equal(group)
        wait_until(lambda: stored(group) == set(sent))


@pytest.mark.skipif("SPROCKET_LONG" not in os.environ, reason="takes a minute: SPROCKET_LONG=1")
def test_each_takes_over_when_the_other_is_killed(group: MixedGroup) -> None:
    with group.java, group.ours:
        group.both_in_sync(group.java.address)
        sent = send(group, *numbered(0, 100))
        group.java.kill()
        sent += send(group, *numbered(100, 100))
        assert group.view()[0] == group.ours.address
        group.java.start()
        group.both_in_sync(group.ours.address)
        until_equal(group)
        group.ours.kill()
        sent += send(group, *numbered(200, 100))
        assert group.view()[0] == group.java.address
        group.ours.start()
        group.both_in_sync(group.java.address)
        until_equal(group)
        wait_until(lambda: stored(group) == set(sent))
