"""RocketMQ's push consumer in pop mode, set by its mqadmin, against our broker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.javaland import QUICK_REBALANCE, JavaDriver, mqadmin, wait_until
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.java

GROUP, MESSAGES = "poppers", 40


@pytest.fixture
def driver(node: SprocketNode, tmp_path: Path) -> Iterator[JavaDriver]:
    with JavaDriver("5.3.3", work=tmp_path, properties=QUICK_REBALANCE) as running:
        running.call("producer.start", group="p", namesrv=node.names)
        yield running


def listen(driver: JavaDriver, node: SprocketNode, name: str, topic: str, **more: object) -> None:
    """Starts a push consumer that lets the broker decide how it consumes."""
    chosen = {"clientRebalance": False, "popInvisibleTime": 10_000, "popBatchNums": 8}
    driver.call(
        "consumer.start", name=name, group=GROUP, namesrv=node.names, instance=name, topic=topic,
        set=chosen, **more,
    )  # fmt: skip


def popped(driver: JavaDriver, topic: str) -> Counter[bytes]:
    """How often each body reached a listener, through a pop."""
    return Counter(
        event["body"]
        for event in driver.events("message")
        if event["topic"] == topic and "POP_CK" in event["properties"]
    )


def lag_of(node: SprocketNode) -> list[int]:
    """The lag that mqadmin shows, of each queue."""
    table = mqadmin("consumerProgress", "-g", GROUP, namesrv=node.names)
    total = re.search(r"Consume Diff Total: (\d+)|Diff Total: (\d+)", table)
    assert total is not None, table
    return [int(total.group(1) or total.group(2))]


def test_a_group_of_java_consumers_pops_each_message_once(
    node: SprocketNode, driver: JavaDriver
) -> None:
    topic = "JavaPops"
    wanted = [b"%03d" % number for number in range(MESSAGES)]
    broker = ("-b", node.address)
    mqadmin("updateTopic", *broker, "-t", topic, "-r", "4", "-w", "4", namesrv=node.names)
    mqadmin("updateSubGroup", *broker, "-g", GROUP, namesrv=node.names)
    made = mqadmin(
        "setConsumeMode", *broker, "-t", topic, "-g", GROUP, "-m", "POP", "-q", "0",
        namesrv=node.names,
    )  # fmt: skip
    assert "success" in made
    listen(driver, node, "one", topic, failTimes=1)
    listen(driver, node, "two", topic)
    for body in wanted:
        driver.call("producer.send", topic=topic, text=body.decode())
    wait_until(lambda: set(popped(driver, topic)) == set(wanted), 120)
    # What the first consumer failed becomes visible again, and is consumed then.
    wait_until(lambda: lag_of(node) == [0], 120)
    often = popped(driver, topic)
    tried = Counter(
        event["body"]
        for event in driver.events("message")
        if event["topic"] == topic and event["reconsumeTimes"] == 0
    )
    assert set(tried.values()) == {1}
    assert all(1 <= count <= 2 for count in often.values()), often
