"""Messages for a time of their own between Java and us: clients, brokers, and stores that move.

A story of a store has three parts, each with another kind of broker: messages that became due under
the one come under the other, once, and what was taken back does not come.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from sprocket.base.errors import ReplyError
from sprocket.client.blocking import Producer, PullConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.message.queue import QueueId
from sprocket.message.recall import RecallHandle
from tests.compat import moving
from tests.compat.javaland import (
    JavaBroker,
    JavaCallError,
    JavaDriver,
    JavaNameServer,
    Json,
    free_broker_port,
    wait_until,
)
from tests.compat.moving import Javas, Ours, Stories, stories_under_way
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.java

OURS = {"store.timer_file_bytes": 1000 * 52}
JAVAS = {
    "timerWheelEnable": True,
    "recallMessageEnable": True,
    # The name that ours has, since recall handles carry it.
    "brokerName": "broker-a",
}
TOPIC = "Timed"
#: About as long as it takes until the next broker serves: some are due before, some behind.
AHEAD_MS = 18_000
#: Java knows the second: after what was due last, so long may what was taken back still come.
BEHIND_MS = 2_000
#: Above it, a unit of time was mistaken; a slow machine is less late.
LATE_MS_MAX = 120_000


class Visitor(moving.Visitor):
    """Java clients at one part of a story."""

    def __init__(self, driver: JavaDriver, names: str, part: int) -> None:
        super().__init__(driver, names, part)
        if part == 0:
            self.call("query.createTopic", topic=TOPIC, queues=1)
        wait_until(lambda: len(self._queues()) == 1)

    def _queues(self) -> list[Json]:
        try:
            found: list[Json] = self.call("producer.queues", topic=TOPIC)["queues"]
        except JavaCallError:  # the route is not there yet
            return []
        return found

    def send(self, text: str, due_ms: int) -> Json:
        system = {"TIMER_DELIVER_MS": str(due_ms)}
        return self.call("producer.send", topic=TOPIC, text=text, system=system)

    def write(self) -> dict[str, int]:
        """Messages due now, soon and under the next broker; two of them are taken back."""
        now_ms = int(time.time() * 1000)
        dues = {f"{self.part}-{n}": now_ms + 1500 + 37 * n for n in range(20)}
        dues |= {f"{self.part}-far-{n}": now_ms + AHEAD_MS + 137 * n for n in range(60)}
        # First, for a slow machine needs longer for all than they have to wait.
        for text in (f"{self.part}-far-3", f"{self.part}-far-40"):
            handle = self.send(text, dues.pop(text))["recallHandle"]
            assert self.call("producer.recall", topic=TOPIC, handle=handle)["msgId"]
        for text, due_ms in dues.items():
            self.send(text, due_ms)
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
    wait_until(lambda: {message["body"].decode() for message in visitor.read()} >= set(dues))
    wait_until(lambda: time.time() * 1000 > max(dues.values()) + BEHIND_MS)
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
) -> Iterator[Stories]:
    with stories_under_way(request.session, tmp_path_factory, partial(tell, driver)) as told:
        yield told


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("first", ["ours", "java"])
def test_messages_that_wait_move_with_their_store(stories: Stories, first: str, end: str) -> None:
    stories[first, end].result()


def tell(driver: JavaDriver, work: Path, first: str, end: str) -> None:
    """One story from beginning to end."""
    store, port = work / "store", free_broker_port()
    ours, javas = Ours(work, store, port, OURS), Javas(work, store, port, JAVAS)
    hosts: list[Ours | Javas] = [ours, javas, ours] if first == "ours" else [javas, ours, javas]
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


#: Seconds in which a message can be taken back, on a slow machine too.
BACK_S = 10


def producing(driver: JavaDriver, names: str, name: str) -> Callable[..., Json]:
    """A Java producer; sends text that is due in so many ms."""
    driver.call("producer.start", group="p", namesrv=names, instance=name, name=name)

    def send(text: str, wish: str, value: object) -> Json:
        system = {wish: str(value)}
        return driver.call("producer.send", name=name, topic=TOPIC, text=text, system=system)

    return send


@pytest.mark.parametrize("version", ["4.9.8", "5.3.3"])
def test_java_clients_send_for_a_time_to_our_broker_and_take_back(
    version: str, tmp_path: Path
) -> None:
    with (
        SprocketNode(tmp_path) as node,
        JavaDriver(version, work=tmp_path) as driver,
        Producer("ours", nameservers=node.names) as ours,
        PullConsumer("reader", nameservers=node.names) as reader,
    ):
        send = producing(driver, node.names, "timed")
        due_ms = int(time.time() * 1000) + 3_300
        wishes = [("TIMER_DELIVER_MS", due_ms), ("TIMER_DELAY_MS", 2_200), ("TIMER_DELAY_SEC", 3)]
        sent = [send(wish, wish, value) for wish, value in wishes]
        back = send("back", "TIMER_DELAY_SEC", BACK_S)
        back_due = time.time() + BACK_S
        if version == "5.3.3":
            assert all(each["recallHandle"] for each in sent)
            handle = back["recallHandle"]
            recalled = driver.call("producer.recall", name="timed", topic=TOPIC, handle=handle)
            assert recalled["msgId"] == back["msgId"]
        else:  # a client that knows no handles; ours can make none from nothing
            handle = RecallHandle(TOPIC, "broker-a", str(due_of(node, back)), back["msgId"])
            assert ours.recall(TOPIC, handle.encode()) == back["msgId"]
        wait_until(lambda: len(all_of(reader)) >= len(wishes) and time.time() > back_due + 1)
        came = {m.body.decode(): m for m in all_of(reader)}
        assert set(came) == {wish for wish, _ in wishes}
        assert came["TIMER_DELIVER_MS"].stored_ms >= due_ms
        for wish, delay_ms in (("TIMER_DELAY_MS", 2_200), ("TIMER_DELAY_SEC", 3_000)):
            late_ms = came[wish].stored_ms - came[wish].born_ms - delay_ms
            assert 0 <= late_ms < LATE_MS_MAX


def due_of(node: SprocketNode, sent: Json) -> int:
    """The time in the handle of a message that waits, as its broker keeps it."""
    with PullConsumer("looker", nameservers=node.names) as looker:
        queue = QueueId("rmq_sys_wheel_timer", "broker-a", 0)
        for message in looker.pull(queue, 0).messages:
            if message.properties["UNIQ_KEY"] == sent["msgId"]:
                return int(message.properties["TIMER_OUT_MS"]) + 1
    raise AssertionError(sent)


def all_of(reader: PullConsumer) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    for queue in reader.queues(TOPIC):
        found += reader.pull(queue, 0).messages
    return found


def test_our_client_sends_for_a_time_to_javas_broker_and_takes_back(tmp_path: Path) -> None:
    settings = {"timerWheelEnable": True, "recallMessageEnable": True}
    with (
        JavaNameServer(tmp_path) as names,
        JavaBroker(tmp_path, names.address, settings=settings),
        Producer("ours", nameservers=names.address) as ours,
        PullConsumer("reader", nameservers=names.address) as reader,
    ):
        due_ms = int(time.time() * 1000) + 4_300
        by_time = ours.send(Message(TOPIC, b"by time", deliver_at=due_ms))
        ours.send(Message(TOPIC, b"by delay", delay=2.5))
        back = ours.send(Message(TOPIC, b"back", delay=timedelta(seconds=BACK_S)))
        back_due = time.time() + BACK_S
        assert by_time.recall_handle
        assert ours.recall(TOPIC, back.recall_handle or "") == back.message_id
        with pytest.raises(ReplyError, match="max delay"):
            ours.send(Message(TOPIC, b"far", delay=timedelta(days=4)))
        wait_until(lambda: len(all_of(reader)) >= 2 and time.time() > back_due + 3)
        came = {message.body: message for message in all_of(reader)}
        assert set(came) == {b"by time", b"by delay"}
        assert came[b"by time"].stored_ms >= due_ms
        assert came[b"by delay"].stored_ms >= came[b"by delay"].born_ms + 2_500
