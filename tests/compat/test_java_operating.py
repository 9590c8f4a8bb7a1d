"""Java's admin tool at our servers, with a Java consumer and one of ours in the same group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.client import blocking
from sprocket.client.config import ConsumerConfig
from sprocket.message.message import StoredMessage
from tests.compat.javaland import QUICK_REBALANCE, JavaDriver, Json, mqadmin, wait_until
from tests.compat.sprocketland import SprocketNode
from tests.support import PATIENT_MS

pytestmark = pytest.mark.java

TOPIC, GROUP, COUNT = "Operated", "G_operated", 6

#: An argument whose name is a word of Python.
FROM_FIRST: Json = {"from": "first"}


class Town:
    """A node and a group that has consumed `COUNT` messages of two queues, one by each member."""

    def __init__(self, node: SprocketNode, driver: JavaDriver) -> None:
        self.node = node
        self.driver = driver
        self.sent: list[Json] = []
        #: What our member got.
        self.ours: list[StoredMessage] = []

    def admin(self, *words: str) -> str:
        return mqadmin(*words, namesrv=self.node.names)

    def member_ids(self) -> dict[str, str]:
        """Client ids by language."""
        told = self.admin("consumerConnection", "-g", GROUP)
        return {m[2]: m[1] for m in re.finditer(r"(?m)^(\S+@\S+) +\S+:\d+ +([A-Z]+) ", told)}

    def send(self, count: int) -> None:
        self.sent = [
            self.driver.call(
                "producer.send",
                name="p-operated",
                topic=TOPIC,
                queueId=number % 2,
                body=b"%d" % number,
                keys=f"k{number}",
            )
            for number in range(count)
        ]

    def queues_of_theirs(self) -> list[int]:
        held = self.driver.call("consumer.queues", name="operated")["queues"]
        return [queue["queueId"] for queue in held if queue["topic"] == TOPIC]

    def consumed(self) -> int:
        return len(self.ours) + len(self.theirs())

    def theirs(self) -> list[Json]:
        return [e for e in self.driver.events("message") if e["consumer"] == "operated"]

    def behind(self) -> int:
        told = self.admin("consumerProgress", "-g", GROUP)
        found = re.search(r"Consume Diff Total: (\d+)", told)
        assert found is not None, told
        return int(found[1])


@pytest.fixture(scope="module")
def town(node: SprocketNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    work: Path = tmp_path_factory.mktemp("operating")
    with JavaDriver(work=work, properties=QUICK_REBALANCE) as driver:
        names = node.names
        made = mqadmin(
            *("updateTopic", "-c", "DefaultCluster", "-t", TOPIC, "-r", "2", "-w", "2"),
            namesrv=names,
        )
        assert "success" in made
        driver.call("producer.start", name="p-operated", group="p-operated", namesrv=names)
        driver.call(
            "consumer.start",
            name="operated",
            instance="operated",
            group=GROUP,
            namesrv=names,
            topic=TOPIC,
            **FROM_FIRST,
        )
        there = Town(node, driver)
        config = ConsumerConfig(call_timeout_ms=PATIENT_MS, rebalance_ms=1000)
        consumer = blocking.PushConsumer(GROUP, nameservers=names, start="first", config=config)
        consumer.subscribe(TOPIC, listener=there.ours.append)
        with consumer:
            # Each has a queue before there is something in it, so that each gets its half.
            wait_until(
                lambda: (queues_of(consumer), there.queues_of_theirs()) in (([0], [1]), ([1], [0]))
            )
            there.send(COUNT)
            wait_until(lambda: there.consumed() >= COUNT)
            assert len(there.ours) == COUNT // 2
            yield there


def queues_of(consumer: blocking.PushConsumer) -> list[int]:
    return [queue.number for queue in consumer.queues if queue.topic == TOPIC]


def test_who_is_connected(town: Town) -> None:
    told = town.admin("consumerConnection", "-g", GROUP)
    assert town.member_ids().keys() == {"JAVA", "PYTHON"}
    for line in ("ConsumeType: CONSUME_PASSIVELY", "MessageModel: CLUSTERING"):
        assert line in told
    assert f"{TOPIC} " in told
    told = town.admin("producerConnection", "-g", "p-operated", "-t", TOPIC)
    assert "JAVA" in told


def test_how_far_a_group_is(town: Town) -> None:
    wait_until(lambda: town.behind() == 0)

    def rows() -> list[list[str]]:
        told = town.admin("consumerProgress", "-g", GROUP, "-s", "true")
        return [line.split() for line in told.splitlines() if line.startswith(f"{TOPIC} ")]

    assert [row[1:5] for row in rows()] == [
        ["broker-a", str(number), str(COUNT // 2), str(COUNT // 2)] for number in (0, 1)
    ]
    # The tool asks each member what it holds, and leaves out who does not say so in time.
    wait_until(lambda: all(re.match(r"\d+\.\d+\.", row[5]) for row in rows()))
    assert re.search(rf"(?m)^{GROUP} .*PUSH +CLUSTERING", town.admin("consumerProgress"))
    told = town.admin("brokerConsumeStats", "-b", town.node.address)
    assert re.search(rf"(?m)^{TOPIC} +{GROUP} ", told)


def test_members_tell_what_they_do(town: Town) -> None:
    told = town.admin("consumerStatus", "-g", GROUP)
    assert "Same subscription in the same group of consumer" in told
    assert "Rebalance OK" in told
    for client_id in town.member_ids().values():
        told = town.admin("consumerStatus", "-g", GROUP, "-i", client_id, "-s")
        assert "PROP_CONSUMER_START_TIMESTAMP" in told
        assert re.search(rf"(?m)^{TOPIC} +broker-a +[01] +ProcessQueueInfo \[commitOffset=", told)
        assert "#Consumer jstack#" in told


def test_messages_are_found(town: Town) -> None:
    first = town.sent[0]
    by_key = ("queryMsgByKey", "-t", TOPIC, "-k", "k0")
    wait_until(lambda: re.search(r"(?m)^[0-9A-F]{56} ", town.admin(*by_key)))
    told = town.admin("queryMsgByUniqueKey", "-t", TOPIC, "-i", first["msgId"])
    assert "Keys:                [k0]" in told
    assert f"MessageTrack [consumerGroup={GROUP}, trackType=CONSUMED" in told
    queue = str(first["queueId"])
    told = town.admin("queryMsgByOffset", "-t", TOPIC, "-b", "broker-a", "-i", queue, "-o", "0")
    assert f"OffsetID:            {first['offsetMsgId']}" in told
    told = town.admin(
        *("queryCq", "-t", TOPIC, "-q", queue, "-i", "0", "-c", "2", "-b", town.node.address)
    )
    assert told.count("idx: ") == 2


def test_a_message_is_consumed_by_the_member_of_choice(town: Town) -> None:
    place = town.sent[0]["offsetMsgId"]
    for language, client_id in town.member_ids().items():
        before = len(town.ours), len(town.theirs())
        told = town.admin("queryMsgById", "-t", TOPIC, "-i", place, "-g", GROUP, "-d", client_id)
        assert "consumeResult=CR_SUCCESS" in told
        grown = (language == "PYTHON", language == "JAVA")
        expected = tuple(number + one for number, one in zip(before, grown, strict=True))
        wait_until(lambda e=expected: (len(town.ours), len(town.theirs())) == e)


def test_what_went_through(town: Town) -> None:
    told = town.admin("statsAll", "-t", TOPIC)
    (row,) = (line.split() for line in told.splitlines() if line.startswith(f"{TOPIC} "))
    assert row[1] == GROUP
    assert int(row[5]) == COUNT
    assert int(row[6]) >= COUNT
    told = town.admin("topicStatus", "-t", TOPIC)
    ends = re.findall(r"(?m)^broker-a +([01]) +0 +(\d+) ", told)
    assert sorted(ends) == [("0", str(COUNT // 2)), ("1", str(COUNT // 2))]


def test_a_group_is_moved_while_both_consume(town: Town) -> None:
    def reset(*words: str) -> str:
        return town.admin("resetOffsetByTime", "-g", GROUP, "-t", TOPIC, *words)

    wait_until(lambda: town.behind() == 0)
    before = town.consumed()
    table = reset("-s", "0")
    assert re.findall(r"(?m)^broker-a +([01]) +(\d+)", table) in (
        [("0", "0"), ("1", "0")], [("1", "0"), ("0", "0")],
    )  # fmt: skip
    wait_until(lambda: town.consumed() >= before + COUNT)
    wait_until(lambda: town.behind() == 0)
    before = town.consumed()
    told = reset("-s", "-1", "-b", town.node.address, "-q", "0", "-o", "1")
    assert "reset consumer offset to 1" in told
    wait_until(lambda: town.consumed() >= before + COUNT // 2 - 1)
    wait_until(lambda: town.behind() == 0)
    assert "broker-a" in town.admin("skipAccumulatedMessage", "-g", GROUP, "-t", TOPIC)
    assert town.behind() == 0


def test_a_group_is_copied_and_deleted(town: Town) -> None:
    copy = f"{GROUP}_copy"
    told = town.admin("cloneGroupOffset", "-s", GROUP, "-d", copy, "-t", TOPIC)
    assert "clone group offset success" in told
    made = town.admin("updateSubGroup", "-c", "DefaultCluster", "-g", copy)
    assert "success" in made
    told = town.admin("deleteSubGroup", "-c", "DefaultCluster", "-g", copy, "-r", "true")
    assert f"delete subscription group [{copy}] from broker" in told
    assert copy not in town.admin("consumerProgress")
