"""Java's clients, old and new, while the master of a group over etcd is stopped and killed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.requests.admin import BrokerState
from sprocket.remoting.pool import Pool
from tests.compat.javaland import (
    QUICK_REBALANCE,
    JavaCallError,
    JavaDriver,
    free_port,
    require_java,
    wait_until,
)
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer
from tests.election.etcds import Etcd, needs_etcd
from tests.support import run

pytestmark = [
    pytest.mark.java,
    needs_etcd,
    pytest.mark.skipif(
        not os.environ.get("SPROCKET_LONG"), reason="takes three minutes: SPROCKET_LONG=1"
    ),
]
pytest.importorskip("aiohttp", reason="needs the extra `etcd` (aiohttp)")

BROKER, TOPIC, GROUP = "broker-a", "failover", "readers"
#: Java's clients ask for routes every 30 s by themselves, and take them at once after an error.
ROUTE_SECONDS = 40.0


class Group:
    """Three brokers of one name, and the name server at which they register."""

    def __init__(self, folder: Path, place: str) -> None:
        self.names = SprocketNameServer(folder)
        self.brokers = [
            SprocketBroker(
                folder / f"member-{number}",
                self.names.address,
                name=BROKER,
                settings={
                    "broker.role": "SYNC_MASTER",
                    "broker.elector": place,
                    "broker.replication_port": free_port(),
                },
            )
            for number in range(3)
        ]

    @property
    def master(self) -> SprocketBroker:
        """The one that says that it leads."""
        found = [each for each in self.brokers if each.is_running and leads(each)]
        assert len(found) == 1
        return found[0]

    def wait_whole(self) -> None:
        """Returns when all three are in sync."""
        wait_until(lambda: any(in_sync(each) == 3 for each in self.brokers), 60.0)


def figures(broker: SprocketBroker) -> dict[str, str]:
    """What a broker reports about itself; nothing if it does not answer."""

    async def main() -> dict[str, str]:
        async with Pool() as pool:
            reply = await pool.ask(broker.address, BrokerState(), deadline=Deadline.after(5))
            return KvTable.decode(reply.body).table

    try:
        return run(main())
    except SprocketError:
        return {}


def leads(broker: SprocketBroker) -> bool:
    return figures(broker).get("groupRole") == "master"


def in_sync(broker: SprocketBroker) -> int:
    return len(figures(broker).get("inSyncSet", "").split(","))


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    require_java()
    with ExitStack() as stack:
        etcd = Etcd(tmp_path)
        etcd.start()
        stack.callback(etcd.close)
        made = Group(tmp_path, etcd.place)
        stack.enter_context(made.names)
        for each in made.brokers:
            stack.enter_context(each)
        made.wait_whole()
        yield made


@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
def test_a_java_client_goes_on_at_the_next_master(
    group: Group, version: str, tmp_path: Path
) -> None:
    with JavaDriver(version, work=tmp_path / "java", properties=QUICK_REBALANCE) as driver:
        driver.call("producer.start", group="p", namesrv=group.names.address)
        sent = [b"%03d" % number for number in range(9)]
        send(driver, sent[0])
        driver.call(
            "consumer.start", name="c", group=GROUP, namesrv=group.names.address, instance="c",
            topic=TOPIC,
        )  # fmt: skip
        for body in sent[1:3]:
            send(driver, body)
        stopped = group.master
        stopped.stop()
        for body in sent[3:6]:
            send(driver, body)
        stopped.start()
        group.wait_whole()
        group.master.kill()
        for body in sent[6:]:
            send(driver, body)
        wait_until(lambda: {each["body"] for each in driver.events("message")} >= {*sent}, 60.0)
        driver.call("consumer.stop", name="c")


def send(driver: JavaDriver, body: bytes) -> None:
    """Sends until it is accepted, as a program does that must not lose it."""
    give_up = time.monotonic() + ROUTE_SECONDS
    while True:
        try:
            driver.call("producer.send", topic=TOPIC, body=body, timeout=3000)
        except JavaCallError:
            if time.monotonic() > give_up:
                raise
        else:
            return
