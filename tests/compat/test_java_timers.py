"""Messages for a time of their own between Java and us: clients, brokers, and stores that move.

A story of a store has three parts, each with another kind of broker: messages that became due under
the one come under the other, once, and what was taken back does not come.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from tests.compat.javaland import (
    JavaBroker,
    JavaDriver,
    JavaNameServer,
    Json,
    free_broker_port,
    wait_until,
)
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.java

TIMER_FILE_BYTES = 1000 * 52
TOPIC = "Timed"
#: Long enough for one broker to end and the other to begin.
AHEAD_MS = 45_000
#: Java knows the second; and a slow machine is slower.
LATE_MS_MAX = 5_000


class Ours:
    """Our node on a store."""

    def __init__(self, work: Path, store: Path, port: int) -> None:
        settings = {"store.timer_file_bytes": TIMER_FILE_BYTES}
        self._node = SprocketNode(work, store=store, settings=settings)
        self._node.port = port

    @property
    def names(self) -> str:
        return self._node.names

    def start(self) -> None:
        self._node.start()

    def stop(self) -> None:
        self._node.stop()

    def kill(self) -> None:
        self._node.kill()

    def close(self) -> None:
        self._node.kill()


class Javas:
    """Java's broker on a store, with a name server of its own."""

    def __init__(self, work: Path, store: Path, port: int) -> None:
        self._names = JavaNameServer(work)
        settings = {
            "timerWheelEnable": True,
            "recallMessageEnable": True,
            "popConsumerFSServiceInit": False,
            # The name that ours has, since recall handles carry it.
            "brokerName": "broker-a",
        }
        self._broker = JavaBroker(
            work, self._names.address, store=store, port=port, settings=settings
        )

    @property
    def names(self) -> str:
        return self._names.address

    def start(self) -> None:
        if not self._names.is_running:
            self._names.start()
        self._broker.start()

    def stop(self) -> None:
        self._broker.stop()

    def kill(self) -> None:
        self._broker.kill()

    def close(self) -> None:
        self._broker.kill()
        self._names.kill()


class Visitor:
    """Java clients at one part of a story."""

    def __init__(self, driver: JavaDriver, names: str, part: int) -> None:
        self._driver = driver
        self.part = part
        self._name = f"part{part}-at-{names.rpartition(':')[2]}"
        more = {"namesrv": names, "instance": self._name, "name": self._name}
        driver.call("producer.start", group="p", **more)
        driver.call("pull.start", **{**more, "group": "reader", "name": f"{self._name}-pull"})
        if part == 0:
            self.call("query.createTopic", topic=TOPIC, queues=1)
        wait_until(lambda: len(self._queues()) == 1, 60)

    def _queues(self) -> list[Json]:
        try:
            found: list[Json] = self.call("producer.queues", topic=TOPIC)["queues"]
        except Exception:  # the route is not there yet
            return []
        return found

    def leave(self) -> None:
        self._driver.call("producer.stop", name=self._name)
        self._driver.call("pull.stop", name=f"{self._name}-pull")

    def call(self, command: str, **args: object) -> Json:
        name = self._name if command.startswith("producer.") else f"{self._name}-pull"
        client = {"client": self._name} if command.startswith("query.") else {}
        return self._driver.call(command, **{"name": name, **client, **args})

    def send(self, text: str, due_ms: int) -> Json:
        system = {"TIMER_DELIVER_MS": str(due_ms)}
        return self.call("producer.send", topic=TOPIC, text=text, system=system)

    def write(self) -> dict[str, int]:
        """Messages due now, soon and under the next broker; two of them are taken back."""
        now_ms = int(time.time() * 1000)
        dues = {f"{self.part}-{n}": now_ms + 1500 + 37 * n for n in range(20)}
        dues |= {f"{self.part}-far-{n}": now_ms + AHEAD_MS + 137 * n for n in range(60)}
        handles = {text: self.send(text, due)["recallHandle"] for text, due in dues.items()}
        for text in (f"{self.part}-far-3", f"{self.part}-far-40"):
            recalled = self.call("producer.recall", topic=TOPIC, handle=handles[text])
            assert recalled["msgId"]
            del dues[text]
        return dues

    def read(self) -> list[Json]:
        found: list[Json] = []
        while True:
            pulled = self.call("pull.pull", topic=TOPIC, queueId=0, offset=len(found))
            if pulled["status"] != "FOUND":
                return found
            found += pulled["messages"]


def check(visitor: Visitor, dues: dict[str, int], *, is_exact: bool) -> None:
    """All that is due has come; nothing came early, nothing that was taken back."""
    wait_until(lambda: time.time() * 1000 > max(dues.values()) + LATE_MS_MAX, 120)
    messages = visitor.read()
    counts = Counter(message["body"].decode() for message in messages)
    assert set(counts) == set(dues), (set(dues) - set(counts), set(counts) - set(dues))
    if is_exact:
        assert max(counts.values()) == 1, [text for text in counts if counts[text] > 1]
    for message in messages:
        assert message["storeTimestamp"] >= dues[message["body"].decode()]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaDriver]:
    with JavaDriver(work=tmp_path_factory.mktemp("timers-driver")) as running:
        yield running


@pytest.fixture(scope="module")
def stories(
    request: pytest.FixtureRequest, driver: JavaDriver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str], Future[None]]]:
    """The stories that are wanted, all under way at the same time: they mostly wait."""
    with ThreadPoolExecutor(4) as threads:
        yield {
            story: threads.submit(tell, driver, tmp_path_factory.mktemp("-".join(story)), *story)
            for story in product(("ours", "java"), ("stop", "kill"))
            if any("-".join(story) in item.name for item in request.session.items)
        }


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("first", ["ours", "java"])
def test_messages_that_wait_move_with_their_store(
    stories: dict[tuple[str, str], Future[None]], first: str, end: str
) -> None:
    stories[first, end].result()


def tell(driver: JavaDriver, work: Path, first: str, end: str) -> None:
    """One story from beginning to end."""
    store, port = work / "store", free_broker_port()
    ours, javas = Ours(work, store, port), Javas(work, store, port)
    hosts = [ours, javas, ours] if first == "ours" else [javas, ours, javas]
    dues: dict[str, int] = {}
    try:
        for part, host in enumerate(hosts):
            host.start()
            visitor = Visitor(driver, host.names, part)
            if part:
                check(visitor, dues, is_exact=end == "stop")
            if part < 2:
                dues |= visitor.write()
                time.sleep(4)
            visitor.leave()
            getattr(host, end)()
    finally:
        ours.close()
        javas.close()
